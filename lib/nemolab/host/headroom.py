"""What there is against what is needed, one resource a row: for a figure that shows where a host is tight."""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.core.sizes import GIB
from nemolab.host.facts import HostFacts
from nemolab.host.requirements import Requirements


@dataclass(frozen=True, slots=True)
class Headroom:
    """One resource; `have` of None is unknown, `need` of 0 asks for nothing."""

    resource: str
    unit: str
    have: float | None
    need: float

    @property
    def ratio(self) -> float | None:
        """How many times what is needed is there."""
        return self.have / self.need if self.have is not None and self.need else None


def headroom(host: HostFacts, need: Requirements) -> tuple[Headroom, ...]:
    """Cores, memory, shared memory, open files, disks and GPU memory."""
    nofile = host.limits.nofile
    rows = [
        Headroom("cores", "", host.cpu.usable, need.cores),
        Headroom("memory", "GiB", _gib(host.memory.usable), need.memory / GIB),
        Headroom(
            "open files", "", None if nofile is None else float("inf") if nofile.hard < 0 else nofile.hard, need.nofile
        ),
    ]
    shm = host.disk("shm")
    rows.append(Headroom("/dev/shm", "GiB", _gib(shm.free if shm else None), need.shm / GIB))
    for role, size in need.disk.items():
        disk = host.disk(role)
        have = disk.free if disk else None
        rows.append(Headroom(f"disk of {role}", "GB", None if have is None else have / 1e9, size / 1e9))
    for gpu in (host.gpus or ())[: need.gpus]:
        rows.append(Headroom(f"GPU {gpu.index} memory", "GiB", _gib(gpu.memory_free), need.gpu_memory_free / GIB))
    return tuple(row for row in rows if row.need)


def _gib(size: int | None) -> float | None:
    return None if size is None else size / GIB
