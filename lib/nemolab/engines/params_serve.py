"""Parameters and results of the notebooks `20_serve_vllm` to `24_serve_dynamo`: alike, but for engine and profile."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.engines.serving_prepare import Prepared
from nemolab.engines.serving_run import Asked, Running
from nemolab.engines.serving_spec import ServeSpec

_PROFILE = "profile to serve, `:variant` may follow"
_RENDER = "what the files start"
Files = Literal["docker", "compose", "systemd", "k8s", "slurm", "ray", "process", "dynamo"]


class ServeParams(Params):
    """What every serve notebook takes."""

    engine: ClassVar[str] = ""

    profile: str = Field("", min_length=1, description=_PROFILE)
    settings: list[str] = Field([], description="changes, NAME=value, as `nemolab render --set` takes them")
    target: Literal["render", "process", "attach"] = Field("render", description="files only, start here, or attach")
    render_to: Files = Field("docker", description=_RENDER)
    base_url: str = Field("", description="attach: where the server answers, with /v1")
    served_model: str = Field("", description="attach: model name; empty for the only one")
    api_key_env: str = Field("", description="attach: environment variable that holds the key")
    keep_running: bool = Field(False, description="leave a started server running when the notebook ends on its own")

    def spec(self) -> ServeSpec:
        """The parameters as the library takes them."""
        values = self.model_dump() | {"settings": tuple(self.settings), "engine": self.engine}
        return ServeSpec(**values)


class _Process(ServeParams):
    """And what starting a process here takes."""

    python: str = Field("", description="process: Python of the engine's environment; empty for the installed one")
    model_dir: str = Field("", description="process: folder of the checkpoint; empty for its repository")
    port: int = Field(0, ge=0, le=65535, description="process: port on loopback; 0 for the profile's")
    timeout_s: float = Field(1800.0, ge=5, le=14400, description="process: longest start, s")


class ServeVllmParams(_Process):
    """Parameters of `20_serve_vllm`."""

    engine = "vllm"
    profile: str = Field("ultra_nvfp4_4xb200_vllm", min_length=1, description=_PROFILE)


class ServeSglangParams(_Process):
    """Parameters of `21_serve_sglang`."""

    engine = "sglang"
    profile: str = Field("ultra_nvfp4_4xb200_sglang", min_length=1, description=_PROFILE)


class _Container(ServeParams):
    """An engine that comes as a container only: it is rendered, started there, and attached to."""

    target: Literal["render", "attach"] = Field("render", description="files only, or attach to the container")


class ServeTrtllmParams(_Container):
    """Parameters of `22_serve_trtllm`."""

    engine = "trtllm"
    profile: str = Field("ultra_nvfp4_4xb200_trtllm", min_length=1, description=_PROFILE)


class ServeNimParams(_Container):
    """Parameters of `23_serve_nim`."""

    engine = "nim"
    profile: str = Field("ultra_nvfp4_4xb200_nim", min_length=1, description=_PROFILE)
    render_to: Files = Field("compose", description=_RENDER)


class ServeDynamoParams(_Container):
    """Parameters of `24_serve_dynamo`."""

    engine = "dynamo"
    profile: str = Field("ultra_nvfp4_8xb200_dynamo", min_length=1, description=_PROFILE)
    render_to: Files = Field("dynamo", description=_RENDER)


class ServeResults(Results):
    """Where the server answers, or what the files would start."""

    state: Literal["rendered", "started", "attached"] = Field(description="what was done")
    ready: bool = Field(description="a server answered a request with content")
    sound: bool = Field(description="nothing that was tried speaks against this launch")
    base_url: str = Field(description="address for the next steps; empty for files only")
    model: str = Field(description="name to ask for")
    engine: str = Field(description="engine that answers, or that the files start")
    engine_version: str = Field(description="its version")
    fits: bool | None = Field(description="the planner's word; empty where it has none")
    open_errors: Annotated[int, Unit("", "lower")] = Field(description="errors that the profile does not account for")
    max_concurrency: Annotated[float | None, Unit("x", "higher", 0.01)] = Field(description="requests at once, planned")
    ready_s: Annotated[float | None, Unit("s", "lower", 0.3)] = Field(description="from the start until it answered")
    first_answer_s: Annotated[float | None, Unit("s", "lower", 0.5)] = Field(
        description="first question to whole answer"
    )
    checks_failed: Annotated[int | None, Unit("", "lower")] = Field(description="API checks that failed")
    thinks: bool | None = Field(description="reasoning came apart from the answer")
    calls_tools: bool | None = Field(description="a tool call came as one")
    warnings: Annotated[int, Unit("", "lower")] = Field(description="warnings in the log of the start")


def results_of(prepared: Prepared, running: Running, asked: Asked, sound: bool) -> ServeResults:
    """The results that the notebook publishes."""
    first, probed = asked.first, asked.probe
    return ServeResults(
        state=running.state,
        ready=bool(first and first.content),
        sound=sound,
        base_url=running.base_url,
        model=running.model or prepared.model,
        engine=running.engine,
        engine_version=running.engine_version or ("" if running.up else prepared.engine_version),
        fits=prepared.fits,
        open_errors=prepared.open_errors,
        max_concurrency=prepared.expected.get("max_concurrency"),
        ready_s=running.ready_s,
        first_answer_s=first.seconds if first else None,
        checks_failed=sum(str(check.status) == "failed" for check in probed.checks) if probed else None,
        thinks=probed.thinks if probed else None,
        calls_tools=probed.calls_tools if probed else None,
        warnings=len(running.notes),
    )
