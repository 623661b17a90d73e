"""Parameters and results of the notebook `29_engine_smoke`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.core.finding import Finding, Severity
from nemolab.engines.smoke import SmokeReport
from nemolab.engines.smoke_launch import SmokeSpec


class SmokeParams(Params):
    """What is to be tried."""

    engine: Literal["llamacpp", "vllm", "sglang"] = Field("llamacpp", description="engine to try")
    profile: str = Field("", description="profile to start from; empty for the engine's miniature")
    settings: list[str] = Field([], description="changes to it, NAME=value; null takes a flag away")
    engine_version: str = Field("", description="release that lint reads the flags for; empty for the profile's")
    python: str = Field("", description="Python of the engine's environment; empty for the installed one")
    model: str = Field("", description="folder or file to load; empty for the miniature")
    extra_args: str = Field("", description="further flags, as on a command line")
    env: list[str] = Field([], description="further variables, NAME=value")
    port: int = Field(0, ge=0, le=65535, description="port on loopback; 0 for any free one")
    lengths: list[int] = Field([512, 4096], min_length=1, description="prompts to hide needles in, tokens")
    needles: int = Field(6, ge=1, le=60, description="needles in each prompt")
    timeout_s: float = Field(900.0, ge=5, le=7200, description="longest start, s")
    base_url: str = Field("", description="a server that runs already; then nothing is started")
    served_model: str = Field("", description="its model name; empty for the only one")

    def spec(self) -> SmokeSpec:
        """The parameters as the library takes them."""
        values = self.model_dump()
        values |= {name: tuple(values[name]) for name in ("settings", "env", "lengths")}
        return SmokeSpec(**values)


class SmokeResults(Results):
    """What was shown."""

    passed: bool = Field(description="everything below is as it should be")
    engine: str = Field(description="engine")
    engine_version: str = Field(description="its version")
    flags: Annotated[int, Unit("", "lower")] = Field(description="errors that lint saw in the flags")
    started: bool = Field(description="it took requests")
    ready: Annotated[float | None, Unit("s", "lower", 0.3)] = Field(description="from the start until it answered")
    checks: Annotated[int, Unit("", "higher")] = Field(description="API checks that passed")
    failed: Annotated[int, Unit("", "lower")] = Field(description="API checks that failed")
    answers_apart: bool = Field(description="reasoning and answer come apart, whole and streamed")
    calls_tools: bool | None = Field(description="a tool call came as one; empty if the model made none")
    counts: bool = Field(description="usage adds up, whole and streamed")
    metrics: bool = Field(description="counters are there")
    needles: Annotated[int, Unit("", "none")] = Field(description="needles asked for")
    found: Annotated[float, Unit("", "higher")] = Field(description="share of them that was found")
    stopped: bool | None = Field(description="nothing was left after the stop; empty for a server that ran already")


def results_of(report: SmokeReport, flags: Sequence[Finding]) -> SmokeResults:
    """The results that the notebook publishes."""
    status = {check.name: str(check.status) for check in report.probe.checks} if report.probe else {}
    good = [name for name, value in status.items() if value == "passed"]
    return SmokeResults(
        passed=report.passed,
        engine=report.engine,
        engine_version=report.version,
        flags=sum(finding.severity is Severity.ERROR for finding in flags),
        started=report.started,
        ready=report.ready_s,
        checks=len(good),
        failed=sum(value == "failed" for value in status.values()),
        answers_apart={"chat", "stream", "thinking", "no-thinking"} <= set(good),
        calls_tools=report.probe.calls_tools if report.probe else None,
        counts="usage" in good,
        metrics="metrics" in good,
        needles=report.found.n,
        found=report.found.value if report.found.n else 0.0,
        stopped=report.stop.clean if report.stop else None,
    )
