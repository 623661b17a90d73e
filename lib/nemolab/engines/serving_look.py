"""A start as people see it: its phases and what the engine said of its memory, the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nemolab.engines.logs import Phase, Quantity

if TYPE_CHECKING:
    import plotly.graph_objects as go


def phase_rows(phases: Sequence[Phase]) -> list[dict[str, object]]:
    """One row a phase: when it began, how long it took, what would shorten it."""
    return [{"phase": p.name, "begins": p.begins_s, "took": p.seconds, "shorter with": p.saves or "-"} for p in phases]


def phase_figure(phases: Sequence[Phase]) -> go.Figure:
    """The start on a time axis: one bar a phase, from its begin to its end."""
    import plotly.graph_objects as go

    names = [phase.name for phase in phases]
    figure = go.Figure(
        go.Bar(
            y=names,
            x=[phase.seconds or 0.0 for phase in phases],
            base=[phase.begins_s for phase in phases],
            orientation="h",
            text=[f"{phase.seconds or 0.0:.3g} s" for phase in phases],
            textposition="outside",
            cliponaxis=False,
            showlegend=False,
        )
    )
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1])
    figure.update_xaxes(title_text="seconds since the start", rangemode="tozero")
    return figure


def phases_sentence(phases: Sequence[Phase]) -> str:
    """The longest phase, in words."""
    timed = [phase for phase in phases if phase.seconds is not None]
    if not timed:
        return "The log shows no phases."
    longest = max(timed, key=lambda phase: phase.seconds or 0.0)
    return f"The longest phase was {longest.name!r} with {longest.seconds:.2f} s."


def phase_captions(phases: Sequence[Phase]) -> dict[str, Any]:
    """What `show.figure` is told beside the figure: title, text alternative, the table behind it and its units."""
    return {
        "title": "The start, phase by phase",
        "alt": phases_sentence(phases),
        "table": phase_rows(phases),
        "units": {"begins": "s", "took": "s"},
    }


def capacity_rows(capacity: Mapping[str, Quantity]) -> list[dict[str, object]]:
    """One row a number that the engine printed."""
    return [
        {"quantity": name.replace("_", " "), "value": found.value, "unit": found.unit}
        for name, found in sorted(capacity.items())
    ]
