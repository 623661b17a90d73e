"""The look of the figures: one plotly template, readable without colour, light, of fixed size."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

# Okabe and Ito's palette, told apart by readers with any colour vision (jfly.uni-koeln.de/color, 2008); its yellow is
# left out because it vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star")
PATTERNS = ("", "/", ".", "x", "-", "+", "\\")
NAME = "nemolab"
WIDTH, HEIGHT = 760, 400

# What the bundle in the reports can draw: README of plotly.js-cartesian-dist-min 4.1.1. Any other type is drawn wrong
# or not at all, without an error (plotly.js#4813).
TRACES = frozenset(
    {
        *("bar", "box", "contour", "heatmap", "histogram", "histogram2d", "histogram2dcontour"),
        *("image", "pie", "scatter", "scatterternary", "violin"),
    }
)


def template_for(kinds: Iterable[str]) -> dict[str, Any]:
    """The template as JSON values, without what is only for trace types that a figure does not have."""
    whole: dict[str, Any] = template().to_plotly_json()
    return {**whole, "data": {kind: series for kind, series in whole["data"].items() if kind in kinds}}


@functools.cache
def template() -> Any:
    """The template, registered with plotly as `nemolab`; colour, dash, marker and pattern change together by series."""
    import plotly.graph_objects as go
    import plotly.io as pio

    axis = {
        "showgrid": True,
        "gridcolor": "#e3e3e3",
        "linecolor": "#444",
        "ticks": "outside",
        "zeroline": False,
        "automargin": True,
    }
    series = list(zip(COLOURS, DASHES, SYMBOLS, PATTERNS, strict=True))
    look = go.layout.Template(
        layout={
            "colorway": list(COLOURS),
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#222"},
            "title": {"x": 0, "xref": "paper", "xanchor": "left", "font": {"size": 16}},
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "margin": {"l": 70, "r": 20, "t": 50, "b": 60},
            "xaxis": axis,
            "yaxis": axis,
            "legend": {"orientation": "h", "y": -0.28, "yanchor": "top", "x": 0},
            "bargap": 0.25,
        },
        data={
            "scatter": [
                {"line": {"color": c, "dash": d, "width": 2}, "marker": {"color": c, "symbol": s, "size": 8}}
                for c, d, s, _ in series
            ],
            "bar": [{"marker": {"color": c, "pattern": {"shape": p}}} for c, _, _, p in series],
            "histogram": [{"marker": {"color": c, "pattern": {"shape": p}}} for c, _, _, p in series],
            "box": [{"line": {"color": c}, "marker": {"color": c, "symbol": s}} for c, _, s, _ in series],
            "violin": [{"line": {"color": c}, "marker": {"color": c, "symbol": s}} for c, _, s, _ in series],
            "heatmap": [{"colorscale": "Cividis", "colorbar": {"outlinewidth": 0}}],
        },
    )
    pio.templates[NAME] = look
    return look
