"""Findings as text for a terminal, as JSON, and as SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nemolab import __version__
from nemolab.core.finding import Finding, Severity

_MARKS = {
    Severity.ERROR: "error",
    Severity.DISAGREE: "sources disagree",
    Severity.WARNING: "warning",
    Severity.UNKNOWN: "not checked",
    Severity.INFO: "note",
}
_COLOURS = {
    Severity.ERROR: "31",
    Severity.DISAGREE: "35",
    Severity.WARNING: "33",
    Severity.UNKNOWN: "36",
    Severity.INFO: "2",
}
_LEVELS = {
    Severity.ERROR: "error",
    Severity.DISAGREE: "warning",
    Severity.WARNING: "warning",
    Severity.UNKNOWN: "note",
    Severity.INFO: "note",
}


def terminal(findings: Sequence[Finding], *, name: str = "-", colour: bool = False, width: int = 100) -> str:
    """Findings for a person: severity, place, what is wrong, how to fix it, who says so; then one line of totals."""
    import textwrap

    lines: list[str] = []
    for f in findings:
        mark = _MARKS[f.severity]
        head = f"\x1b[{_COLOURS[f.severity]}m{mark}\x1b[0m" if colour else mark
        place = f"{f.where}: " if f.where else ""
        lines += textwrap.wrap(
            f"{place}{f.message}",
            width,
            initial_indent=f"{head} {f.code} ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        if f.fix:
            lines += textwrap.wrap(
                f.fix,
                width,
                initial_indent="    fix: ",
                subsequent_indent="         ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        if f.source:
            lines += textwrap.wrap(
                f.source,
                width,
                initial_indent="    source: ",
                subsequent_indent="            ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    lines.append(summary(findings, name))
    return "\n".join(lines)


# Severity -> one, many.
_COUNTED = {
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.DISAGREE: ("with disagreeing sources", "with disagreeing sources"),
    Severity.UNKNOWN: ("not checked", "not checked"),
    Severity.INFO: ("note", "notes"),
}


def summary(findings: Sequence[Finding], name: str) -> str:
    """Totals by severity in one line."""
    counts = [(sum(f.severity is severity for f in findings), words) for severity, words in _COUNTED.items()]
    parts = [f"{count} {words[count != 1]}" for count, words in counts if count]
    return f"{name}: {', '.join(parts) if parts else 'nothing found'}"


def as_json(findings: Sequence[Finding]) -> str:
    """A JSON list of findings, `{code, severity, flag, message, fix, source, where}` each."""
    return json.dumps([f.as_dict() for f in findings], indent=1, ensure_ascii=False)


def as_sarif(findings: Sequence[Finding], *, name: str) -> str:
    """One SARIF 2.1.0 run, for code-scanning services."""
    codes = sorted({f.code for f in findings})
    results: list[dict[str, Any]] = []
    for f in findings:
        line = (f.where or "").removeprefix("line ")
        location: dict[str, Any] = {"artifactLocation": {"uri": name}}
        if line.isdigit() and int(line) > 0:
            location["region"] = {"startLine": int(line)}
        results.append({
            "ruleId": f.code,
            "ruleIndex": codes.index(f.code),
            "level": _LEVELS[f.severity],
            "message": {"text": f.message + (f" Fix: {f.fix}." if f.fix else "")},
            "locations": [{"physicalLocation": location}],
            "properties": {"severity": str(f.severity), "source": f.source, "flag": f.flag},
        })  # fmt: skip
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "nemolab", "version": __version__, "rules": [{"id": c} for c in codes]}},
                "results": results,
            }
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False)
