"""A memory limit that several processes share: a control group of the tests' own, where this user may make one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def shared_limit(limit: int) -> Iterator[Path]:
    """A group whose processes have `limit` bytes together; yields the file that a pid is written into.

    Skips the test where no group can be made: not root, or control groups are read-only.
    """
    old = (ROOT / "memory").is_dir()  # version 1 has a hierarchy for each controller
    group = (ROOT / "memory" if old else ROOT) / f"nemolab-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    try:
        try:
            (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit))
        except OSError as error:
            pytest.skip(f"control groups here do not limit memory: {error.strerror}")
        with contextlib.suppress(OSError):  # no swap to hide in; absent where swap is not counted
            (group / ("memory.memsw.limit_in_bytes" if old else "memory.swap.max")).write_text(str(limit if old else 0))
        yield group / "cgroup.procs"
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):  # busy for a moment after its last process has ended
                group.rmdir()
                break
            time.sleep(0.02)
