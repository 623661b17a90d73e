"""What a person sees while a run goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import IO, Any, Protocol

from nemolab.core.status import Status
from nemolab.notebook.progress import line
from nemolab.runbook.record import StepRecord

MARKS = {
    Status.PASSED: "+",
    Status.FAILED: "x",
    Status.ERROR: "!",
    Status.TIMED_OUT: "!",
    Status.KILLED: "!",
    Status.INTERRUPTED: "!",
    Status.SKIPPED: "-",
    Status.NOT_RUN: "-",
    Status.WAITING: "?",
    Status.RUNNING: ">",
}


class Console(Protocol):
    """Told of everything that happens in a run."""

    def started(self, step: StepRecord) -> None: ...
    def progress(self, step_id: str, text: str) -> None: ...
    def ended(self, step: StepRecord) -> None: ...
    def note(self, text: str) -> None: ...
    def close(self) -> None: ...


def sentence(step: StepRecord) -> str:
    """A step's ending as one line; the status is a word, not only a colour."""
    text = f"{MARKS[step.status]} {step.name}: {step.status.value}"
    if step.kept_from:
        text += f" (kept from {step.kept_from})"
    elif step.seconds is not None:
        text += f" in {duration(step.seconds)}"
    return f"{text}: {step.reason}" if step.reason else text


def duration(seconds: float) -> str:
    """`7.3 s`, `2 min 05 s`, `1 h 12 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"


class Lines:
    """One line an event; a long step says every half minute that it lives."""

    EVERY = 30.0

    def __init__(self, out: IO[str] | None = None) -> None:
        self._out = out or sys.stderr
        self._said: dict[str, float] = {}

    def started(self, step: StepRecord) -> None:
        self._said[step.id] = time.monotonic()
        self.note(f"> {step.name}: {step.title}")

    def progress(self, step_id: str, text: str) -> None:
        if time.monotonic() - self._said.get(step_id, 0.0) >= self.EVERY:
            self._said[step_id] = time.monotonic()
            self.note(f"  {step_id}: {text}")

    def ended(self, step: StepRecord) -> None:
        self.note(sentence(step))

    def note(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def close(self) -> None: ...


class Live:
    """Ended steps as lines, running ones in a table that moves."""

    def __init__(self) -> None:
        from rich.console import Console as Rich
        from rich.live import Live as RichLive

        self._console = Rich(stderr=True, highlight=False)
        self._running: dict[str, tuple[str, float, str]] = {}
        self._live = RichLive(console=self._console, refresh_per_second=4, get_renderable=self._table, transient=True)
        self._live.start()

    def started(self, step: StepRecord) -> None:
        self._running[step.id] = (step.name, time.monotonic(), "starting")

    def progress(self, step_id: str, text: str) -> None:
        if step_id in self._running:
            name, since, _ = self._running[step_id]
            self._running[step_id] = (name, since, text)

    def ended(self, step: StepRecord) -> None:
        from rich.text import Text

        self._running.pop(step.id, None)
        style = "green" if step.status is Status.PASSED else "dim" if step.status is Status.NOT_RUN else "red"
        self._console.print(Text(sentence(step), style="" if step.status is Status.SKIPPED else style))

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)

    def close(self) -> None:
        self._live.stop()

    def _table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for name, since, text in self._running.values():
            table.add_row(Text(f"> {name}", style="bold"), duration(time.monotonic() - since), Text(text))
        return table


def best() -> Console:
    """The console that suits where standard error goes."""
    return Live() if sys.stderr.isatty() else Lines()


class Tail:
    """Follows a progress file: each call of `latest` gives the newest line that was not seen, as text."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def latest(self) -> str | None:
        """The newest progress, None if there is none since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return None
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for text in reversed(whole.splitlines()):
            try:
                entry = json.loads(text)
                return line(entry["label"], entry["done"], entry["total"], entry["note"])
            except (ValueError, KeyError, TypeError):
                continue
        return None
