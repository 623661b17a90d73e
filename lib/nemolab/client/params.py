"""Parameters and results of the notebook `30_probe_api`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nemolab.client.endpoint import Endpoint
from nemolab.client.outcome import CheckStatus, ProbeReport
from nemolab.core.contract import Params, Results, Unit
from nemolab.core.errors import UsageError


class ProbeParams(Params):
    """Which server is probed."""

    base_url: str = Field("", description="where the server answers, such as http://127.0.0.1:8080/v1")
    model: str = Field("", description="model name to ask for; empty for the first that is listed")
    api_key_env: str = Field("", description="environment variable that holds the key, empty for none")
    max_tokens: int = Field(512, ge=16, le=131072, description="room for an answer, thoughts included")
    timeout_s: float = Field(60.0, gt=0, description="longest time for a request, s")

    def endpoint(self) -> Endpoint:
        """The server.

        Raises:
            UsageError: no address is given.
        """
        if not self.base_url:
            raise UsageError(
                "base_url is not set",
                where="parameters",
                fix="start a server with `nemolab serve miniature` and give its address",
            )
        return Endpoint(self.base_url, self.model, api_key_env=self.api_key_env or None)


class ProbeResults(Results):
    """How the checks ended."""

    passed: Annotated[int, Unit("checks", "higher")] = Field(description="checks that passed")
    failed: Annotated[int, Unit("checks", "lower")] = Field(description="checks that failed")
    warnings: Annotated[int, Unit("checks", "lower")] = Field(description="checks that give reason to look closer")
    skipped: Annotated[int, Unit("checks", "lower")] = Field(description="checks that could not be made")
    model: str = Field(description="model that was asked")
    engine: str = Field(description="engine as recognised, empty if not")
    thinks: bool | None = Field(description="the model thinks, and the server shows it apart; null if not asked")
    calls_tools: bool | None = Field(description="the model called a tool; null if not asked")
    ttft_ms: Annotated[float | None, Unit("ms", "lower", 0.5)] = Field(description="first token, one sample")
    answer_ms: Annotated[float | None, Unit("ms", "lower", 0.5)] = Field(description="whole answer, one sample")


def results_of(report: ProbeReport) -> ProbeResults:
    """The results that the notebook publishes."""
    return ProbeResults(
        passed=report.count(CheckStatus.PASSED),
        failed=report.count(CheckStatus.FAILED),
        warnings=report.count(CheckStatus.WARNING),
        skipped=report.count(CheckStatus.SKIPPED),
        model=report.endpoint.model,
        engine=report.endpoint.engine,
        thinks=report.thinks,
        calls_tools=report.calls_tools,
        ttft_ms=None if report.ttft_s is None else round(report.ttft_s * 1e3, 2),
        answer_ms=None if report.total_s is None else round(report.total_s * 1e3, 2),
    )
