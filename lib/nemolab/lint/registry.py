"""The rules by code. A rule is a function of one case; it yields findings and knows nothing of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nemolab.lint.case import Case, Findings

Check = Callable[[Case], Findings]


@dataclass(frozen=True, slots=True)
class Rule:
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
