"""Free memory of this machine's GPUs, and waiting until an ended server's memory is back."""

from __future__ import annotations

import time
from collections.abc import Mapping

RETURNED_MIB = 512  # of a GPU that may be missing after a stop: other processes come and go
_POLL_S = 0.5


def free() -> dict[int, int]:
    """Free memory of every GPU by index, bytes; empty without one."""
    from nemolab.host import nvml
    from nemolab.host.probe import Probe

    return {gpu.index: gpu.memory_free for gpu in nvml.ask(Probe()).gpus or () if gpu.memory_free is not None}


def settle(before: Mapping[int, int], wait_s: float) -> int | None:
    """Wait until every GPU has its memory back: a driver takes a moment to give an ended process's.

    Args:
        before: free memory by index, bytes, as `free` gives it.
        wait_s: longest wait.

    Returns:
        MiB that one GPU still has less than before; None without a GPU.
    """
    if not before:
        return None
    deadline = time.monotonic() + wait_s
    while True:
        after = free()
        missing = max(size - after.get(index, size) for index, size in before.items()) >> 20
        if missing < RETURNED_MIB or time.monotonic() >= deadline:
            return max(0, missing)
        time.sleep(_POLL_S)
