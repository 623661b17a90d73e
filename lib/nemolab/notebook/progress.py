"""Progress of long work: on the terminal when headless, as a widget when a person is there, never in an output.

Whatever a kernel prints becomes an output of the notebook. So a headless run writes its progress as JSON lines to the
file that `NEMOLAB_PROGRESS` names, and the runner, which has a terminal, prints it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from nemolab.core import step
from nemolab.notebook import frontend

T = TypeVar("T")
FILE = "NEMOLAB_PROGRESS"
_EVERY = 0.2  # seconds between two updates; the first and the last are always written


class _Sink(Protocol):
    def update(self, label: str, done: float, total: float | None, note: str) -> None: ...
    def close(self) -> None: ...


class Bar:
    """A running piece of work. Also a callback: `bar(done, total, note)`."""

    def __init__(self, sink: _Sink, total: float | None, label: str) -> None:
        self.total, self.label, self.done, self.note = total, label, 0.0, ""
        self._sink, self._last = sink, 0.0
        self._update(force=True)

    def advance(self, by: float = 1, note: str | None = None) -> None:
        """`by` more units are done; `note` says what is being done now."""
        self(self.done + by, note=note)

    def __call__(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """`done` units are done in all; `total` corrects what was expected."""
        self.done = done
        self.total = total if total is not None else self.total
        self.note = note if note is not None else self.note
        self._update(force=self.total is not None and done >= self.total)

    def _update(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self._last >= _EVERY:
            self._last = now
            self._sink.update(self.label, self.done, self.total, self.note)


@contextlib.contextmanager
def bar(total: float | None, label: str) -> Iterator[Bar]:
    """Progress of a block: `with progress.bar(len(levels), "ladder") as bar: ...; bar.advance()`.

    Args:
        total: units of work, None if unknown.
        label: what is being done.
    """
    sink = _sink()
    running = Bar(sink, total, label)
    try:
        yield running
        running._update(force=True)
    finally:
        sink.close()


def track(items: Iterable[T], label: str) -> Iterator[T]:
    """`items`, one by one, with progress."""
    with bar(len(items) if isinstance(items, Sized) else None, label) as running:
        for item in items:
            yield item
            running.advance()


def say(sentence: str) -> None:
    """One line for whoever watches the terminal; not part of the notebook."""
    if not frontend.person_is_there():
        _sink().update(sentence, 0, None, "")


def _sink() -> _Sink:
    if path := os.environ.get(FILE):
        return _File(path)
    if frontend.person_is_there():
        return _Widget()
    if frontend.kernel() is None and sys.stderr.isatty():
        return _Terminal()
    return _Nothing()


class _Nothing:
    def update(self, label: str, done: float, total: float | None, note: str) -> None: ...
    def close(self) -> None: ...


class _File:
    def __init__(self, path: str) -> None:
        self._path, self._step = path, step.current().name or ""

    def update(self, label: str, done: float, total: float | None, note: str) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"step": self._step, "label": label, "done": done, "total": total, "note": note, "at": at}
        # One write of one line to a file opened for appending: steps that run side by side do not mix. A full disk
        # must not stop a measurement for the sake of its progress.
        with contextlib.suppress(OSError), open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def close(self) -> None: ...


class _Terminal:
    def update(self, label: str, done: float, total: float | None, note: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line(label, done, total, note)}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Widget:
    """An ipywidgets bar that goes when the work is done."""

    def __init__(self) -> None:
        self._box: Any = None

    def update(self, label: str, done: float, total: float | None, note: str) -> None:
        import ipywidgets as widgets
        from IPython.display import display

        if self._box is None:
            self._bar = widgets.FloatProgress(min=0, layout={"width": "20em"})
            self._text = widgets.Label()
            self._box = widgets.HBox([self._bar, self._text])
            self._handle = display(self._box, display_id=True)  # type: ignore[no-untyped-call]
        self._bar.max, self._bar.value = total or 1, done if total else 0
        self._text.value = line(label, done, total, note)

    def close(self) -> None:
        if self._box is not None:
            from IPython.display import clear_output

            for widget in (self._bar, self._text, self._box):
                widget.close()
            if frontend.has_output():  # outputs of the cell that must stay; the bar's becomes an empty one
                self._handle.update({}, raw=True)
            else:
                clear_output()  # type: ignore[no-untyped-call]


def line(label: str, done: float, total: float | None, note: str = "") -> str:
    """Progress as one line: `ladder 3/8  concurrency 16`."""
    count = f" {done:g}/{total:g}" if total else (f" {done:g}" if done else "")
    return f"{label}{count}" + (f"  {note}" if note else "")
