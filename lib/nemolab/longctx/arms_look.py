"""The price of several settings as people see it: figures, and the table behind each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log10
from typing import TYPE_CHECKING, Any

from nemolab.core.finding import Finding
from nemolab.core.intervals import percent
from nemolab.engines.serving_against import against
from nemolab.longctx import roofline_look
from nemolab.longctx.arms import Measured
from nemolab.longctx.arms_agree import Compared
from nemolab.longctx.arms_plan import Planned
from nemolab.longctx.arms_rows import Point
from nemolab.longctx.look import length_axis

if TYPE_CHECKING:
    import plotly.graph_objects as go

Table = list[dict[str, Any]]
TIME_UNITS = {"first token": "s", "engine's part": "s", "asked again": "s", "beside another": "s"}
PLAN_UNITS = {
    "first token, bound": "s", "first token, expected": "s",
    "step, bound": "ms", "step, expected": "ms",
}  # fmt: skip
STEP_UNITS = {"decode step": "ms", "roofline": "ms", "expected": "ms"}


def arm_rows(plans: Sequence[Planned]) -> Table:
    """What each arm changes, and what is asked of it."""
    return [
        {
            "arm": plan.arm,
            "changes": ", ".join(word.removeprefix("args.") for word in plan.settings) or "nothing",
            "context": plan.context or None,
            "longest prompt": plan.lengths[-1],
            "fits": plan.fits,
            "KV cache GiB": plan.expected.get("kv_cache"),
            "KV cache tokens": plan.expected.get("kv_tokens"),
            "at once": plan.expected.get("max_concurrency"),
        }
        for plan in plans
    ]


def plan_rows(plans: Sequence[Planned]) -> Table:
    """Time by length from the roofline; arms that have the same are one row."""
    rows: dict[tuple[object, ...], list[str]] = {}
    for plan in plans:
        for b in plan.bounds:
            rows.setdefault((b.tokens, b.flops, b.bound_s, b.assumed_s, b.step_bound_s, b.step_assumed_s), []).append(
                plan.arm
            )
    return [
        {
            "length": key[0],
            "arms": "all" if len(names) == len(plans) else ", ".join(names),
            "PFLOP": float(str(key[1])) / 1e15,
            "first token, bound": key[2],
            "first token, expected": key[3],
            "step, bound": float(str(key[4])) * 1000,
            "step, expected": float(str(key[5])) * 1000,
        }
        for key, names in sorted(rows.items(), key=lambda item: float(str(item[0][0])))
    ]


def plan_findings(plans: Sequence[Planned]) -> list[Finding]:
    """What lint and plan say of the arms, once where several share it."""
    where: dict[Finding, list[str]] = {}
    for plan in plans:
        for finding in dict.fromkeys(plan.findings):
            where.setdefault(replace(finding, where=None), []).append(plan.arm)
    return [
        replace(finding, where="every arm" if len(names) == len(plans) else ", ".join(names))
        for finding, names in where.items()
    ]


def _room(lengths: Sequence[int]) -> list[float]:
    """Ends of a logarithmic axis with room for the names of the first and the last length."""
    first, last = log10(lengths[0]), log10(lengths[-1])
    room = max(0.06 * (last - first), 0.05)
    return [round(first - room, 3), round(last + room, 3)]


def time_figure(plans: Sequence[Planned], arms: Sequence[Measured]) -> go.Figure:
    """First token by length and arm, with the roofline of the first arm that has one."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for arm in arms:
        points = [p for p in arm.asked.points if p.cold_s]
        if points:
            figure.add_scatter(x=[p.tokens for p in points], y=[p.cold_s for p in points], name=arm.arm)
    bounds = next((plan.bounds for plan in plans if plan.bounds), ())
    if bounds:
        roofline_look.add_lines(figure, bounds)
    every = sorted({length for plan in plans for length in plan.lengths})
    length_axis(figure, every)
    figure.update_xaxes(range=_room(every))
    figure.update_yaxes(title="first token, s", type="log", dtick="D2")
    return figure


def time_rows(plans: Sequence[Planned], arms: Sequence[Measured]) -> Table:
    """One row a length and arm: what it took, what that is of the peak, and what asking again took."""
    by_name = {plan.arm: plan for plan in plans}
    return [
        {
            "length": point.tokens,
            "arm": arm.arm,
            "first token": point.cold_s,
            "engine's part": point.engine_s,
            "tokens/s": round(point.tokens / point.cold_s) if point.cold_s else None,
            **roofline_look.columns(by_name[arm.arm].bound(point.tokens), point.cold_s),
            "asked again": point.again_s,
            "from the cache": point.cached,
            "beside another": point.beside_s,
            "needle": "found" if point.found else "not found",
        }
        for arm, point in _points(arms)
    ]


def time_text(plans: Sequence[Planned], arms: Sequence[Measured]) -> str:
    """The figure in words: every arm at its longest prompt."""
    parts = []
    for arm in arms:
        if points := [p for p in arm.asked.points if p.cold_s]:
            parts.append(f"{arm.arm}: {points[-1].cold_s or 0.0:,.2f} s at {points[-1].tokens:,} tokens")
    return "; ".join(parts) + "." if parts else "Nothing was measured; the lines are the roofline."


def ratio_rows(arms: Sequence[Measured]) -> Table:
    """First token of each arm over that of the first arm, by length."""
    first = next((arm for arm in arms if any(p.cold_s for p in arm.asked.points)), None)
    if first is None:
        return []
    rows: Table = []
    for base in first.asked.points:
        others = {arm.arm: arm.asked.at(base.tokens) for arm in arms if arm is not first}
        rows.append(
            {"length": base.tokens, first.arm: 1.0}
            | {name: _ratio(point, base) for name, point in others.items()}
        )  # fmt: skip
    return rows


def step_rows(plans: Sequence[Planned], arms: Sequence[Measured]) -> Table:
    """Decode step by length and arm beside the roofline."""
    by_name = {plan.arm: plan for plan in plans}
    rows: Table = []
    for arm, point in _points(arms):
        if point.decode_ms is None:
            continue
        bound = by_name[arm.arm].bound(point.tokens)
        rows.append(
            {
                "length": point.tokens,
                "arm": arm.arm,
                "decode step": point.decode_ms,
                "roofline": bound.step_bound_s * 1000 if bound else None,
                "expected": bound.step_assumed_s * 1000 if bound else None,
                "of the bandwidth": percent(round(bound.step_bound_s * 1000 / point.decode_ms, 3)) if bound else "-",
                "clock": point.decode_by,
            }
        )
    return rows


def memory_rows(plans: Sequence[Planned], arms: Sequence[Measured]) -> Table:
    """Planned beside printed, for every number of an arm that both have."""
    by_name = {plan.arm: plan for plan in plans}
    return [{"arm": arm.arm, **row} for arm in arms for row in against(by_name[arm.arm].expected, arm.capacity)]


def start_rows(arms: Sequence[Measured]) -> Table:
    """How each arm started: time in all, and its longest phases."""
    return [
        {
            "arm": arm.arm,
            "state": arm.state,
            "ready": arm.ready_s,
            "longest phases": ", ".join(
                f"{phase.name} {phase.seconds:.0f} s"
                for phase in sorted(arm.phases, key=lambda phase: -(phase.seconds or 0.0))[:3]
                if phase.seconds
            )
            or "-",
            "what went wrong": arm.failure or "-",
        }
        for arm in arms
    ]


def agree_rows(rows: Sequence[Compared]) -> Table:
    """One row a length and arm, with a column for each comparison."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        names = {"settings": "other settings", "cache": "from the cache", "batch": "beside another"}
        mine = found.setdefault(
            (row.tokens, row.arm),
            {"length": row.tokens, "arm": row.arm, **dict.fromkeys(names.values(), "-"), "what differs": []},
        )
        moved = f", logprob moved by {row.moved:.2g}" if row.moved is not None else ""
        mine[names[row.relation]] = f"{row.verdict}{moved}"
        if row.note:
            at = f" at token {row.at}" if row.at else ""
            mine["what differs"].append(f"{names[row.relation]}{at}: {row.note}")
    return [row | {"what differs": "; ".join(row["what differs"]) or "-"} for row in found.values()]


def said_rows(arms: Sequence[Measured]) -> Table:
    """What was answered cold, by length and arm, and otherwise where that is another text."""
    return [
        {
            "length": point.tokens,
            "arm": arm.arm,
            "how": said.how,
            "first token": repr(said.tokens[0].text) if said.tokens else "-",
            "logprob": said.tokens[0].logprob if said.tokens else None,
            "answer": repr(said.text[:48]),
        }
        for arm, point in _points(arms)
        for said in point.said
        if said.how == "cold" or said.text != point.said[0].text
    ]


def _points(arms: Sequence[Measured]) -> list[tuple[Measured, Point]]:
    """Every measurement, by length, arms in their order."""
    found = [(arm, point) for arm in arms for point in arm.asked.points]
    return sorted(found, key=lambda pair: pair[1].tokens)


def _ratio(point: Point | None, base: Point) -> float | None:
    return point.cold_s / base.cold_s if point and point.cold_s and base.cold_s else None
