"""Parameters and results of the notebook `25_serve_llamacpp`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.engines.llamacpp import Options
from nemolab.engines.serving import Answer, Serving


class ServeLlamacppParams(Params):
    """How llama.cpp is to serve."""

    model: str = Field("miniature", min_length=1, description="miniature, or the path of a GGUF file")
    port: int = Field(0, ge=0, le=65535, description="port on loopback; 0 for any free one")
    ctx: int = Field(16384, ge=256, le=1_048_576, description="tokens that one request can have")
    threads: int = Field(0, ge=0, le=1024, description="threads of the engine; 0 for all cores but one")
    parallel: int = Field(2, ge=1, le=64, description="requests at the same time")
    keep_running: bool = Field(False, description="leave the server running when the notebook ends on its own")

    def options(self) -> Options:
        """The launch options."""
        return Options(model=self.model, ctx=self.ctx, port=self.port, threads=self.threads, parallel=self.parallel)


class ServeLlamacppResults(Results):
    """Where the server answers, and how it started."""

    ready: bool = Field(description="the server answered a request with content")
    base_url: str = Field(description="address for the next steps")
    model: str = Field(description="name to ask for")
    engine: str = Field(description="engine's name")
    engine_version: str = Field(description="version of the engine's wheel")
    ready_s: Annotated[float, Unit("s", "lower", 0.5)] = Field(description="from the start until it answered")
    first_answer_s: Annotated[float, Unit("s", "lower", 0.5)] = Field(description="first question to whole answer")
    threads: Annotated[float | None, Unit("", "none")] = Field(description="threads that decode")
    slots: Annotated[float | None, Unit("", "none")] = Field(description="requests at the same time")
    ctx: Annotated[float | None, Unit("tokens", "none")] = Field(description="tokens that one request can have")
    weights: Annotated[float | None, Unit("MiB", "lower", 0.01)] = Field(description="weights in memory")
    kv_cache: Annotated[float | None, Unit("MiB", "lower", 0.01)] = Field(description="KV cache of all slots")
    warnings: Annotated[int, Unit("", "lower")] = Field(description="warnings in the log of the start")


def results_of(serving: Serving, answer: Answer) -> ServeLlamacppResults:
    """The results that the notebook publishes."""
    return ServeLlamacppResults(
        ready=bool(answer.content),
        base_url=serving.base_url,
        model=serving.model,
        engine=serving.engine,
        engine_version=serving.engine_version,
        ready_s=serving.ready_s,
        first_answer_s=answer.seconds,
        threads=serving.quantity("threads"),
        slots=serving.quantity("slots"),
        ctx=serving.quantity("n_ctx_slot"),
        weights=serving.quantity("weights"),
        kv_cache=serving.quantity("kv_cache"),
        warnings=len(serving.notes),
    )
