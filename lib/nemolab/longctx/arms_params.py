"""What notebook 53_price_long_context takes and leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.core.finding import Finding, Severity
from nemolab.longctx import arms_agree, arms_find
from nemolab.longctx.arms import Measured
from nemolab.longctx.arms_agree import Compared
from nemolab.longctx.arms_plan import Planned
from nemolab.longctx.arms_spec import PriceSpec, parse_arms
from nemolab.longctx.params import lengths


class PriceParams(Params):
    """Parameters of `53_price_long_context`."""

    profile: str = Field(
        "nano_bf16_1xh200_vllm:long-context", min_length=1, description="profile of vLLM, SGLang or llama.cpp"
    )
    settings: list[str] = Field([], description="changes for every arm, as `nemolab render --set` takes them")
    arms: list[str] = Field([], description="settings to compare, written as above; none for the profile as it is")
    target: Literal["plan", "process", "attach"] = Field(
        "plan", description="plan only, start each arm here, or attach"
    )
    lengths: str = Field("32K,128K,512K,1M", description="prompts in tokens, template included; K and M are binary")
    decode_tokens: int = Field(64, ge=2, le=4096, description="tokens generated after each prompt, to time a step")
    probe: bool = Field(True, description="compare answers: other arms, cold and warm, alone and beside another")
    max_s: float = Field(0.0, ge=0, description="seconds for an arm's questions, its start apart; 0 for no limit")
    tokenizer: str = Field("", description="path of tokenizer.json, or miniature; empty for the one in model_dir")
    base_url: str = Field("", description="attach: where the server answers, with /v1")
    api_key_env: str = Field("", description="attach: environment variable that holds the key")
    python: str = Field("", description="process: Python of the engine's environment; empty for the installed one")
    model_dir: str = Field("", description="process: folder of the checkpoint; empty for its repository")
    extra_args: str = Field("", description="process: further flags, as on a command line")
    timeout_s: float = Field(1800.0, ge=5, le=14400, description="process: longest start, s")

    def spec(self) -> PriceSpec:
        """The parameters as the library takes them.

        Raises:
            UsageError: arms or lengths of another form.
        """
        read = {"settings": tuple(self.settings), "arms": parse_arms(self.arms), "lengths": lengths(self.lengths)}
        return PriceSpec(**self.model_dump() | read)


class PriceResults(Results):
    """Results of `53_price_long_context`."""

    state: Literal["planned", "measured"] = Field(description="what was done")
    good: bool = Field(description="every arm fits or ran to its end, and no answer differs beyond rounding")
    arms: Annotated[int, Unit("", "none")] = Field(description="settings that were priced")
    arms_failed: Annotated[int, Unit("", "lower")] = Field(description="arms that did not start, or ended early")
    longest_tokens: Annotated[int | None, Unit("tokens", "higher")] = Field(description="longest prompt with an answer")
    best_arm: str = Field(description="arm with the earliest first token there; planned: of the roofline")
    ttft_s: Annotated[float | None, Unit("s", "lower", 0.05)] = Field(description="its first token")
    peak_share: Annotated[float | None, Unit("", "higher", 0.05)] = Field(
        description="share of the dense peak it reached"
    )
    decode_ms: Annotated[float | None, Unit("ms", "lower", 0.1)] = Field(
        description="its decode step after that prompt"
    )
    warm_saving: Annotated[float | None, Unit("", "higher", 0.02)] = Field(
        description="largest share of the wait that a cache saves a second question there"
    )
    planned_ttft_s: Annotated[float | None, Unit("s", "lower", 0.01)] = Field(
        description="first token of the longest prompt, planned"
    )
    planner_off: Annotated[float | None, Unit("", "lower", 0.1)] = Field(
        description="largest relative difference between plan and log: weights, cache, tokens, concurrency"
    )
    agreeing: bool | None = Field(description="no answer differs beyond rounding; empty where none was compared")
    agreed_to_tokens: Annotated[int | None, Unit("tokens", "higher")] = Field(
        description="longest prompt up to which all answers agree"
    )
    broken_from_tokens: Annotated[int | None, Unit("tokens", "none")] = Field(
        description="shortest prompt whose answer came without numbers: NaN"
    )
    suspect_from_tokens: Annotated[int | None, Unit("tokens", "none")] = Field(
        description="first length beyond a cliff, as overflowing kernels make it"
    )


def results_of(
    plans: Sequence[Planned], arms: Sequence[Measured], rows: Sequence[Compared], found: Sequence[Finding]
) -> PriceResults:
    """The results that the notebook publishes."""
    best = arms_find.fastest(arms)
    bound = next(p for p in plans if p.arm == best[0].arm).bound(best[1].tokens) if best else None
    planned = arms_find.soonest(plans)
    point = best[1] if best else None
    savings = [
        1 - p.again_s / p.cold_s
        for arm in arms
        if point and (p := arm.asked.at(point.tokens)) and p.warm and p.again_s and p.cold_s
    ]
    cliffs = [course.bad for course in arms_agree.courses(rows) if course.shape == "cliff" and course.bad]
    measured = any(arm.state != "planned" for arm in arms)
    wrong = any(finding.severity is Severity.ERROR for finding in found)
    doubt = any(plan.fits is False or (plan.open_errors and not measured) for plan in plans)
    return PriceResults(
        state="measured" if measured else "planned",
        good=not (wrong or doubt),
        arms=len(plans),
        arms_failed=sum(arm.failed for arm in arms),
        longest_tokens=point.tokens if point else None,
        best_arm=best[0].arm if best else planned.arm if planned else "",
        ttft_s=_rounded(point.cold_s, 3) if point else None,
        peak_share=_rounded(bound.share(point.cold_s), 4) if bound and point and point.cold_s else None,
        decode_ms=_rounded(point.decode_ms, 3) if point else None,
        warm_saving=_rounded(max(savings, default=None), 4),
        planned_ttft_s=_rounded(planned.bounds[-1].assumed_s, 2) if planned else None,
        planner_off=_rounded(planner_off(plans, arms), 4),
        agreeing=not any(row.serious for row in rows) if rows else None,
        agreed_to_tokens=arms_agree.agreed_to(rows),
        broken_from_tokens=min((bad for arm in arms if (bad := arms_find.broken_from(arm)) is not None), default=None),
        suspect_from_tokens=min(cliffs, default=None),
    )


def planner_off(plans: Sequence[Planned], arms: Sequence[Measured]) -> float | None:
    """Largest relative difference between what was planned and what a log printed; None where nothing compares."""
    by_name = {plan.arm: plan.expected for plan in plans}
    off = [
        abs(by_name[arm.arm][name] - float(printed.value)) / abs(float(printed.value))
        for arm in arms
        for name, printed in arm.capacity.items()
        if name in by_name[arm.arm] and float(printed.value)
    ]
    return max(off, default=None)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
