"""Cells of an executed notebook, ready for a page: Markdown and code as safe HTML, outputs as blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup

from nemolab.core.errors import UsageError
from nemolab.runbook import normalise, outputs

Links = Mapping[str, str]  # stem of a source notebook -> page of the step that ran it


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a page.

    Attributes:
        kind: "markdown" or "code".
        number: of the code cell, from 1; 0 for Markdown.
        html: rendered text or highlighted source; safe.
        lines: lines of source.
        label: what the collapsed source is called.
        state: `normalise.state` of the cell.
        blocks: what it showed.
    """

    kind: str
    number: int
    html: Markup
    lines: int
    label: str
    state: str
    blocks: tuple[outputs.Block, ...] = ()


def load(path: Path) -> dict[str, Any]:
    """The notebook at `path` (nbformat 4) as plain values.

    Raises:
        UsageError: it is not a whole notebook.
    """
    try:
        nb = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"not a notebook: {error}", where=path.name, fix="run the step again") from None
    if not isinstance(nb, dict) or nb.get("nbformat") != 4 or not isinstance(nb.get("cells"), list):
        raise UsageError("not a notebook of format 4", where=path.name, fix="run the step again")
    return nb


def cells(nb: Mapping[str, Any], prefix: str, links: Links, title: str = "") -> list[Cell]:
    """All cells of the notebook but raw ones.

    A first heading equal to the page's `title` is not repeated; then the notebook's sections are the page's.

    Args:
        prefix: of the figures' ids in the page, `<prefix>-<cell>-<n>`.
    """
    made: list[Cell] = []
    number = 0
    shift = 1
    for position, cell in enumerate(nb["cells"]):
        source = normalise.joined(cell["source"])
        if cell["cell_type"] == "markdown":
            if position == 0 and (text := _without_title(source, title)) != source:
                source, shift = text, 0
            if source.strip():
                html = markdown(source, links, shift)
                made.append(Cell("markdown", 0, html, source.count("\n") + 1, "", normalise.RAN))
        elif cell["cell_type"] == "code" and source.strip():
            number += 1
            blocks = outputs.blocks(cell.get("outputs", []), f"{prefix}-{number}")
            label = "Parameters of this run" if normalise.INJECTED in normalise.tags(cell) else "Code"
            lines = source.rstrip("\n").count("\n") + 1
            made.append(Cell("code", number, code(source), lines, label, normalise.state(cell), tuple(blocks)))
    return made


def markdown(text: str, links: Links, shift: int = 1) -> Markup:
    """Markdown as HTML. HTML in it stays text; headings go `shift` levels down, under the page's own."""
    return Markup(_markdown().render(text, {"links": links, "shift": shift}))


@cache
def _highlighter() -> tuple[Any, Any]:
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return PythonLexer(), HtmlFormatter(nowrap=True)


def code(source: str) -> Markup:
    """Python source as highlighted HTML, to stand in a `pre`."""
    from pygments import highlight

    lexer, formatter = _highlighter()
    return Markup(highlight(source, lexer, formatter))


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("link_close", _link_close)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("heading_open", lambda self, tokens, i, _, env: f"<h{_level(tokens[i], env)}>")
    parser.add_render_rule("heading_close", lambda self, tokens, i, _, env: f"</h{_level(tokens[i], env)}>\n")
    parser.add_render_rule(
        "table_open", lambda *_: '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n'
    )
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("th_open", _th_open)
    return parser


def _level(token: Any, env: Any) -> int:
    return min(6, max(2, int(token.tag[1]) + int(env["shift"])))  # the only first heading is the page's


def _th_open(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("scope", "col")
    return str(self.renderToken(tokens, index, options, env))


def _target(href: str, links: Links) -> str | None:
    """Where a link of a notebook leads in a report: a page of this run, the web, or nowhere (None)."""
    parts = urlsplit(href)
    if parts.scheme in ("http", "https"):
        return href
    stem = PurePosixPath(parts.path).stem
    return links.get(stem) if not parts.scheme and not parts.netloc else None


def _link_open(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    target = _target(str(token.attrGet("href") or ""), env.get("links", {}))
    env.setdefault("open", []).append(target)
    if target is None:
        return ""
    token.attrSet("href", target)
    if "://" in target:
        token.attrSet("rel", "noopener noreferrer")
    return str(self.renderToken(tokens, index, options, env))


def _link_close(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    return "" if env["open"].pop() is None else "</a>"


def _image(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    alt = self.renderInlineAsText(token.children or [], options, env)
    token.attrSet("alt", alt)
    if str(token.attrGet("src") or "").startswith("data:image/"):
        return str(self.renderToken(tokens, index, options, env))
    return str(Markup('<span class="muted">[picture, not in this file: {}]</span>').format(alt))


def _without_title(source: str, title: str) -> str:
    first, _, rest = source.lstrip().partition("\n")
    return rest if title and first.startswith("# ") and first[2:].strip() == title.strip() else source
