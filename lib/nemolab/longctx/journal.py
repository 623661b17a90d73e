"""Rows on disk as they come, so that a suite of hours can be resumed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nemolab.client.endpoint import Endpoint
from nemolab.core.errors import NemolabError, UsageError
from nemolab.longctx.failures import Outcome
from nemolab.longctx.rows import Row, Suite

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = 1


class Journal:
    """A JSON-lines file: a head that names the suite, then a row a line. Without a path it keeps nothing.

    The head comes with the first row: a suite that could not begin leaves no file that another one would stumble over.
    """

    def __init__(self, file: IO[str] | None, known: dict[str, Row], head: str = "") -> None:
        self._file, self._known, self._head = file, known, head
        self._adapter: TypeAdapter[Row] | None = None

    @classmethod
    def open(cls, path: Path | None, endpoint: Endpoint, suite: Suite, tokenizer: str) -> Journal:
        """Open `path` to go on, or begin it.

        Raises:
            UsageError: it belongs to another suite, model or tokenizer.
            NemolabError: it cannot be written.
        """
        if path is None:
            return cls(None, {})
        from pydantic import TypeAdapter

        body = TypeAdapter(Suite).dump_python(suite, mode="json") | {"model": endpoint.model, "tokenizer": tokenizer}
        # What may change between two sittings: how much is asked, not what a row means.
        for free in ("haystacks", "lengths", "budget_s", "stop_at", "recheck", "stall_s", "tasks"):
            body.pop(free)
        head = {"schema": SCHEMA, "suite": hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}
        known = _read(path, head) if path.exists() and path.stat().st_size else {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise NemolabError(f"cannot write: {error.strerror}", where=str(path)) from error
        return cls(file, known, json.dumps(head) + "\n")

    def row(self, name: str) -> Row | None:
        """The row of that id, if it was asked before and the engine lived through it."""
        row = self._known.get(name)
        return None if row is None or row.outcome is Outcome.ENGINE_DIED else row

    def add(self, row: Row) -> None:
        """Keep a row."""
        if self._file is None:
            return
        from pydantic import TypeAdapter

        self._adapter = self._adapter or TypeAdapter(Row)
        head = "" if self._file.tell() else self._head
        self._file.write(f"{head}{self._adapter.dump_json(row).decode()}\n")
        self._file.flush()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            empty = not self._file.tell()
            self._file.close()
            if empty:
                Path(self._file.name).unlink(missing_ok=True)


def rows(path: Path) -> tuple[Row, ...]:
    """The rows of a journal; half a line at its end, from a crash, is passed over.

    Raises:
        UsageError: there is no journal.
    """
    try:
        return tuple(_read(path, None).values())
    except OSError as error:
        raise UsageError(f"cannot read: {error.strerror}", where=str(path)) from None


def _read(path: Path, head: dict[str, object] | None) -> dict[str, Row]:
    from pydantic import TypeAdapter, ValidationError

    first, *lines = path.read_text(encoding="utf-8").split("\n")
    try:
        found = json.loads(first)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "suite" not in found or (head is not None and found != head):
        raise UsageError(
            "this journal belongs to another suite, model or tokenizer", where=str(path), fix="name another file"
        )
    adapter = TypeAdapter(Row)
    out: dict[str, Row] = {}
    for line in lines:
        try:
            row = adapter.validate_json(line)
        except ValidationError:
            continue
        out[row.id] = row
    return out
