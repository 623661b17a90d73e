"""The launch profiles that a plan names: linted before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nemolab.core.finding import Finding
from nemolab.runbook import references
from nemolab.runbook.plan import Plan

_PARAMETER = "profile"


def findings(made: Plan) -> list[Finding]:
    """What lint says of the profiles of all steps that will run, and the profiles do not account for themselves.

    Raises:
        UsageError: a profile or variant that does not exist.
    """
    from nemolab.engines import profile, profile_check

    found: list[Finding] = []
    for name in dict.fromkeys(_named(made)):
        found += (replace(finding, where=name) for finding in profile_check.unnamed(profile.load(name)))
    return found


def _named(made: Plan) -> Iterator[str]:
    """Values of the steps' parameter `profile`, as far as they are known before the run."""
    for step in made.steps:
        written = step.given.get(_PARAMETER)
        if step.skip or written is None or any(ref.value is not None for ref in references.find(written)):
            continue
        value = references.resolve(written, lambda ref: made.parameters[ref.owner])
        if isinstance(value, str) and value:
            yield value
