"""The servers that this user runs: one file each under the state folder, written by the server's supervisor."""

from __future__ import annotations

import contextlib
import fcntl
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from nemolab.core import paths
from nemolab.core.files import write_json
from nemolab.engines.identity import alive

KEEP_ENDED_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Ended:
    """How a server ended without having been stopped.

    Attributes:
        at: local time, ISO format.
        code: exit code, negative for a signal, as in `subprocess`.
        reason: one sentence.
        starved: the kernel killed a process of this machine for lack of memory while the server ran.
    """

    at: str
    code: int
    reason: str
    starved: bool = False


@dataclass(frozen=True, slots=True)
class ServerState:
    """What is known of one server, also by processes that did not start it. Holds no secret.

    Attributes:
        id: such as `llamacpp-1`.
        supervisor, supervisor_started: process that watches the engine; ending it ends the server.
        pid, pid_started: the engine's process, leader of its own group.
        port: 0 until the engine has told which one it took.
        since: local time of the start, ISO format.
        run: id of the run it belongs to, None outside a run.
        owner, owner_started: process whose end ends the server; None: it lives until it is stopped.
        argv: with key-shaped parts removed.
    """

    id: str
    engine: str
    title: str
    model: str
    supervisor: int
    supervisor_started: str | None
    pid: int
    pid_started: str | None
    host: str
    port: int
    since: str
    run: str | None
    owner: int | None
    owner_started: str | None
    argv: tuple[str, ...]
    log: str
    ended: Ended | None = None

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}/v1"

    @property
    def supervised(self) -> bool:
        """Whether the supervisor lives."""
        return alive(self.supervisor, self.supervisor_started)

    @property
    def running(self) -> bool:
        """Whether the engine lives, supervised or not."""
        return self.supervised or alive(self.pid, self.pid_started)

    @property
    def orphan(self) -> bool:
        """The engine lives, its supervisor does not."""
        return not self.supervised and alive(self.pid, self.pid_started)

    def describe(self) -> str:
        """One line for messages: which, pid, since when, whose."""
        whose = f"by run {self.run}" if self.run else f"by process {self.owner}" if self.owner else "to keep running"
        orphan = ", an orphan" if self.orphan else ""
        return f"{self.id} (pid {self.pid}{orphan}, started {clock(self.since)} {whose})"


def clock(iso: str) -> str:
    """Time of day, with the date when it is not today."""
    then = datetime.fromisoformat(iso)
    return then.strftime("%H:%M" if then.date() == datetime.now().date() else "%Y-%m-%d %H:%M")


def mark(server_id: str) -> str:
    """What names a server among all that run on this machine; ids are given anew in each state folder."""
    return str(folder() / server_id)


def folder() -> Path:
    """Where the files are."""
    return paths.state() / "servers"


def file_of(server_id: str) -> Path:
    """The state file of a server."""
    return folder() / f"{server_id}.json"


def write(state: ServerState) -> None:
    """Write the state atomically."""
    write_json(file_of(state.id), asdict(state))


def read(server_id: str) -> ServerState | None:
    """The state of a server, None when there is none or it cannot be understood."""
    return _load(file_of(server_id))


def every() -> tuple[ServerState, ...]:
    """All states, those of ended and lost servers too, oldest first."""
    found = [state for path in folder().glob("*.json") if (state := _load(path))]
    return tuple(sorted(found, key=lambda state: state.since))


def forget(server_id: str) -> None:
    """Remove a state file."""
    file_of(server_id).unlink(missing_ok=True)


def tidy() -> None:
    """Remove files of servers that are gone: lost ones at once, those that ended by themselves after a day."""
    for state in every():
        if state.running:
            continue
        old = state.ended and time.time() - datetime.fromisoformat(state.ended.at).timestamp() > KEEP_ENDED_S
        if old or not state.ended:
            forget(state.id)


@contextlib.contextmanager
def claim() -> Iterator[None]:
    """Hold the right to start a server: no two processes look for a port or an id at the same time."""
    folder().mkdir(parents=True, exist_ok=True)
    with open(folder() / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def new_id(engine: str) -> str:
    """The lowest free number of this engine. Call it under `claim`."""
    taken = {path.stem for path in folder().glob("*.json")}
    return next(name for n in range(1, len(taken) + 2) if (name := f"{engine}-{n}") not in taken)


def _load(path: Path) -> ServerState | None:
    try:
        raw: dict[str, Any] = json.loads(path.read_bytes())
        raw["argv"] = tuple(raw["argv"])
        raw["ended"] = Ended(**raw["ended"]) if raw.get("ended") else None
        return ServerState(**{field.name: raw[field.name] for field in fields(ServerState)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
