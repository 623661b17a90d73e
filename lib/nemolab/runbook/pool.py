"""Worker processes at work: start, listen, limits of time, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing import connection
from typing import Any

from nemolab.runbook import worker
from nemolab.runbook.job import AtCell, Ending, Job, Outcome, Started

GRACE = 5.0  # seconds between asking a worker to end and ending it


@dataclass
class _Active:
    job: Job
    process: Any
    channel: connection.Connection
    deadline: float
    timeout: float
    kernel: int | None = None
    at: AtCell | None = None
    outcome: Outcome | None = None
    verdict: Outcome | None = None  # why the pool ended it
    kill_at: float | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened to the worker `name`: it came to a cell, or it ended."""

    name: str
    what: AtCell | Outcome


class Pool:
    """The running workers, by name."""

    def __init__(self) -> None:
        self._context = worker.warm()
        self._active: dict[str, _Active] = {}

    def __len__(self) -> int:
        return len(self._active)

    def names(self) -> list[str]:
        """Workers that run."""
        return list(self._active)

    def start(self, name: str, job: Job, *, timeout: float) -> None:
        """Start a worker; `timeout` is in seconds for the whole step."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=worker.main, args=(job, theirs), name=name)
        process.start()
        theirs.close()
        self._active[name] = _Active(job, process, ours, time.monotonic() + timeout, timeout)

    def end(self, name: str, why: Outcome) -> None:
        """Ask a worker to end; `why` is what its outcome will be. Asked again, it is ended at once."""
        active = self._active[name]
        if active.verdict is None:
            active.verdict = _placed(why, active.at)
            active.kill_at = time.monotonic() + GRACE
            _send(active.process.pid, signal.SIGINT)
        else:
            active.kill_at = 0.0

    def poll(self, timeout: float) -> Iterator[Event]:
        """Wait up to `timeout` seconds, or until a worker ends, and tell what happened.

        Messages do not wake it: a notebook of a hundred quick cells would have this process compute beside it.
        """
        connection.wait([active.process.sentinel for active in self._active.values()], timeout)
        for name, active in list(self._active.items()):
            yield from (Event(name, cell) for cell in _listen(active))
            self._enforce(name, active)
            if not active.process.is_alive():
                yield from (Event(name, cell) for cell in _listen(active))  # what was sent last
                del self._active[name]
                yield Event(name, self._close(active))

    def abandon(self) -> None:
        """End everything now."""
        for active in self._active.values():
            _kill(active)
            active.process.join()
            active.channel.close()
        self._active.clear()

    def _enforce(self, name: str, active: _Active) -> None:
        now = time.monotonic()
        if active.verdict is None and now > active.deadline:
            why = f"the step ran longer than {active.timeout:g} s"
            if active.at:
                why += f", in cell {active.at.number} of {active.at.of}"
            self.end(name, Outcome(Ending.TIMED_OUT, message=why))
        if active.kill_at is not None and now > active.kill_at:
            _kill(active)

    def _close(self, active: _Active) -> Outcome:
        active.process.join()
        _kill(active)  # a kernel that outlived its worker
        active.channel.close()
        if active.verdict and not (active.outcome and active.outcome.ending is Ending.DONE):
            return active.verdict
        if active.outcome:
            return active.outcome
        code = active.process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with code {code}"
        return _placed(Outcome(Ending.KILLED, message=f"the worker {how}"), active.at)


def _placed(outcome: Outcome, at: AtCell | None) -> Outcome:
    return replace(outcome, cell=at.number, cell_id=at.cell_id) if at else outcome


def _listen(active: _Active) -> Iterator[AtCell]:
    while not active.channel.closed:
        try:
            if not active.channel.poll():
                return
            message = active.channel.recv()
        except (EOFError, OSError):
            active.channel.close()
            return
        if isinstance(message, Outcome):
            active.outcome = message
        elif isinstance(message, Started):
            active.kernel = message.kernel_pid
        elif isinstance(message, AtCell):
            active.at = message
            yield message


def _kill(active: _Active) -> None:
    """Kill the worker and the kernel with their groups. Servers lead groups of their own and are not touched."""
    if active.kernel is not None:
        _send(active.kernel, signal.SIGKILL, os.killpg)  # the group outlives a kernel that left children behind
        active.kernel = None
    if active.process.is_alive():
        _send(active.process.pid, signal.SIGKILL, os.killpg)
        active.process.kill()  # forked a moment ago, it leads no group yet


def _send(pid: int, number: signal.Signals, how: Callable[[int, int], None] = os.kill) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        how(pid, number)
