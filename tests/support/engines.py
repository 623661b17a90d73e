"""What tests of engines share: a launch of the fake engine, and looking whether processes and ports are gone."""

from __future__ import annotations

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


def closed(port: int) -> bool:
    """Whether nobody listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
