"""The rules by code. A rule is a function of one case; it yields findings and knows nothing of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nemolab.lint.case import Case, Findings
from nemolab.lint.launch import Script

Check = Callable[[Case], Findings]
TextCheck = Callable[[Script], Findings]


class Rule(NamedTuple):
    """A rule.

    Attributes:
        code: of its findings.
        title: what it checks, in one line.
        engines: engines it applies to; empty for all.
    """

    code: str
    title: str
    engines: tuple[str, ...]
    check: Check


RULES: list[Rule] = []


def rule(code: str, title: str, *engines: str) -> Callable[[Check], Check]:
    """Register a check under its code."""

    def register(check: Check) -> Check:
        RULES.append(Rule(code, title, engines, check))
        return check

    return register


def applicable(case: Case) -> list[Rule]:
    """Rules for the engine of a case."""
    return [r for r in RULES if not r.engines or case.engine in r.engines or case.launch.engine in r.engines]


TEXT_RULES: list[tuple[tuple[str, ...], TextCheck]] = []


def text_rule(*triggers: str) -> Callable[[TextCheck], TextCheck]:
    """Register a check of the whole text, to be run when one of `triggers` occurs in it."""

    def register(check: TextCheck) -> TextCheck:
        TEXT_RULES.append((triggers, check))
        return check

    return register


def on_text(script: Script) -> list[TextCheck]:
    """Checks whose trigger occurs in the text."""
    return [check for triggers, check in TEXT_RULES if any(word in script.text for word in triggers)]
