"""Which process a pid means: a number alone is given to another process sooner or later."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_PROC = Path("/proc")


def born(pid: int) -> str | None:
    """When process `pid` started, as an opaque text to compare; None when it is gone, or dead and not yet reaped."""
    if (_PROC / "self" / "stat").exists():
        try:
            # The second field, the name, is in brackets and may hold anything: count from the last bracket.
            fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return f"{process.create_time():.2f}"
    return None


def alive(pid: int | None, started: str | None) -> bool:
    """Whether the process that had `pid` and started at `started` still runs."""
    return pid is not None and started is not None and born(pid) == started


def watch_fd(pid: int) -> int | None:
    """A file descriptor that becomes readable when `pid` ends; None where the system has none or it has ended."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
