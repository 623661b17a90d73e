"""Quantisation of a local checkpoint, from `quantization_config` in config.json or from `hf_quant_config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nemolab.models.layout import ASSUMED_FP8, ASSUMED_NVFP4, BF16, LIGHTNING_NVFP4, Layout


def read_layout(folder: Path, config: Mapping[str, Any]) -> tuple[str, Layout | None]:
    """Precision ("bf16", "fp8", "nvfp4" or the method's own name) and layout; None for a method that is not known.

    Only the algorithm is read; which class has which format follows the family's recipe, marked as an estimate.
    """
    algorithm = quantisation(folder, config)
    known = precision(algorithm)
    layouts = {"bf16": BF16, "fp8": ASSUMED_FP8, "nvfp4": ASSUMED_NVFP4}
    return known, LIGHTNING_NVFP4 if algorithm == "MIXED_PRECISION" else layouts.get(known)


def precision(algorithm: str | None) -> str:
    """ "bf16", "fp8" or "nvfp4" as modelopt's algorithm says; another method's own name, in lower case."""
    if algorithm is None:
        return "bf16"
    if "FP4" in algorithm or algorithm == "MIXED_PRECISION":
        return "nvfp4"
    return "fp8" if "FP8" in algorithm else algorithm.lower()


def quantisation(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The quantisation algorithm in upper case, such as "NVFP4"; None for a checkpoint without quantisation."""
    inner = config.get("quantization_config")
    if isinstance(inner, Mapping):
        named = inner.get("quant_algo") or inner.get("quant_method")
        return str(named).upper() if named else "UNKNOWN"
    try:
        document = json.loads((folder / "hf_quant_config.json").read_bytes())
        named = document["quantization"]["quant_algo"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(named).upper() if named else None
