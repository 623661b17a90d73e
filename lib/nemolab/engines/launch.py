"""A launch: what to start and how to know that it is ready. The same for every engine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from nemolab.core import step
from nemolab.core.errors import UsageError
from nemolab.engines.identity import born
from nemolab.engines.log_rules import EngineLog

RUNNER_PID = "NEMOLAB_RUNNER_PID"  # set by the runner beside core.step's variables


@dataclass(frozen=True, slots=True)
class Launch:
    """One server process, as data.

    Attributes:
        engine: engine's name, as in `nemolab.engines.registry`.
        title: for people: "the miniature on llama.cpp".
        model: name that the server answers to.
        argv: argument list; secrets do not stand in it.
        log: how the engine's log reads.
        host, port: where it listens. Port 0: the engine takes a free one and prints it, which `log.port` finds.
        env: variables to set, as pairs; no secrets.
        secret_env: names of variables that must be set in the caller's environment; the values are kept out of the
            log and of the state file.
        cwd: working folder.
        health: path that answers 200 once requests are taken.
        timeout_s: longest wait until ready.
        grace_s: time between TERM and KILL at the end.
    """

    engine: str
    title: str
    model: str
    argv: tuple[str, ...]
    log: EngineLog
    host: str = "127.0.0.1"
    port: int = 0
    env: tuple[tuple[str, str], ...] = ()
    secret_env: tuple[str, ...] = ()
    cwd: Path | None = None
    health: str = "/health"
    timeout_s: float = 600.0
    grace_s: float = 10.0

    def check(self) -> None:
        """Refuse what cannot work or would leak.

        Raises:
            UsageError: a named secret is not set, or its value stands in `argv` or `env`.
        """
        for name in self.secret_env:
            value = os.environ.get(name)
            if not value:
                raise UsageError(f"environment variable {name} is not set", where=self.title, fix="export it first")
            if any(value in text for text in (*self.argv, *(v for _, v in self.env))):
                raise UsageError(f"the value of {name} stands in the command", where=self.title, fix="leave it out")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose server it is: it ends when this process ends.

    Attributes:
        pid, started: the process; None for a server that is to outlive everyone until it is stopped.
        run: id of the run, for `stop_owned`.
    """

    pid: int | None = field(default=None)
    started: str | None = None
    run: str | None = None

    @classmethod
    def process(cls, pid: int, run: str | None = None) -> Owner:
        """The process `pid`.

        Raises:
            UsageError: it does not run.
        """
        if (started := born(pid)) is None:
            raise UsageError(f"process {pid} does not run, so it cannot own a server")
        return cls(pid, started, run)

    @classmethod
    def current(cls) -> Owner:
        """In a run: the run, by its runner's process. Otherwise: this process."""
        run = step.current().run
        runner = os.environ.get(RUNNER_PID, "") if run else ""
        return cls.process(int(runner) if runner.isdigit() else os.getpid(), run)

    @classmethod
    def nobody(cls) -> Owner:
        """Nobody: the server lives until it is stopped."""
        return cls()
