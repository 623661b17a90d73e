"""Rules for the file: format, kernel, ids, tags, and nothing of an execution left in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

from nemolab.core.secrets import find_key_shapes
from nemolab.notebook.rules.subject import Hit, Rules, Subject

RULES = Rules()
TAGS = ("parameters", "results", "nbval-ignore-output")
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
_NAME = re.compile(r"(?:\d\d_[a-z0-9]+(?:_[a-z0-9]+)*|_[a-z_]+)\.ipynb")
_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_RANDOM_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?")
_MARKER = re.compile(r"#\s*(?:NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)")


def readable_id(text: str) -> bool:
    """Whether a cell's id is made of small words and digits, unlike the random ones that editors give."""
    return bool(_ID.fullmatch(text)) and not _RANDOM_ID.fullmatch(text)


@RULES.add("N002", "format 4.5, each cell an object with a type", "run `nemolab lint-notebooks --fix`")
def _format(subject: Subject) -> Iterator[Hit]:
    version = (subject.document.get("nbformat"), subject.document.get("nbformat_minor"))
    if version != (4, 5):
        yield None, f"format {version[0]}.{version[1]}, not 4.5, the first with cell ids"
    for number, raw in enumerate(subject.document["cells"], start=1):
        if not isinstance(raw, dict) or raw.get("cell_type") not in ("code", "markdown"):
            yield None, f"cell {number} is neither code nor Markdown"


@RULES.add("N003", "kernel python3", "run `nemolab lint-notebooks --fix`")
def _kernel(subject: Subject) -> Iterator[Hit]:
    metadata = subject.document.get("metadata")
    spec = metadata.get("kernelspec", {}) if isinstance(metadata, dict) else {}
    if not isinstance(spec, dict) or spec.get("name") != KERNEL["name"]:
        yield None, f"kernel {spec.get('name') if isinstance(spec, dict) else spec!r}; other machines have only python3"


@RULES.add("N004", "no outputs, no execution counts", "run `nemolab lint-notebooks --fix`; reports hold the outputs")
def _outputs(subject: Subject) -> Iterator[Hit]:
    for cell in subject.cells:
        if cell.code and (cell.raw.get("outputs") or cell.raw.get("execution_count") is not None):
            yield cell, "an output or an execution count is committed"


@RULES.add("N005", "nothing of an execution in the metadata", "run `nemolab lint-notebooks --fix`")
def _state(subject: Subject) -> Iterator[Hit]:
    metadata = subject.document.get("metadata")
    for name in ("widgets", "papermill"):
        if isinstance(metadata, dict) and name in metadata:
            yield None, f"metadata.{name} is of an execution"
    for cell in subject.cells:
        own = cell.raw.get("metadata")
        for name in ("execution", "papermill", "ExecuteTime"):
            if isinstance(own, dict) and name in own:
                yield cell, f"metadata.{name} is of an execution"


@RULES.add(
    "N006", "cell ids fixed, unique, readable", "run `nemolab lint-notebooks --fix`, or name it yourself: `check-port`"
)
def _ids(subject: Subject) -> Iterator[Hit]:
    count = Counter(cell.id for cell in subject.cells)
    for cell in subject.cells:
        if not cell.id:
            yield cell, "the cell has no id"
        elif not readable_id(cell.id):
            yield cell, f"the id {cell.id!r} is not made of small words and digits"
        elif count[cell.id] > 1:
            yield cell, f"the id {cell.id!r} is used {count[cell.id]} times"


@RULES.add("N007", "only the house's tags", f"use only {', '.join(TAGS)}")
def _tags(subject: Subject) -> Iterator[Hit]:
    for cell in subject.cells:
        for tag in cell.tags:
            if tag == "raises-exception":
                yield cell, "raises-exception: papermill stops at the error all the same; catch it and show it"
            elif tag not in TAGS:
                yield cell, f"unknown tag {tag!r}"


@RULES.add(
    "N008",
    "an output is left unchecked only with a reason",
    'say why in the cell\'s metadata: "nemolab": {"reason": "..."}',
)
def _ignored(subject: Subject) -> Iterator[Hit]:
    for cell in subject.cells:
        own = cell.raw.get("metadata")
        lab = own.get("nemolab") if isinstance(own, dict) else None
        reason = lab.get("reason") if isinstance(lab, dict) else None
        if "nbval-ignore-output" in cell.tags and not (isinstance(reason, str) and reason.strip()):
            yield cell, "nbval-ignore-output without a reason"
        if cell.code and (marker := _MARKER.search(cell.source)):
            yield cell, f"the comment {marker[0]!r} switches nbval's comparison"


@RULES.add("N009", "no secrets", "take it out, and revoke the key if it was ever committed")
def _keys(subject: Subject) -> Iterator[Hit]:
    for cell in subject.cells:
        for kind, _ in find_key_shapes(json.dumps(cell.raw, ensure_ascii=False)):
            yield cell, f"text with the shape of a key ({kind})"
    for kind, _ in find_key_shapes(json.dumps(subject.document.get("metadata"), ensure_ascii=False)):
        yield None, f"metadata with the shape of a key ({kind})"


@RULES.add("N010", "file name NN_verb_noun.ipynb", "rename it, such as 40_load_ladder.ipynb")
def _name(subject: Subject) -> Iterator[Hit]:
    if not _NAME.fullmatch(subject.path.name):
        yield None, f"the name {subject.path.name} is not NN_verb_noun.ipynb"
