"""Which process a pid means: a number alone is given to another process sooner or later."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MARK = "NEMOLAB_SERVER"  # in the environment of an engine and of all that it starts: see `state.mark`
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


def marked(value: str) -> tuple[int, ...]:
    """Processes that carry `value` as the mark of their server, whatever group or session they went to; those of other
    users cannot be asked."""
    wanted = f"{MARK}={value}".encode()
    found = []
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0") and born(int(folder.name)) is not None:
                found.append(int(folder.name))
    return tuple(found)


def watch_fd(pid: int) -> int | None:
    """A file descriptor that becomes readable when `pid` ends; None where the system has none or it has ended."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
