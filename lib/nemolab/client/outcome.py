"""What a probe found: each check's status, reason and fix, and the report of them all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nemolab.client.endpoint import Endpoint
from nemolab.core.finding import Finding, Severity


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """One check.

    Attributes:
        name: stable id.
        title: what it asks, for people.
        detail: what came of it, one sentence.
        seconds: how long it took.
        fix: what to do, empty when passed.
        source: document or issue behind the fix.
    """

    name: str
    title: str
    status: CheckStatus
    detail: str
    seconds: float
    fix: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All checks of one server.

    Attributes:
        endpoint: with model, engine and version filled in as far as they were found.
        reasoning, content: what the model said to the first question.
        thinks, calls_tools: whether it was seen to; None if that could not be asked.
        ttft_s, tpot_s, total_s: of the streamed answer. One sample: an impression, no measurement.
    """

    endpoint: Endpoint
    checks: tuple[ProbeCheck, ...]
    reasoning: str
    content: str
    thinks: bool | None
    calls_tools: bool | None
    ttft_s: float | None
    tpot_s: float | None
    total_s: float | None

    def count(self, status: CheckStatus) -> int:
        """How many checks ended so."""
        return sum(check.status == status for check in self.checks)

    @property
    def passed(self) -> bool:
        """No check failed, and the server did answer."""
        return not self.count(CheckStatus.FAILED) and bool(self.count(CheckStatus.PASSED))

    def findings(self) -> list[Finding]:
        """Failures as errors and warnings as warnings."""
        severity = {CheckStatus.FAILED: Severity.ERROR, CheckStatus.WARNING: Severity.WARNING}
        return [
            Finding(f"A-{check.name}", severity[check.status], check.detail, check.fix, check.source, where=check.title)
            for check in self.checks
            if check.status in severity
        ]


def check_rows(report: ProbeReport) -> list[dict[str, object]]:
    """One row a check, in the order in which they were made."""
    return [
        {"check": check.title, "status": str(check.status), "what came of it": check.detail, "took": check.seconds}
        for check in report.checks
    ]


def sentence(report: ProbeReport) -> str:
    """How it ended, in one sentence."""
    parts = [f"{report.count(status)} {status}" for status in CheckStatus if report.count(status)]
    return f"{report.endpoint.model or 'The server'}: {', '.join(parts)}."
