"""The figure of `10_check_host`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nemolab.host.headroom import Headroom

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST = 10.0  # bars end here: ten times enough is enough


def headroom_figure(rows: Sequence[Headroom]) -> tuple[go.Figure, list[dict[str, Any]], str]:
    """Bars of what is there as a multiple of what is needed; the table behind them; the text alternative."""
    import plotly.graph_objects as go

    known = [row for row in rows if row.ratio is not None]
    ratios = [min(row.ratio or 0.0, _MOST) for row in known]
    texts = [_text(row) for row in known]
    fig = go.Figure(
        go.Bar(
            x=ratios,
            y=[row.resource for row in known],
            orientation="h",
            text=texts,
            marker_color=["#0072B2" if ratio >= 1 else "#D55E00" for ratio in ratios],
            marker_pattern_shape=["" if ratio >= 1 else "/" for ratio in ratios],
        )
    )
    fig.add_vline(x=1, line_dash="dash", annotation_text="needed")
    fig.update_xaxes(title_text="there / needed", range=[0, _MOST])
    fig.update_yaxes(autorange="reversed")
    short = [row.resource for row in known if (row.ratio or 0) < 1]
    missing = [row.resource for row in rows if row.have is None]
    alt = f"Too little of: {', '.join(short)}." if short else "Enough of everything that was compared."
    if missing:
        alt += f" Unknown: {', '.join(missing)}."
    return fig, [_row(row) for row in rows], alt


def _text(row: Headroom) -> str:
    return f"{_amount(row.have)} of {_amount(row.need)} {row.unit}".strip()


def _amount(value: float | None) -> str:
    if value is None:
        return "unknown"
    if value == float("inf"):
        return "unlimited"
    return f"{value:,.1f}" if value < 1000 and value != int(value) else f"{value:,.0f}"


def _row(row: Headroom) -> dict[str, Any]:
    return {
        "resource": row.resource,
        "there": _amount(row.have),
        "needed": _amount(row.need),
        "unit": row.unit,
        "enough": "unknown" if row.ratio is None else "yes" if row.ratio >= 1 else "no",
    }
