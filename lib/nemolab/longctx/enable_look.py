"""A launch for long context as people see it: cost by length, planned and, where a server was asked, measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nemolab.longctx.enable import Enabling
from nemolab.longctx.enable_climb import Climb

_APART = 1.2  # of two lengths, below which their names would overlap

if TYPE_CHECKING:
    import plotly.graph_objects as go


def sentence(found: Enabling, climbed: Climb) -> str:
    """Launch and climb in words: what speaks against the launch first, then how far the climb went."""
    return climbed.sentence if found.sound and climbed.endpoint else found.sentence


def figure(found: Enabling, climbed: Climb) -> go.Figure:
    """Time to the first token by length."""
    import plotly.graph_objects as go

    made = go.Figure()
    planned = [cost for cost in found.costs if cost.prefill_s]  # a logarithmic axis has no place for nothing
    if planned:
        made.add_scatter(x=[c.tokens for c in planned], y=[c.prefill_s for c in planned], name="planned")
    seen = [row for row in climbed.rows if row.ttft_s]
    if seen:
        made.add_scatter(x=[row.length for row in seen], y=[row.ttft_s for row in seen], name="measured")
    ticks = _ticks([*(c.tokens for c in found.costs), *(row.length for row in seen)])
    made.update_xaxes(title="prompt tokens", type="log", tickvals=ticks, ticktext=[_short(n) for n in ticks])
    made.update_yaxes(title="first token, s", type="log", dtick="D2")
    return made


def _ticks(lengths: Iterable[int]) -> list[int]:
    """The lengths, longest first to be kept, without those that lie on a logarithmic axis where another is named."""
    kept: list[int] = []
    for length in sorted(set(lengths), reverse=True):
        if not kept or kept[-1] / length > _APART:
            kept.append(length)
    return kept[::-1]


def _short(tokens: int) -> str:
    """A length as the parameter `lengths` has it: K and M are binary."""
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if tokens % unit == 0:
            return f"{tokens // unit:,}{name}"
    return f"{tokens:,}"


def captions(found: Enabling, climbed: Climb) -> dict[str, Any]:
    """What `show.figure` is told beside the figure."""
    planned = [{"length": c.tokens, "kind": "planned", "first token": c.prefill_s} for c in found.costs if c.prefill_s]
    seen = [{"length": r.length, "kind": "measured", "first token": r.ttft_s} for r in climbed.rows if r.ttft_s]
    ends = [f"{rows[-1]['kind']} {rows[-1]['first token']:,.1f} s at {rows[-1]['length']:,}" for rows in (planned, seen)
            if rows]  # fmt: skip
    return {
        "title": "Time to the first token by length",
        "alt": "; ".join(ends) or "Nothing is planned and nothing was measured.",
        "table": planned + seen or [{"length": "-", "kind": "-", "first token": "-"}],
        "units": {"first token": "s"},
    }
