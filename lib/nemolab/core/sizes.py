"""Bytes, and how they are written for people. Binary units, as engines print them."""

from __future__ import annotations

MIB = 1 << 20
GIB = 1 << 30


def gib(size: float, digits: int = 1) -> str:
    """Always GiB, so that a column can be compared: `61.9 GiB`."""
    return f"{size / GIB:,.{digits}f} GiB"


def human(size: float) -> str:
    """`61.9 GiB`, or `47.5 MiB` below one: three figures."""
    if abs(size) >= GIB:
        return gib(size)
    mib = size / MIB
    return f"{mib:,.0f} MiB" if abs(mib) >= 100 else f"{mib:.3g} MiB"
