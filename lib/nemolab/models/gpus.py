"""GPUs: memory as driver and engine report it, bandwidth, dense FLOP/s, compute capability. Each with its source.

`memory` is what CUDA gives an engine, which vLLM multiplies with --gpu-memory-utilization; it is less than what
`nvidia-smi` prints, and much less than the name on the box. A measured host is better than this table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nemolab.core.errors import UsageError
from nemolab.core.sizes import GIB
from nemolab.models.evidence import H200, Evidence, Source

_ISSUES = "total capacity in public CUDA out-of-memory messages, 2025-2026"
_SMI = "public nvidia-smi output, 2025-2026"
_SPEC = "NVIDIA data sheet, dense"
_VERDA = "verda.com, GB300 NVL72 architecture, per-GPU table (dense)"
_AIC = "ai-dynamo/aiconfigurator, systems/b300_sxm.yaml, 2026-08"


@dataclass(frozen=True, slots=True)
class GpuKind:
    """A kind of GPU.

    Attributes:
        name: as the planner takes it.
        memory_gib: total that CUDA reports to an engine, GiB as printed, two decimals.
        driver_mib: total that `nvidia-smi` prints; None where it prints none.
        bandwidth: memory bandwidth, bytes a second.
        flops: dense tensor operations a second by format.
        per_node: GPUs of one usual machine.
        unified: CPU and GPU share the memory.
    """

    name: str
    product: str  # part of NVML's name
    memory_gib: float
    driver_mib: int | None
    bandwidth: float
    flops: dict[str, float]
    compute_capability: str
    per_node: int = 8
    unified: bool = False
    aliases: tuple[str, ...] = ()
    sources: tuple[Source, ...] = field(default_factory=tuple)

    @property
    def memory(self) -> int:
        """Memory in bytes, from the rounded GiB: right to 5 MiB."""
        return round(self.memory_gib * GIB)

    def peak(self, weights: str, *, weight_only: bool = False) -> float:
        """Dense FLOP/s for weights of a format; what the GPU cannot multiply natively runs as BF16."""
        return self.flops["bf16"] if weight_only else self.flops.get(weights, self.flops["bf16"])


def _seen(memory: str, smi: str, speed: str, evidence: Evidence = Evidence.THIRD_PARTY) -> tuple[Source, ...]:
    rows = (("memory as the engine sees it", memory), ("memory as the driver reports it", smi), ("speeds", speed))
    return tuple(Source(what, where, evidence) for what, where in rows if where)


_T, _GB = 1e12, 1e9

ALL: tuple[GpuKind, ...] = (
    GpuKind(
        "a100", "A100-SXM4-80GB", 79.15, 81_920, 2039 * _GB, {"bf16": 312 * _T}, "8.0",
        aliases=("a100-80", "a100-80gb"), sources=_seen(_ISSUES, _SMI, _SPEC),
    ),
    GpuKind(
        "h100", "H100 80GB HBM3", 79.18, 81_559, 3350 * _GB, {"bf16": 989 * _T, "fp8": 1979 * _T}, "9.0",
        aliases=("h100-80", "h100-80gb", "h100-sxm"), sources=_seen(_ISSUES, _SMI, _SPEC),
    ),
    GpuKind(
        "h200", "H200", 139.80, 143_771, 4800 * _GB, {"bf16": 989 * _T, "fp8": 1979 * _T}, "9.0",
        aliases=("h200-sxm",),
        sources=(Source("memory as the engine sees it", H200, Evidence.MEASURED), *_seen("", _SMI, _SPEC)),
    ),
    GpuKind(
        "b200", "B200", 178.35, 183_359, 7700 * _GB, {"bf16": 2250 * _T, "fp8": 4500 * _T, "nvfp4": 9000 * _T}, "10.0",
        aliases=("b200-sxm",), sources=_seen(_ISSUES, _SMI, _VERDA),
    ),
    GpuKind(
        "gb200", "GB200", 184.31, 189_471, 7700 * _GB, {"bf16": 2250 * _T, "fp8": 4500 * _T, "nvfp4": 9000 * _T},
        "10.0", per_node=4, sources=_seen(_ISSUES, _SMI, f"{_VERDA}; NVIDIA's rack figures give 10 % more"),
    ),
    GpuKind(
        "b300", "B300", 267.69, 275_040, 7750 * _GB, {"bf16": 2250 * _T, "fp8": 4500 * _T, "nvfp4": 14_000 * _T},
        "10.3", aliases=("b300-sxm",), sources=_seen(_ISSUES, _SMI, _AIC),
    ),
    GpuKind(
        "gb300", "GB300", 276.50, 284_208, 8000 * _GB, {"bf16": 2500 * _T, "fp8": 5000 * _T, "nvfp4": 15_000 * _T},
        "10.3", per_node=4, sources=_seen(_ISSUES, _SMI, _VERDA),
    ),
    GpuKind(
        "gb10", "GB10", 121.70, None, 273 * _GB, {"bf16": 125 * _T, "fp8": 250 * _T, "nvfp4": 500 * _T}, "12.1",
        per_node=1, unified=True, aliases=("dgx-spark", "spark"),
        sources=_seen("community report, 2026", "", "273 GB/s and 1 PFLOP sparse FP4, DGX Spark data sheet; halved"),
    ),
    GpuKind(
        "rtx-pro-6000", "RTX PRO 6000 Blackwell", 94.97, 97_887, 1792 * _GB,
        {"bf16": 500 * _T, "fp8": 1000 * _T, "nvfp4": 2000 * _T}, "12.0", aliases=("rtx-pro-6000-blackwell",),
        sources=_seen(_ISSUES, _SMI, "4 PFLOP sparse FP4, NVIDIA data sheet; halved for dense and for each format"),
    ),
)  # fmt: skip


def names() -> tuple[str, ...]:
    """Names that the planner takes."""
    return tuple(kind.name for kind in ALL)


def find(name: str) -> GpuKind:
    """The kind of that name or alias; NVML's product names work too.

    Raises:
        UsageError: no such kind.
    """
    wanted = re.sub(r"[_\s]+", "-", name.strip().lower())
    for kind in ALL:
        if wanted == kind.name or wanted in kind.aliases:
            return kind
    if (found := match(name)) is not None:
        return found
    raise UsageError(
        f"no GPU kind {name!r}",
        where="--gpu",
        fix=f"one of: {', '.join(names())}; or give the memory with --gpu-memory-gib",
    )


def match(product: str) -> GpuKind | None:
    """The kind whose product name is part of what NVML calls the device, such as "NVIDIA H200"."""
    found = [kind for kind in ALL if re.search(rf"(?<![A-Za-z0-9]){re.escape(kind.product)}(?![A-Za-z0-9])", product)]
    return max(found, key=lambda kind: len(kind.product), default=None)
