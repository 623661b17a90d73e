"""What tests of engines share: a launch of the fake engine, and looking whether processes and ports are gone."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nemolab.engines.identity import born
from nemolab.engines.launch import Launch
from nemolab.engines.llamacpp import LOG, Options

FAKE = Path(__file__).with_name("fake_engine.py")
SMALL = Options(ctx=1024, parallel=1, cache_ram=0)


def fake(*arguments: str, **fields: Any) -> Launch:
    """A launch of the fake engine; it listens on a free port unless the arguments say otherwise."""
    argv = (sys.executable, str(FAKE), *(arguments or ("--listen", "0")))
    settings: dict[str, Any] = {"timeout_s": 20.0, "grace_s": 0.3} | fields
    return Launch(engine="llamacpp", title="the fake engine", model="fake", argv=argv, log=LOG, **settings)


def until(true: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    """Wait for something to become true."""
    deadline = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def gone(pid: int) -> bool:
    """Whether no process has this number."""
    return born(pid) is None


def leftovers(folder: Path) -> list[str]:
    """Processes and state files of the servers that were started with this state folder.

    Every process below a server has the folder in its environment, in whichever group or session it is, and whoever
    its parent is by now; this one has it only for what it starts.
    """
    import psutil

    def mark(process: psutil.Process) -> str | None:
        try:
            return None if process.pid == os.getpid() else str(process.environ().get("NEMOLAB_STATE"))
        except psutil.Error:  # another user's, or gone
            return None

    living = [process for process in psutil.process_iter() if mark(process) == str(folder)]
    found = [f"process {process.pid}: {' '.join(process.cmdline())}" for process in living]
    return [*found, *(f"state file {path.name}" for path in folder.rglob("*.json"))]


def closed(port: int) -> bool:
    """Whether nobody listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
