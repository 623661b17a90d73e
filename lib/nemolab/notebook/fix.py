"""What `nemolab lint-notebooks --fix` puts right without changing what a notebook does."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nemolab.core.contract import Params
from nemolab.core.errors import UsageError
from nemolab.core.files import write_atomic
from nemolab.notebook import params, source
from nemolab.notebook.rules import file
from nemolab.notebook.spelling import literal, type_of

_OF_EXECUTION = ("execution", "papermill", "ExecuteTime", "collapsed", "scrolled")


def fix(path: Path) -> bool:
    """Put a notebook file right; whether anything changed.

    Raises:
        UsageError: it is no notebook.
    """
    document = source.read(path)
    fixed = text_of(fixed_document(document))
    if fixed == path.read_text(encoding="utf-8"):
        return False
    write_atomic(path, fixed)
    return True


def fixed_document(document: source.Notebook) -> dict[str, Any]:
    """The notebook without outputs and traces of executions, in format 4.5 with kernel python3, with readable ids,
    and with its parameters cell written from the model."""
    made: dict[str, Any] = json.loads(json.dumps(document))
    metadata = made.get("metadata") if isinstance(made.get("metadata"), dict) else {}
    assert isinstance(metadata, dict)
    lab = metadata.get("nemolab")
    made["metadata"] = {
        "kernelspec": dict(file.KERNEL),
        "language_info": {"name": "python"},
        **({"nemolab": lab} if lab else {}),
    }
    made["nbformat"], made["nbformat_minor"] = 4, 5
    taken: set[str] = set()
    section = "top"
    for raw, cell in zip(made["cells"], list(source.cells(document)), strict=False):
        if not isinstance(raw, dict):
            continue
        heading = re.search(r"^#+ (.+)$", cell.source, re.MULTILINE) if not cell.code else None
        section = _slug(heading[1]) if heading else section
        raw["id"] = _id(cell, section, taken)
        own = raw.get("metadata")
        raw["metadata"] = {k: v for k, v in own.items() if k not in _OF_EXECUTION} if isinstance(own, dict) else {}
        if cell.code:
            raw["outputs"], raw["execution_count"] = [], None
        raw["source"] = cell.source
    _write_parameters(made)
    for raw in made["cells"]:
        if isinstance(raw, dict) and isinstance(raw.get("source"), str):
            raw["source"] = raw["source"].splitlines(keepends=True)
    return made


def text_of(document: Mapping[str, Any]) -> str:
    """The file's text, as nbformat writes it."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def parameters_code(model: type[Params]) -> str:
    """The text of the `parameters` cell of a model."""
    return "\n".join(
        f"{name} = {literal(copy.copy(field.get_default(call_default_factory=True)))}"
        f"  # {type_of(field)}: {field.description or ''}".rstrip()
        for name, field in model.model_fields.items()
    )


def _write_parameters(document: dict[str, Any]) -> None:
    tagged = source.tagged(document, "parameters")
    try:
        model = params.model_of(document)
    except UsageError:
        return
    if len(tagged) == 1 and not any(field.is_required() for field in model.model_fields.values()):
        document["cells"][tagged[0].number - 1]["source"] = parameters_code(model)


def _id(cell: source.Cell, section: str, taken: set[str]) -> str:
    wanted = cell.id
    if not file.readable_id(wanted) or wanted in taken:
        named = next((tag for tag in cell.tags if tag in ("parameters", "results")), None)
        wanted = named or (f"{section}-code" if cell.code else section)
    found, number = wanted, 2
    while found in taken:
        found, number = f"{wanted}-{number}", number + 1
    taken.add(found)
    return found


def _slug(text: str) -> str:
    words = re.findall(r"[a-z0-9]+", text.lower())[:4]
    slug = "-".join(words)
    return slug if slug[:1].isalpha() else f"part-{slug}".rstrip("-")
