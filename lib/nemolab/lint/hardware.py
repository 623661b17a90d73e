"""Kinds of GPU for lint: those that the planner knows, and smaller ones that people try."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nemolab.models.gpus import GpuKind

# name -> (product, memory in GiB, compute capability). Memory is nominal: about what CUDA reports.
_OTHERS: dict[str, tuple[str, float, str]] = {
    "a10": ("A10", 22.1, "8.6"),
    "a100-40": ("A100-SXM4-40GB", 39.4, "8.0"),
    "h800": ("H800", 79.1, "9.0"),
    "h20": ("H20", 95.1, "9.0"),
    "l4": ("L4", 22.0, "8.9"),
    "l40s": ("L40S", 44.4, "8.9"),
    "rtx-3090": ("GeForce RTX 3090", 23.6, "8.6"),
    "rtx-4080": ("GeForce RTX 4080", 15.7, "8.9"),
    "rtx-4090": ("GeForce RTX 4090", 23.5, "8.9"),
    "rtx-5090": ("GeForce RTX 5090", 31.4, "12.0"),
    "thor": ("Jetson Thor", 122.0, "11.0"),
    "v100": ("V100-SXM2-32GB", 31.7, "7.0"),
}
_ALIASES = {"rtx4090": "rtx-4090", "rtx3090": "rtx-3090", "rtx5090": "rtx-5090", "4090": "rtx-4090", "3090": "rtx-3090"}
_ALIASES |= {"5090": "rtx-5090", "a100-40gb": "a100-40", "jetson-thor": "thor"}


def find(name: str) -> GpuKind:
    """The kind of that name.

    Raises:
        UsageError: no such kind.
    """
    from nemolab.core.errors import UsageError
    from nemolab.models import gpus
    from nemolab.models.evidence import Evidence, Source

    folded = name.strip().lower().replace("_", "-").replace(" ", "-").removeprefix("nvidia-").removeprefix("geforce-")
    folded = _ALIASES.get(folded, folded)
    if folded in _OTHERS:
        product, memory, capability = _OTHERS[folded]
        source = Source("memory", "nominal: data sheet less what driver and ECC keep", Evidence.DERIVED)
        return gpus.GpuKind(
            folded, product, memory, None, 0, {"bf16": 0}, capability, unified=folded == "thor", sources=(source,)
        )
    try:
        return gpus.find(name)
    except UsageError:
        known = ", ".join([*gpus.names(), *sorted(_OTHERS)])
        raise UsageError(f"no GPU kind {name!r}", where="--gpu", fix=f"one of: {known}") from None


def capability(gpu: GpuKind) -> tuple[int, int]:
    """Compute capability as numbers."""
    major, _, minor = gpu.compute_capability.partition(".")
    return int(major), int(minor or 0)


def datacentre_blackwell(gpu: GpuKind) -> bool:
    """SM100 and SM103: what engines call the sm100 family. SM110, SM120 and SM121 are others."""
    return capability(gpu)[0] == 10
