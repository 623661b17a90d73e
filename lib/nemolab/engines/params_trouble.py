"""Parameters and results of the notebook `90_troubleshoot`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.engines import cold_start
from nemolab.engines.trouble import Diagnosis


class TroubleParams(Params):
    """The log to look at."""

    log: str = Field("", description="lines pasted from a log; empty to read a file")
    path: str = Field("", description="file of a saved log; empty for the newest of the lab's own servers")
    engine: Literal["", "llamacpp", "vllm", "sglang", "trtllm", "nim", "dynamo"] = Field(
        "", description="whose log it is; empty to find out"
    )


class TroubleResults(Results):
    """What the log says."""

    cause: str = Field(description="the likeliest cause, in a sentence")
    code: str = Field(description="its number, empty without one")
    failed: bool = Field(description="the log shows a server that cannot be used")
    engine: str = Field(description="whose log it is")
    engine_version: str = Field(description="as the log says")
    ready: bool = Field(description="the log says that requests are taken")
    stopped_at: str = Field(description="phase that had not ended")
    causes: Annotated[int, Unit("", "lower")] = Field(description="failures and what follows from them")
    warnings: Annotated[int, Unit("", "lower")] = Field(description="warnings")
    start: Annotated[float | None, Unit("s", "lower", 0.1)] = Field(description="first line to ready")
    caches_save: Annotated[float, Unit("s", "none")] = Field(description="what warm caches would save")


def results_of(diagnosis: Diagnosis) -> TroubleResults:
    """The results that the notebook publishes."""
    report = diagnosis.report
    first = diagnosis.causes[0] if diagnosis.causes and diagnosis.causes[0].evidence != "warning" else None
    return TroubleResults(
        cause=diagnosis.sentence,
        code=first.code if first else "",
        failed=diagnosis.failed,
        engine=report.engine,
        engine_version=report.version,
        ready=report.ready,
        stopped_at=diagnosis.stopped_at,
        causes=sum(cause.evidence != "warning" for cause in diagnosis.causes),
        warnings=len(report.warnings),
        start=report.ready_s,
        caches_save=sum(saving.saves_s or 0.0 for saving in cold_start.savings(report)),
    )
