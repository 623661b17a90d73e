"""Shared by the rules that look at a whole text."""

from __future__ import annotations

from collections.abc import Iterator

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Script, Word


def at(
    code: str, severity: Severity, line: int, message: str, fix: str, source: str, flag: str | None = None
) -> Finding:
    """A finding on a line of the text; line 0 is nowhere in particular."""
    return Finding(code, severity, message, fix, source, flag, f"line {line}" if line else None)


def line_at(text: str, offset: int) -> int:
    """Line of an offset, from 1."""
    return text.count("\n", 0, offset) + 1


def name_of(words: list[Word]) -> str:
    """Program that a command starts, without its folder."""
    return words[0].text.rsplit("/", 1)[-1]


def commands_of(script: Script, *names: str) -> Iterator[list[Word]]:
    """Commands of a text that start one of these programs."""
    return (words for words in script.commands if name_of(words) in names)
