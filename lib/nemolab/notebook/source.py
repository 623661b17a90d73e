"""A notebook file as plain data: read without nbformat, so that a linter answers at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError

Notebook = Mapping[str, Any]  # the JSON document; nbformat's NotebookNode is one too


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, with what rules and runner ask of it.

    Attributes:
        number: position in the notebook, from 1.
        id: the cell's id, or "" if it has none.
        code: whether it is a code cell.
        source: its text, lines joined.
        tags: as in its metadata.
        raw: the cell's JSON.
    """

    number: int
    id: str
    code: bool
    source: str
    tags: tuple[str, ...]
    raw: Mapping[str, Any]

    @property
    def label(self) -> str:
        """How a message names the cell."""
        return f"cell {self.number}" + (f" ({self.id})" if self.id else "")


def read(notebook: Path | Notebook) -> Notebook:
    """The notebook's JSON document.

    Raises:
        UsageError: there is no such file, or it is not a notebook of format 4.
    """
    if not isinstance(notebook, Path):
        return notebook
    try:
        document = json.loads(notebook.read_bytes())
    except FileNotFoundError:
        raise UsageError("no such notebook", where=str(notebook), fix="`ls notebooks` shows them") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"not a notebook: {error}", where=str(notebook), fix="restore it from git") from None
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise UsageError("not a notebook of format 4: it has no list of cells", where=str(notebook))
    return document


def read_json(path: Path) -> Any:
    """The JSON document in a file.

    Raises:
        UsageError: there is none, or it is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"not readable as JSON: {error}", where=str(path)) from None


def cells(notebook: Notebook) -> Iterator[Cell]:
    """The cells, in order. Cells that are not objects are passed over; the linter reports them."""
    for number, raw in enumerate(notebook.get("cells", ()), start=1):
        if not isinstance(raw, Mapping):
            continue
        source = raw.get("source", "")
        metadata = raw.get("metadata", {})
        tags = metadata.get("tags", ()) if isinstance(metadata, Mapping) else ()
        yield Cell(
            number=number,
            id=str(raw.get("id", "")),
            code=raw.get("cell_type") == "code",
            source="".join(source) if isinstance(source, list) else str(source),
            tags=tuple(str(tag) for tag in tags) if isinstance(tags, list | tuple) else (),
            raw=raw,
        )


def tagged(notebook: Notebook, tag: str) -> list[Cell]:
    """The code cells that carry `tag`."""
    return [cell for cell in cells(notebook) if cell.code and tag in cell.tags]


def lab_metadata(notebook: Notebook) -> Mapping[str, Any]:
    """The notebook's `metadata.nemolab`, empty if it has none."""
    metadata = notebook.get("metadata", {})
    found = metadata.get("nemolab", {}) if isinstance(metadata, Mapping) else {}
    return found if isinstance(found, Mapping) else {}
