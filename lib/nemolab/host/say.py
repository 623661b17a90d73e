"""Findings of host checks, in short form, and numbers as people read them."""

from __future__ import annotations

from nemolab.core.finding import Finding, Severity


def error(code: str, message: str, fix: str, source: str = "", where: str | None = None) -> Finding:
    """The launch would fail."""
    return Finding(code, Severity.ERROR, message, fix, source, where=where)


def warning(code: str, message: str, fix: str, source: str = "", where: str | None = None) -> Finding:
    """It would run, but not as intended."""
    return Finding(code, Severity.WARNING, message, fix, source, where=where)


def info(code: str, message: str, source: str = "", where: str | None = None) -> Finding:
    """Worth knowing."""
    return Finding(code, Severity.INFO, message, "", source, where=where)


def unknown(code: str, message: str, fix: str = "", where: str | None = None) -> Finding:
    """Nobody could be asked, so nothing is claimed."""
    return Finding(code, Severity.UNKNOWN, message, fix, where=where)
