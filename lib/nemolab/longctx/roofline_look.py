"""What a prompt's first token and a decode step cannot beat on given GPUs, beside what was measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nemolab.core.errors import UsageError
from nemolab.core.intervals import percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from nemolab.models import Request

_FIX = 'a profile such as "nano_bf16_1xh200_vllm", or "MODEL GPU NUMBER" such as "nano-bf16 h200 1"'


@dataclass(frozen=True, slots=True)
class Bound:
    """One prompt length, alone on the GPUs of a launch.

    Attributes:
        flops: of the whole prefill, on all GPUs together.
        bound_s, assumed_s: first token at the full dense peak, and at the share of it that the planner assumes.
        step_bound_s, step_assumed_s: one decode step after it, at the full memory bandwidth and the assumed share.
        gpus: that share the work.
    """

    tokens: int
    flops: int
    bound_s: float
    assumed_s: float
    step_bound_s: float
    step_assumed_s: float
    gpus: int

    def share(self, seconds: float) -> float:
        """Share of the dense peak that a prefill of `seconds` reached."""
        return self.bound_s / seconds

    def tflops(self, seconds: float) -> float:
        """TFLOP/s of each GPU in a prefill of `seconds`."""
        return self.flops / self.gpus / seconds / 1e12


def bounds(asked: Request, lengths: Iterable[int]) -> tuple[Bound, ...]:
    """The bound of every length for the model and GPUs of `asked`."""
    return tuple(_bound(asked, tokens) for tokens in lengths)


def named(what: str, lengths: Sequence[int]) -> tuple[Bound, ...]:
    """Bounds of a launch by name; nothing for "".

    Args:
        what: a profile, `:variant` may follow; or a model (catalogue name or folder), a GPU, and how many share the
            model by tensor parallelism: `nano-bf16 h200`, `/models/ultra b200 8`.

    Raises:
        UsageError: no such profile, model or GPU, or a profile that the planner has nothing to say of.
    """
    from nemolab import models
    from nemolab.engines import profile, profile_check

    words = shlex.split(what)
    if not words:
        return ()
    if len(words) == 1:
        plan = profile_check.plan(profile.load(words[0]))
        if plan is None:
            raise UsageError("this profile has no GPU that the planner knows", where="roofline", fix=_FIX)
        return bounds(plan.request, lengths)
    if len(words) > 3 or not (words[2:] or ["1"])[0].isdigit():
        raise UsageError(f"not a launch: {what!r}", where="roofline", fix=_FIX)
    tensor = int((words[2:] or ["1"])[0])
    return bounds(models.request(words[0], words[1], tensor_parallel_size=tensor).checked(), lengths)


def add_lines(figure: go.Figure, found: Sequence[Bound]) -> None:
    """Add the roofline to a figure of first tokens in seconds by length."""
    x = [bound.tokens for bound in found]
    for y, what in (
        ([bound.bound_s for bound in found], "full peak"),
        ([bound.assumed_s for bound in found], f"{percent(round(assumed(found), 3))} of the peak"),
    ):
        line = {"dash": "dot", "color": "#777", "width": 1 if what == "full peak" else 2}
        figure.add_scatter(x=x, y=y, mode="lines", line=line, name=f"roofline, {what}")


def assumed(found: Sequence[Bound]) -> float:
    """Share of the peak that the planner assumes."""
    return found[0].bound_s / found[0].assumed_s


def columns(bound: Bound | None, seconds: float | None) -> dict[str, object]:
    """What a measured first token says beside its bound."""
    if bound is None or not seconds:
        return {"roofline s": bound.bound_s if bound else None, "TFLOP/s a GPU": None, "of the peak": "-"}
    return {
        "roofline s": bound.bound_s,
        "TFLOP/s a GPU": bound.tflops(seconds),
        "of the peak": percent(round(bound.share(seconds), 3)),
    }


def _bound(asked: Request, tokens: int) -> Bound:
    from nemolab.models import roofline

    prefill, step = roofline.prefill(asked, tokens), roofline.decode(asked, 1, tokens)
    return Bound(
        tokens,
        prefill.linear_flops + prefill.attention_flops,
        prefill.bound_seconds,
        prefill.seconds,
        step.bound_seconds,
        step.seconds,
        asked.parallel.gpus,
    )
