"""What notebook 40_load_ladder takes and leaves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nemolab.client.endpoint import Endpoint
from nemolab.core.contract import Params, Results, Unit
from nemolab.load.plan import Plan, Slo, stages


class LadderParams(Params):
    """Parameters of `40_load_ladder`."""

    base_url: str = Field("", description="where the server answers, such as http://127.0.0.1:8080/v1")
    model: str = Field("", description="model name to ask for")
    api_key_env: str = Field("", description="environment variable that holds the key, empty for none")
    mode: Literal["closed", "open"] = Field("closed", description="closed: streams in flight; open: requests a second")
    stages: str = Field("1,2,4", description="rising levels of load")
    requests_per_stage: int = Field(20, ge=1, description="requests a stage, at least three a stream")
    prompt_tokens: int = Field(128, ge=16, description="tokens of a prompt, about")
    output_tokens: int = Field(32, ge=2, description="tokens to generate")
    shared_prefix: float = Field(0.0, ge=0, lt=1, description="share of the prompt that all requests have in common")
    seed: int = Field(0, ge=0, description="of prompts and arrivals")
    slo_ttft_ms: float = Field(1000.0, gt=0, description="longest time to the first token, ms")
    slo_tpot_ms: float = Field(50.0, gt=0, description="longest time for each further token, ms")
    slo_share: float = Field(0.9, gt=0, le=1, description="share of requests that must keep both limits")
    timeout_s: float = Field(120.0, gt=0, description="longest time for a request, s")

    def endpoint(self) -> Endpoint:
        """Where to send."""
        return Endpoint(self.base_url, self.model, api_key_env=self.api_key_env or None)

    def plan(self) -> Plan:
        """What to send."""
        return Plan(
            stages(self.stages, self.mode, self.requests_per_stage),
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            shared_prefix=self.shared_prefix,
            seed=self.seed,
            stall_s=min(60.0, self.timeout_s),
            total_s=self.timeout_s,
        )

    def slo(self) -> Slo:
        """When a request counts as good."""
        return Slo(self.slo_ttft_ms, self.slo_tpot_ms)


class LadderResults(Results):
    """Results of `40_load_ladder`."""

    output_tokens_per_s: Annotated[float, Unit("tokens/s", "higher", 0.15)] = Field(
        description="highest output rate of any stage"
    )
    requests_per_s: Annotated[float, Unit("requests/s", "higher", 0.15)] = Field(
        description="completed requests a second at that stage"
    )
    best_level: Annotated[float, Unit("", "none")] = Field(description="load of that stage")
    knee_level: Annotated[float | None, Unit("", "higher")] = Field(
        description="load after which throughput hardly grows; null if it kept growing"
    )
    ttft_p50_ms: Annotated[float | None, Unit("ms", "lower", 0.2)] = Field(description="median TTFT at the lowest load")
    tpot_p50_ms: Annotated[float | None, Unit("ms", "lower", 0.2)] = Field(description="median TPOT at the lowest load")
    ttft_p90_top_ms: Annotated[float | None, Unit("ms", "lower", 0.3)] = Field(
        description="90th percentile of TTFT, top load"
    )
    good_level: Annotated[float | None, Unit("", "higher")] = Field(
        description="highest load that kept the service level; null if none did"
    )
    good_share: Annotated[float, Unit("", "higher", 0.1)] = Field(
        description="share of requests within the service level at the lowest load"
    )
    requests: Annotated[int, Unit("", "none")] = Field(description="requests sent in all stages")
    errors: Annotated[int, Unit("", "lower")] = Field(description="requests that failed")
    client_limited: Annotated[bool, Unit("", "equal")] = Field(description="whether the client set a stage's figures")
