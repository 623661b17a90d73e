"""How a step or a run ended: one vocabulary for runner, record, report and exit code."""

from __future__ import annotations

from enum import StrEnum

from nemolab.core.errors import ExitCode


class Status(StrEnum):
    """Status of a step, or of a whole run."""

    PASSED = "passed"
    FAILED = "failed"  # an expectation was not met
    ERROR = "error"  # an exception
    TIMED_OUT = "timed out"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    NOT_RUN = "not run"
    WAITING = "waiting for sign-off"
    RUNNING = "running"  # only while its runner lives

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a run that ended so."""
        return _EXIT[self]


_EXIT = {
    Status.PASSED: ExitCode.PASSED,
    Status.SKIPPED: ExitCode.PASSED,
    Status.FAILED: ExitCode.FAILED,
    Status.WAITING: ExitCode.FAILED,
    Status.NOT_RUN: ExitCode.ERROR,
    Status.ERROR: ExitCode.ERROR,
    Status.TIMED_OUT: ExitCode.KILLED,
    Status.KILLED: ExitCode.KILLED,
    Status.RUNNING: ExitCode.KILLED,
    Status.INTERRUPTED: ExitCode.INTERRUPTED,
}
