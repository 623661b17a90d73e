"""Plain text for the terminal: aligned tables and findings, readable without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from nemolab.core.finding import Finding, Severity

_COLOUR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.DISAGREE: "yellow", Severity.UNKNOWN: "cyan"}


def table(rows: Sequence[Mapping[str, object]], *, indent: str = "", header: bool = True) -> str:
    """Rows of equal keys as aligned columns; numbers flush right."""
    if not rows:
        return ""
    names = list(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    lines = [names, *cells] if header else cells
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    right = [all(isinstance(row[name], int | float) or row[name] is None for row in rows) for name in names]

    def line(values: Sequence[str]) -> str:
        parts = [
            value.rjust(width) if flush else value.ljust(width)
            for value, width, flush in zip(values, widths, right, strict=True)
        ]
        return (indent + "  ".join(parts)).rstrip()

    return "\n".join(line(values) for values in lines)


def findings(items: Sequence[Finding]) -> str:
    """Findings as `severity code where: message`, with fix and source beneath."""
    parts = []
    for item in items:
        about = item.where or item.flag
        head = click.style(str(item.severity), fg=_COLOUR.get(item.severity), bold=item.severity == Severity.ERROR)
        parts.append(f"{head} {item.code}{f' {about}' if about else ''}: {item.message}")
        parts += [f"  fix: {item.fix}"] if item.fix else []
        parts += [f"  source: {item.source}"] if item.source else []
    return "\n".join(parts)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" if isinstance(value, float) else str(value)
