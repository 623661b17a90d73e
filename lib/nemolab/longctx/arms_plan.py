"""What each arm should cost, before it is started: memory by the planner, time by the roofline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.engines import profile_check, smoke_launch
from nemolab.engines.profile import Profile
from nemolab.engines.serving_prepare import in_log
from nemolab.longctx.arms_spec import Arm, PriceSpec, check, load, smoke_spec
from nemolab.longctx.roofline_look import Bound, bounds
from nemolab.models import Plan

_ROOM = 64  # tokens between prompt with answer and the limit: engines differ by a few in what they allow


@dataclass(frozen=True, slots=True)
class Planned:
    """One arm, looked at.

    Attributes:
        settings: what it changes.
        context: tokens that a request may have, prompt and answer; 0 where nothing says.
        lengths: prompts that are asked, from the shortest; a longer one is cut to what the context leaves.
        fits: the planner's word, None where it has none; `sentence` says it.
        expected: what the engine's log should print, by the log rules' names.
        bounds: roofline of each length; empty where the planner knows no GPU.
        pitches: tensors that grow with the prompt -> elements for each token.
        other_types: whether it changes a type, so that its numbers may differ.
        findings: of lint and plan; `open_errors` of them are errors that the profile does not account for.
    """

    arm: str
    settings: tuple[str, ...]
    engine: str
    engine_version: str
    model: str
    hardware: str
    context: int
    lengths: tuple[int, ...]
    fits: bool | None
    sentence: str
    expected: dict[str, float]
    bounds: tuple[Bound, ...]
    pitches: dict[str, int]
    other_types: bool
    findings: tuple[Finding, ...]
    open_errors: int
    without_weights: bool = False

    def bound(self, tokens: int) -> Bound | None:
        """The roofline at a length."""
        return next((bound for bound in self.bounds if bound.tokens == tokens), None)


def look_at(spec: PriceSpec) -> tuple[Planned, ...]:
    """Look at every arm. Starts nothing.

    Raises:
        UsageError: what cannot be priced; see `arms_spec.check`.
    """
    check(spec)
    return tuple(plan_arm(spec, arm) for arm in spec.arms)


def plan_arm(spec: PriceSpec, arm: Arm) -> Planned:
    """Look at one arm.

    Raises:
        UsageError: no such profile or setting, or a value that the planner knows nothing of.
    """
    from nemolab.models import report

    profile = load(spec, arm)
    plan = profile_check.plan(profile)
    context = _context(profile, plan)
    most = context - spec.decode_tokens - _ROOM if context else max(spec.lengths)
    if most < 1:
        raise UsageError(f"a context of {context:,} tokens leaves no room for a prompt", where=f"arm {arm.name}")
    lengths = tuple(sorted({min(length, most) for length in spec.lengths if length <= (arm.upto or length)}))
    if not lengths:
        raise UsageError(
            f"no length up to {arm.upto:,} tokens", where=f"arm {arm.name}", fix="a longer upto, or a shorter length"
        )
    named = {item.finding for item in profile.disagreements}
    found = [*smoke_launch.check(smoke_spec(spec, arm)).findings, *(report.plan_findings(plan, 1.0) if plan else ())]
    hardware = profile.hardware
    return Planned(
        arm=arm.name,
        settings=arm.settings,
        engine=profile.engine,
        engine_version=profile.engine_version,
        model=profile.model,
        hardware=f"{hardware.gpus} x {hardware.gpu}" if hardware.gpus else "CPU",
        context=context,
        lengths=lengths,
        fits=plan.fits if plan else None,
        sentence=report.sentence(plan, 1.0) if plan else "The planner has nothing to say: no GPU is asked for.",
        expected=in_log(plan) if plan else {},
        bounds=bounds(plan.request, lengths) if plan else (),
        pitches=_pitches(plan) if plan else {},
        other_types=any("dtype" in word or "quantization" in word for word in arm.settings),
        findings=tuple(replace(finding, where=arm.name) for finding in found),
        open_errors=sum(f.severity is Severity.ERROR and f.code not in named for f in found),
        without_weights=_dummy(spec, profile),
    )


def _dummy(spec: PriceSpec, profile: Profile) -> bool:
    words = spec.extra_args.replace("=", " ").split()
    asked = dict(pairwise(words)).get("--load-format")
    return (asked or profile.args.get("load-format")) == "dummy"


def _context(profile: Profile, plan: Plan | None) -> int:
    if profile.engine == "llamacpp":  # the sum over the slots
        return int(str(profile.args.get("ctx-size", 0))) // int(str(profile.args.get("parallel", 1)))
    return plan.request.length if plan else 0


def _pitches(plan: Plan) -> dict[str, int]:
    """Elements for each token in the tensors that can pass 2^31 bytes, on one GPU: those of a step only where it holds
    so many tokens, for a chunked prefill never sees the whole prompt."""
    arch, tensor = plan.request.model.shape, plan.request.parallel.tensor_parallel_size
    chunk = plan.request.max_num_batched_tokens
    heads = arch.num_key_value_heads * arch.head_dim
    split = {
        "Mamba input projection": 2 * arch.mamba_intermediate
        + 2 * arch.n_groups * arch.ssm_state_size
        + arch.mamba_num_heads,
        "Mamba convolution": arch.conv_dim,
        "Mamba channels": arch.mamba_intermediate,
        "queries": arch.num_attention_heads * arch.head_dim,
        "keys or values": heads,
        "keys and values": 2 * heads,
    }
    sizes = {"hidden state": arch.hidden_size} | {name: size // tensor for name, size in split.items() if size}
    return {name: size for name, size in sizes.items() if name.startswith("keys") or 2 * size * chunk >= 2**31}
