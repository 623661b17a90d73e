"""How values are written for a reader: one spelling of numbers in tables, parameters and results."""

from __future__ import annotations

import math
from typing import Any


def number(value: float) -> str:
    """A number as a table shows it: whole numbers grouped from 10,000 on, others with four significant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3e}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def plain(value: Any) -> Any:
    """`value` with numpy's and pandas' scalars turned into Python's, and their missing values into None."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value


def cell(value: Any) -> str:
    """Any value as a table cell shows it: one spelling per type, never None or an object's address."""
    value = plain(value)
    if value is None:
        return "-"
    if isinstance(value, bool | int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    return str(value)


def printable(text: str) -> str:
    """`text` with control characters, escape codes among them, written out; line breaks and tabs stay."""
    return "".join(
        c if c in "\n\t" or c.isprintable() or c == "\u00a0" else c.encode("unicode_escape").decode() for c in text
    )
