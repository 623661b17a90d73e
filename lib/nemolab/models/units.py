"""Lengths as each engine reads them, dtypes as each engine spells them, versions."""

from __future__ import annotations

import re
from decimal import Decimal

from nemolab.core.errors import UsageError

_UPPER = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LOWER = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {f"{letter}i": size for letter, size in _UPPER.items()} | {f"{k}i": _UPPER[k.upper()] for k in _LOWER}


def length(text: str, engine: str = "vllm", *, where: str | None = None) -> int:
    """A number of tokens: `262144`, `32k`, `1M`, `1Mi`.

    vLLM reads `1M` as 1,048,576 and `1m` as 1,000,000 (`human_readable_int`, 0.22.0); SGLang reads both as 1,000,000
    and `1Mi` as 1,048,576 (0.5.23); TensorRT-LLM takes plain integers, so there the suffix is read as vLLM reads it.

    Raises:
        UsageError: not such a number.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]{0,2})", text.strip().replace(",", "").replace("_", ""))
    suffixes = _BINARY | _LOWER | ({k.upper(): v for k, v in _LOWER.items()} if engine == "sglang" else _UPPER)
    if not found or (found[2] and found[2] not in suffixes):
        raise UsageError(
            f"{text!r} is not a length", where=where, fix="write 262144, 32k, 1M (1,048,576 in vLLM) or 1Mi"
        )
    value = Decimal(found[1]) * suffixes.get(found[2], 1)
    if value != int(value) or value < 1:
        raise UsageError(f"{text!r} is not a whole number of tokens", where=where, fix="write the number out")
    return int(value)


_SIZES = {
    "float32": 4, "fp32": 4, "float": 4,
    "bfloat16": 2, "bf16": 2, "float16": 2, "fp16": 2, "half": 2,
    "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1, "int8": 1,
}  # fmt: skip


def dtype_size(name: str, option: str) -> int:
    """Bytes of one element of a cache type, as engines spell types.

    Raises:
        UsageError: not a type of whole bytes that this family is served with.
    """
    size = _SIZES.get(name.lower())
    if size is None:
        raise UsageError(f"{option} {name!r} is not planned for", fix=f"one of: auto, {', '.join(_SIZES)}")
    return size


def version(text: str) -> tuple[int, ...]:
    """`"0.22.0"` or `"1.3.0rc17"` as numbers that compare; what is not a number ends it."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def gib(size: float) -> float:
    """Bytes as GiB, two decimals, as engines print them."""
    return round(size / (1 << 30), 2)
