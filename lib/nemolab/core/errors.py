"""Errors that a person reads, and the exit codes they end in."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `nemolab` command."""

    PASSED = 0
    FAILED = 1  # an expectation or a finding
    USAGE = 2
    ERROR = 3
    KILLED = 4  # timed out or killed
    INTERRUPTED = 130


class NemolabError(Exception):
    """Something a person can act on: what is wrong, where, and how to fix it.

    The command line prints it as one message, without a traceback, and exits with `exit_code`.
    """

    exit_code: ExitCode = ExitCode.ERROR

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  fix: {self.fix}" if self.fix else head

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the message, for the fault is not in the notebook's code."""
        return [f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.fix))


class UsageError(NemolabError):
    """The request itself is wrong: an unknown name, a wrong type, a missing file."""

    exit_code = ExitCode.USAGE


def _rebuild(kind: type[NemolabError], what: str, where: str | None, fix: str | None) -> NemolabError:
    return kind(what, where=where, fix=fix)
