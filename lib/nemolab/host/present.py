"""Facts as rows that people read. *unknown* is written out."""

from __future__ import annotations

from typing import Any

from nemolab.core.sizes import MIB, gib
from nemolab.host.facts import Disk, Gpu, HostFacts

UNKNOWN = "unknown"


def rows(host: HostFacts) -> list[dict[str, str]]:
    """The machine, one fact a row."""
    found = host.network.ports
    shown = {
        "system": host.system.os,
        "kernel": host.system.kernel,
        "product": host.system.product,
        "virtual machine": host.system.virtual,
        "container": host.system.container,
        "processor": host.cpu.model,
        "usable cores": _number(host.cpu.usable),
        "load average": _number(host.cpu.load_1m),
        "memory": _size(host.memory.total),
        "memory free": _size(host.memory.usable),
        "cgroup memory limit": "none" if host.memory.limit is None else gib(host.memory.limit),
        "swap": "none" if host.memory.swap_total == 0 else _size(host.memory.swap_total),
        "huge pages": host.memory.transparent_hugepages,
        "NUMA nodes": None if host.memory.numa is None else str(len(host.memory.numa)),
        "open files": None if host.limits.nofile is None else _limit(host.limits.nofile.hard),
        "locked memory": None if host.limits.memlock is None else _limit(host.limits.memlock.hard, size=True),
        "clock synchronised": _truth(host.clock.synchronised),
        "firewall": host.network.firewall,
        "ports": ", ".join(f"{p.number} {_port(p.free, p.holder)}" for p in found) or "not asked",
        "Python": host.software.python,
        "Docker": host.containers.docker,
        "NVIDIA Container Toolkit": host.containers.toolkit,
        "NVIDIA driver": "none" if host.gpus == () and not host.driver.version else host.driver.version,
        "CUDA of the driver": "none" if host.gpus == () and not host.driver.cuda else host.driver.cuda,
        "nouveau loaded": _truth(host.driver.nouveau_loaded),
        "Secure Boot": _truth(host.security.secure_boot),
        "Hugging Face token set": _truth(host.security.hf_token),
    }
    return [{"fact": name, "value": value or UNKNOWN} for name, value in shown.items()]


def disk_rows(host: HostFacts) -> list[dict[str, Any]]:
    """Disks, sizes in GB."""
    return [_disk(disk) for disk in host.disks]


def gpu_rows(host: HostFacts) -> list[dict[str, str]]:
    """GPUs, one a row."""
    return [_gpu(gpu) for gpu in host.gpus or ()]


def _disk(disk: Disk) -> dict[str, Any]:
    return {
        "disk of": disk.role,
        "file system": disk.filesystem or UNKNOWN,
        "free": None if disk.free is None else round(disk.free / 1e9, 1),
        "total": None if disk.total is None else round(disk.total / 1e9, 1),
        "rotating": _truth(disk.rotational) or UNKNOWN,
    }


def _gpu(gpu: Gpu) -> dict[str, str]:
    memory = "shared with the CPU" if gpu.unified_memory else _size(gpu.memory_total)
    free = None if gpu.memory_free is None else gib(gpu.memory_free)
    bus = f"gen {gpu.pcie_generation} x{gpu.pcie_width}" if gpu.pcie_generation and gpu.pcie_width else None
    shown = {
        "GPU": str(gpu.index),
        "name": gpu.name,
        "compute capability": gpu.compute_capability,
        "memory": memory,
        "free": free,
        "PCIe": bus,
        "NVLinks up": None if gpu.nvlinks_active is None else f"{gpu.nvlinks_active} of {gpu.nvlinks}",
        "power limit": None if gpu.power_limit is None else f"{gpu.power_limit:g} W",
        "temperature": None if gpu.temperature is None else f"{gpu.temperature} °C",
        "clocks held by": None if gpu.clock_event_reasons is None else ", ".join(gpu.clock_event_reasons) or "nothing",
        "ECC": _truth(gpu.ecc),
        "MIG": _truth(gpu.mig),
        "processes": None if gpu.processes is None else str(len(gpu.processes)),
    }
    return {name: value or UNKNOWN for name, value in shown.items()}


def _size(value: int | None) -> str | None:
    return None if value is None else gib(value)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _truth(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _limit(value: int, *, size: bool = False) -> str:
    return "unlimited" if value < 0 else f"{value / MIB:,.0f} MiB" if size else f"{value:,}"


def _port(free: bool | None, holder: str | None) -> str:
    return UNKNOWN if free is None else "free" if free else f"taken by {holder}" if holder else "taken"
