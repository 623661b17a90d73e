"""Process control for any engine: start and wait until ready, stop, list; nothing is left behind.

Every server has a supervisor process (`nemolab.engines.supervise`) and a state file, so it can be stopped from
another process than the one that started it, and it ends with its owner however that dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nemolab.client.endpoint import Endpoint
from nemolab.core.errors import ExitCode, NemolabError
from nemolab.engines import state
from nemolab.engines.health import answers
from nemolab.engines.identity import alive
from nemolab.engines.launch import Launch, Owner
from nemolab.engines.logs import LogReader, LogReport, Seen
from nemolab.engines.ports import listens, require_free
from nemolab.engines.spawn import new_log, reap, spawn
from nemolab.engines.state import ServerState

__all__ = ["Launch", "Owner", "Progress", "Server", "StartError", "ended", "running", "start", "stop", "stop_owned"]

_STARVED = "free host memory (`ps aux --sort -rss` shows who holds it), or take a smaller context or fewer slots"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a start is.

    Attributes:
        elapsed_s: since the start.
        limit_s: when it would be given up.
        phase: what the engine is doing, from its log.
        line: last line of the log.
        new: whether the phase has just begun.
    """

    elapsed_s: float
    limit_s: float
    phase: str
    line: str
    new: bool


@dataclass(frozen=True, slots=True)
class Server:
    """A server that takes requests.

    Attributes:
        id: for `stop` and `nemolab servers`.
        pid: the engine's process.
        port, base_url: where it answers.
        log: path of its log.
        ready_s: seconds from the start until it answered.
        report: what the log said by then.
    """

    id: str
    engine: str
    title: str
    model: str
    pid: int
    port: int
    base_url: str
    log: Path
    since: str
    run: str | None
    ready_s: float
    report: LogReport

    @property
    def endpoint(self) -> Endpoint:
        """The server as clients take it."""
        return Endpoint(self.base_url, self.model, self.engine, self.report.version)


class StartError(NemolabError):
    """A server did not become ready.

    Attributes:
        kind: "exited", "timed out" or "unusable".
        cause: the symptom found in the log, if any.
        tail: last lines of the log, without secrets.
        report: what the log says.
    """

    def __init__(self, kind: str, what: str, log: Path, reader: LogReader, fix: str = "") -> None:
        self.kind = kind
        self.report = reader.report()
        self.cause: Seen | None = reader.fatal or self.report.cause
        self.tail = tuple(reader.tail[-12:])
        if kind == "timed out":
            self.exit_code = ExitCode.KILLED
        text = f"{what}: {self.cause.cause}" if self.cause else what
        if self.tail:
            text += "\n  last lines of the log:\n" + "\n".join(f"    {line}" for line in self.tail)
        unknown = "a longer time-out if that phase is known to be long" if kind == "timed out" else "read the whole log"
        fix = self.cause.fix if self.cause else fix or unknown
        super().__init__(text, where=str(log), fix=fix)

    def __reduce__(self) -> tuple[object, ...]:
        return (NemolabError, (self.what,))


def start(
    launch: Launch,
    owner: Owner | None = None,
    *,
    timeout_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Server:
    """Start a server and wait until it answers. Whatever goes wrong, also Ctrl-C, it is stopped again.

    Args:
        owner: whose it is; by default the run, or this process outside a run.
        timeout_s: instead of the launch's own limit.
        progress: called for each new phase, and several times a second.

    Raises:
        UsageError: the port is taken, or a secret is missing.
        StartError: it exited, is unusable, or was not ready in time; says why, with the last lines of the log.
    """
    launch.check()
    began = time.monotonic()
    with state.claim():
        state.tidy()
        require_free(launch.host, launch.port)
        server_id = state.new_id(launch.engine)
        log = new_log(server_id)
        spawn(launch, owner or Owner.current(), server_id, log)
    try:
        return _wait(launch, server_id, log, began, timeout_s or launch.timeout_s, progress)
    except BaseException:
        stop(server_id)
        state.forget(server_id)
        raise


def stop(server: Server | ServerState | str) -> bool:
    """Stop a server and wait until all its processes are gone; false when there was nothing to stop."""
    server_id = server if isinstance(server, str) else server.id
    known = state.read(server_id)
    if known is None:
        return False
    was_running = known.running
    if known.supervised:
        _signal(known.supervisor, signal.SIGTERM)
        if not _gone(known.supervisor, known.supervisor_started, 30.0):
            _signal(known.supervisor, signal.SIGKILL)  # takes the engine with it on Linux
    if alive(known.pid, known.pid_started):  # an orphan, or a supervisor that had to be killed
        for number, wait_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(known.pid, number)
            if _gone(known.pid, known.pid_started, wait_s):
                break
    reap()
    state.forget(server_id)
    return was_running


def stop_owned(run: str) -> tuple[ServerState, ...]:
    """Stop all servers of a run and forget those that had ended; the ones that were there."""
    servers = tuple(server for server in state.every() if server.run == run)
    for server in servers:
        stop(server)
    return servers


def running() -> tuple[ServerState, ...]:
    """The servers that run now, oldest first."""
    return tuple(server for server in state.every() if server.running)


def ended(base_url: str) -> ServerState | None:
    """The server that was at `base_url` and ended without having been stopped: for whoever finds nobody there."""
    port_of = base_url.rstrip("/")
    gone = [server for server in state.every() if server.base_url == port_of and not server.running and server.ended]
    return gone[-1] if gone else None


def _wait(
    launch: Launch,
    server_id: str,
    log: Path,
    began: float,
    limit_s: float,
    progress: Callable[[Progress], None] | None,
) -> Server:
    reader = LogReader(launch.log)
    pause = 0.01
    with open(log, encoding="utf-8", errors="replace", newline="") as file:
        while True:
            now = time.monotonic() - began
            known = state.read(server_id)
            gone = known is None or not known.supervised or known.ended is not None
            new = reader.feed(file.read(), now)
            if progress:
                last = reader.tail[-1] if reader.tail else ""
                for phase in new or [reader.phase]:
                    progress(Progress(now, limit_s, phase, last, bool(new)))
            if gone:
                reader.finish()
                end = known.ended if known else None
                how = end.reason if end else "its supervisor is gone"
                fix = _STARVED if end and end.starved else ""
                raise StartError("exited", f"{launch.title} did not start, {how}", log, reader, fix)
            if reader.fatal:
                raise StartError("unusable", f"{launch.title} cannot be used", log, reader)
            assert known is not None
            if known.port and answers(known.host, known.port, launch.health) and listens(known.pid, known.port):
                reader.feed(file.read(), now)
                return Server(
                    id=server_id,
                    engine=launch.engine,
                    title=launch.title,
                    model=launch.model,
                    pid=known.pid,
                    port=known.port,
                    base_url=known.base_url,
                    log=log,
                    since=known.since,
                    run=known.run,
                    ready_s=round(time.monotonic() - began, 3),
                    report=reader.report(),
                )
            if now > limit_s:
                what = f"{launch.title} was not ready after {limit_s:g} s, it was at: {reader.phase}"
                raise StartError("timed out", what, log, reader)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.25)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _gone(pid: int, started: str | None, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while alive(pid, started):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
