"""Rules for the text: what a reader finds before and between the code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nemolab.notebook.rules.subject import Hit, Rules, Subject

RULES = Rules()
FACTS = ("Needs", "Takes", "Leaves", "Risk", "Undo")
SECTIONS = ("Check", "Do", "Look", "Decide")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")
_TABLE_ROW = re.compile(r"^\|\s*\**([^|*]+?)\**\s*\|\s*(.*?)\s*\|\s*$", re.MULTILINE)


@RULES.add("N020", "a title and one sentence", "start with a Markdown cell: `# Title`, then one sentence")
def _title(subject: Subject) -> Iterator[Hit]:
    first = subject.cells[0] if subject.cells else None
    if first is None or first.code or not first.source.startswith("# "):
        yield first, "the first cell does not start with `# ` and a title"
        return
    extra = [text for _, level, text in subject.headings if level == 1][1:]
    if extra:
        yield None, f"more than one title: {extra[0]!r}"
    paragraphs = [part.strip() for part in first.source.split("\n\n")[1:]]
    sentence = paragraphs[0] if paragraphs else ""
    # A point, question or exclamation mark that ends in white space ends a sentence; `e.g.` and `4.5` do not.
    if not sentence or sentence[0] in "|#-*>" or len(re.findall(r"(?<!e\.g)(?<!i\.e)[.?!](?=\s|$)", sentence)) != 1:
        yield first, "after the title comes exactly one sentence that says what the notebook does"


@RULES.add("N021", "the table Needs, Takes, Leaves, Risk, Undo", "add the five rows, in this order, below the sentence")
def _table(subject: Subject) -> Iterator[Hit]:
    first = subject.cells[0] if subject.cells else None
    second = next((cell for cell in subject.cells[1:2] if not cell.code), None)
    text = "\n".join(cell.source for cell in (first, second) if cell and not cell.code)
    rows = [(name.strip().capitalize(), value) for name, value in _TABLE_ROW.findall(text)]
    found = [name for name, _ in rows if name in FACTS]
    if found != list(FACTS):
        yield first, f"the table has the rows {', '.join(found) or 'none'}, not {', '.join(FACTS)}"
    for name, value in rows:
        if name in FACTS and not value:
            yield first, f"the row {name} is empty; write `nothing` if it is nothing"


@RULES.add("N022", "sections Check, Do, Look, Decide", "give each a heading `## Check` and so on, in this order")
def _sections(subject: Subject) -> Iterator[Hit]:
    found = [text.split(":")[0].split(" - ")[0].strip() for _, level, text in subject.headings if level == 2]
    known = [text for text in found if text in SECTIONS]
    if known != list(SECTIONS):
        yield None, f"the sections are {', '.join(known) or 'none'}, not {', '.join(SECTIONS)}"


@RULES.add("N023", "text before every code cell", "add a Markdown cell before it that says what to expect")
def _text_before(subject: Subject) -> Iterator[Hit]:
    before = None
    for cell in subject.cells:
        if cell.code and not cell.source.strip():
            yield cell, "an empty code cell"
        elif cell.code and (before is None or before.code or not _prose(before.source)):
            yield cell, "no text before this code cell"
        before = cell


@RULES.add("N024", "links lead somewhere", "correct the path; it is relative to the notebook")
def _links(subject: Subject) -> Iterator[Hit]:
    for cell in subject.cells:
        if cell.code:
            continue
        for target in _LINK.findall(cell.source):
            path = target.split("#")[0]
            if (
                path
                and "://" not in path
                and not path.startswith("mailto:")
                and not (subject.path.parent / path).exists()
            ):
                yield cell, f"the link to {path} leads nowhere"


def _prose(text: str) -> bool:
    """Whether there is a sentence, not just a heading."""
    return any(line.strip() and not line.startswith("#") for line in text.splitlines())
