"""What the runner hands to a worker process, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """One notebook to execute.

    Attributes:
        notebook: source to read.
        parameters: to inject; None keeps the cell that papermill injected before, as a replay wants.
        scratch: private folder: the raw executed notebook, the log, the kernel's connection.
        environment: of the kernel, on top of this process's.
        cwd: of the kernel.
        cell_timeout: seconds for one cell.
    """

    notebook: Path
    parameters: dict[str, Any] | None
    scratch: Path
    environment: dict[str, str]
    cwd: Path
    cell_timeout: float

    @property
    def raw(self) -> Path:
        """The executed notebook as it grows."""
        return self.scratch / "notebook.ipynb"

    @property
    def log(self) -> Path:
        """What worker and kernel wrote to their terminals."""
        return self.scratch / "log.txt"


class Ending(StrEnum):
    """How the execution of a notebook ended."""

    DONE = "done"
    ERROR = "error"  # an exception in a cell
    TIMED_OUT = "timed out"  # a cell, or the step
    KILLED = "killed"  # kernel or worker
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"  # the worker itself, or before the first cell


@dataclass(frozen=True)
class Outcome:
    """How it ended and where.

    Attributes:
        cell: number of the code cell that it ended in, from 1.
        kind: exception class.
        traceback: last lines, with colour codes.
    """

    ending: Ending
    kind: str = ""
    message: str = ""
    cell: int | None = None
    cell_id: str | None = None
    traceback: str = ""


@dataclass(frozen=True)
class Started:
    """The kernel runs."""

    kernel_pid: int


@dataclass(frozen=True)
class AtCell:
    """Execution has come to a code cell: its number from 1, of how many, and its id."""

    number: int
    of: int
    cell_id: str
