"""GPUs through `nvidia-smi`, where NVML's Python binding is not installed: fewer facts, the same meaning."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from nemolab.core.sizes import MIB
from nemolab.host.facts import Gpu
from nemolab.host.probe import Probe

# Field of `nvidia-smi --query-gpu` -> field of Gpu and how its text is read.
_QUERY = (
    "index", "name", "compute_cap", "pci.bus_id", "memory.total", "memory.free", "memory.reserved",
    "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max", "power.draw",
    "enforced.power.limit", "power.default_limit", "power.min_limit", "power.max_limit", "clocks.sm", "clocks.max.sm",
    "clocks.mem", "clocks.max.mem", "temperature.gpu", "pstate", "ecc.mode.current", "mig.mode.current",
    "persistence_mode", "compute_mode", "utilization.gpu", "driver_version",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reply:
    """What `nvidia-smi` said; None when it did not."""

    gpus: tuple[Gpu, ...] | None = None
    driver: str | None = None


def ask(probe: Probe) -> Reply:
    """Ask `nvidia-smi`."""
    text = probe.output("nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits", timeout=20.0)
    return Reply() if text is None else parse(text)


def parse(text: str) -> Reply:
    """GPUs from the query's CSV. Links between GPUs stay unknown: `topo -m` is a table for people."""
    rows = _rows(text)
    return Reply(tuple(map(_gpu, rows)), rows[0]["driver_version"] if rows else None)


def _rows(text: str) -> list[dict[str, str]]:
    found = csv.reader(io.StringIO(text), skipinitialspace=True)
    return [dict(zip(_QUERY, row, strict=True)) for row in found if len(row) == len(_QUERY)]


def _gpu(row: dict[str, str]) -> Gpu:
    def number(name: str) -> float | None:
        try:
            return float(row[name])
        except ValueError:
            return None  # "[N/A]", "[Not Supported]", "[Unknown Error]"

    def whole(name: str) -> int | None:
        value = number(name)
        return None if value is None else int(value)

    def size(name: str) -> int | None:
        value = number(name)
        return None if value is None else int(value * MIB)

    def truth(name: str) -> bool | None:
        return {"Enabled": True, "Disabled": False}.get(row[name])

    total = size("memory.total")
    return Gpu(
        index=whole("index") or 0,
        name=row["name"],
        compute_capability=row["compute_cap"] if number("compute_cap") is not None else None,
        bus=row["pci.bus_id"],
        memory_total=total,
        memory_free=size("memory.free"),
        memory_reserved=size("memory.reserved"),
        unified_memory=total is None,
        pcie_generation=whole("pcie.link.gen.current"),
        pcie_generation_max=whole("pcie.link.gen.max"),
        pcie_width=whole("pcie.link.width.current"),
        pcie_width_max=whole("pcie.link.width.max"),
        power_draw=number("power.draw"),
        power_limit=number("enforced.power.limit"),
        power_limit_default=number("power.default_limit"),
        power_limit_min=number("power.min_limit"),
        power_limit_max=number("power.max_limit"),
        clock_sm=whole("clocks.sm"),
        clock_sm_max=whole("clocks.max.sm"),
        clock_memory=whole("clocks.mem"),
        clock_memory_max=whole("clocks.max.mem"),
        temperature=whole("temperature.gpu"),
        performance_state=row["pstate"] if row["pstate"].startswith("P") else None,
        ecc=truth("ecc.mode.current"),
        mig=truth("mig.mode.current"),
        persistence=truth("persistence_mode"),
        compute_mode=row["compute_mode"] if not row["compute_mode"].startswith("[") else None,
        utilisation=whole("utilization.gpu"),
    )
