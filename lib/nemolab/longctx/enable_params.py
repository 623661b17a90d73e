"""What notebook 50_enable_long_context takes and leaves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.longctx.enable import EnableSpec, Enabling
from nemolab.longctx.enable_climb import Climb, ClimbSpec
from nemolab.longctx.params import lengths

_LEAST = 256  # tokens of a rung, however small the scale: a needle, its question and some hay


class EnableParams(Params):
    """Parameters of `50_enable_long_context`."""

    profile: str = Field(
        "ultra_nvfp4_4xb200_vllm:long-context", min_length=1, description="profile to look at, with its 1M variant"
    )
    settings: list[str] = Field([], description="changes, NAME=value, as `nemolab render --set` takes them")
    render_to: Literal["", "docker", "compose", "systemd", "k8s", "slurm", "ray", "process", "dynamo"] = Field(
        "", description="what the files start; empty for the engine's usual"
    )
    base_url: str = Field("", description="server to climb on, with /v1; empty: files only")
    model: str = Field("", description="model name to ask for; empty for the only one")
    api_key_env: str = Field("", description="environment variable that holds the key, empty for none")
    tokenizer: str = Field("miniature", description="path of the model's tokenizer.json, or miniature")
    lengths: str = Field("4K,64K,256K,1M", description="rungs in tokens, template included; K and M are binary")
    scale: float = Field(1.0, gt=0, le=1, description="share of each rung that is asked, for a smaller server")
    context: int = Field(0, ge=0, description="tokens a request may have at the server; 0: the profile's, scaled")
    client_limit_s: float = Field(0.0, ge=0, description="what your client allows a request, s; 0: not said")
    proxy_idle_s: float = Field(0.0, ge=0, description="silence that a proxy in front allows, s; 0: not said")
    log: str = Field("", description="the server's log on this machine, read after a failure")

    def spec(self) -> EnableSpec:
        """What to look at."""
        return EnableSpec(
            self.profile, tuple(self.settings), self.render_to, self.client_limit_s, self.proxy_idle_s
        )  # fmt: skip

    def climb(self, found: Enabling) -> ClimbSpec:
        """What to climb, for a launch that was looked at."""
        return ClimbSpec(
            self.base_url,
            self.model,
            self.api_key_env,
            self.tokenizer,
            tuple(sorted({max(_LEAST, int(rung * self.scale)) for rung in lengths(self.lengths)})),
            self.context or int(found.length * self.scale),
            self.log,
        )


class EnableResults(Results):
    """Results of `50_enable_long_context`."""

    sound: bool = Field(description="nothing known speaks against the launch, and no rung of the climb failed")
    state: Literal["rendered", "climbed"] = Field(description="what was done")
    enabled: bool = Field(description="both switches are set, where both are needed")
    native_tokens: Annotated[int, Unit("tokens", "none")] = Field(description="length in the checkpoint's config")
    length_tokens: Annotated[int, Unit("tokens", "higher")] = Field(description="length that the launch allows")
    fits: bool | None = Field(description="the planner's word; empty where it has none")
    open_errors: Annotated[int, Unit("", "lower")] = Field(description="errors that the profile does not account for")
    request_gib: Annotated[float | None, Unit("GiB", "lower", 0.01)] = Field(
        description="cache of one request of the whole length on each GPU, planned"
    )
    at_once: Annotated[float | None, Unit("", "higher", 0.01)] = Field(
        description="such requests at the same time, planned"
    )
    prefill_s: Annotated[float | None, Unit("s", "lower", 0.01)] = Field(
        description="first token of the longest prompt, planned"
    )
    client_limit_s: Annotated[float | None, Unit("s", "none")] = Field(
        description="time-out that clients and proxies need for it"
    )
    hops_too_short: Annotated[int, Unit("", "lower")] = Field(description="limits known to be too short for it")
    lengths: str = Field(description="lengths whose needle was found; without a server, those to ask")
    reached_tokens: Annotated[int | None, Unit("tokens", "higher")] = Field(description="longest of them")
    failed_at_tokens: Annotated[int | None, Unit("tokens", "none")] = Field(description="length that ended the climb")
    failed_class: str = Field(description="class of the request that ended it; empty when none did")
    ttft_s: Annotated[float | None, Unit("s", "lower", 0.3)] = Field(description="first token at the longest length")
    base_url: str = Field(description="address for the next steps; empty for files only")
    model: str = Field(description="name to ask for")


def results_of(found: Enabling, climbed: Climb) -> EnableResults:
    """The results that the notebook publishes."""
    cost, end, failed = found.cost, climbed.endpoint, climbed.failed
    waits = [hop.needed_s for hop in found.hops if hop.hop == "client"]
    good = [row for row in climbed.rows if row.correct]
    return EnableResults(
        sound=found.sound and failed is None,
        state="climbed" if end else "rendered",
        enabled=found.enabled,
        native_tokens=found.native,
        length_tokens=found.length,
        fits=found.prepared.fits,
        open_errors=found.prepared.open_errors,
        request_gib=cost.request_gib if cost else None,
        at_once=cost.at_once if cost else None,
        prefill_s=None if found.prefill_s is None else round(found.prefill_s, 2),
        client_limit_s=waits[0] if waits else None,
        hops_too_short=sum(hop.short for hop in found.hops),
        lengths=",".join(map(str, climbed.reached if end else climbed.left)),
        reached_tokens=max(climbed.reached, default=0) if end else None,
        failed_at_tokens=failed.length if failed else None,
        failed_class=str(failed.outcome) if failed else "",
        ttft_s=round(good[-1].ttft_s, 3) if good and good[-1].ttft_s else None,
        base_url=end.base_url if end else "",
        model=end.model if end else found.prepared.model,
    )
