"""Which models fit on which GPUs: the smallest layout of each pair, and the memory of one launch part by part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nemolab.core.errors import UsageError
from nemolab.core.sizes import GIB
from nemolab.models.planner import Plan, plan
from nemolab.models.request import Request, request
from nemolab.models.units import gib

if TYPE_CHECKING:
    import plotly.graph_objects as go

_SIZES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one kind of GPU. `plan` is of the fewest GPUs that hold it; None when no number tried does."""

    model: str
    gpu: str
    plan: Plan | None

    @property
    def gpus(self) -> int | None:
        """Fewest GPUs."""
        return self.plan.request.gpus if self.plan else None


def survey(
    models: Iterable[str], gpus: Iterable[str], sizes: Sequence[int] = _SIZES, **options: Any
) -> tuple[Cell, ...]:
    """The smallest tensor parallel layout of each pair that holds one request of the asked length.

    Args:
        models, gpus: names.
        sizes: tensor parallel sizes to try, in this order.
        options: of `request`; `num_speculative_tokens` is dropped where a checkpoint has no MTP layer.

    Raises:
        UsageError: an unknown name.
    """
    names = tuple(gpus)
    return tuple(_smallest(model, gpu, sizes, options) for model in models for gpu in names)


def _smallest(model: str, gpu: str, sizes: Sequence[int], options: dict[str, Any]) -> Cell:
    first = request(model, gpu, **options)
    if not first.model.shape.has_mtp:
        options = {**options, "num_speculative_tokens": 0}
    for size in sizes:
        try:
            found = plan(request(model, gpu, tensor_parallel_size=size, **options))
        except UsageError:
            continue  # heads that do not divide over that many ranks
        if found.fits:
            return Cell(model, gpu, found)
    return Cell(model, gpu, None)


def survey_figure(cells: Sequence[Cell]) -> tuple[go.Figure, list[dict[str, Any]], str]:
    """A grid of models and GPUs: in each field the fewest GPUs and what is left on each; table; text alternative."""
    import plotly.graph_objects as go

    models = list(dict.fromkeys(cell.model for cell in cells))
    gpus = list(dict.fromkeys(cell.gpu for cell in cells))
    at = {(cell.model, cell.gpu): cell for cell in cells}
    grid = [[at[model, gpu] for gpu in gpus] for model in models]
    fig = go.Figure(
        go.Heatmap(
            x=gpus,
            y=models,
            z=[[_shade(cell) for cell in row] for row in grid],
            text=[[_field(cell) for cell in row] for row in grid],
            texttemplate="%{text}",
            colorscale=[[0, "#f4f4f4"], [0.01, "#dceaf7"], [1, "#7fb3dd"]],
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=3,
            ygap=3,
            hoverinfo="skip",
        )
    )
    fig.update_xaxes(title_text="kind of GPU", side="bottom", showgrid=False)
    fig.update_yaxes(autorange="reversed", showgrid=False)
    none = [f"{cell.model} on {cell.gpu}" for cell in cells if cell.plan is None]
    alt = f"{len(cells) - len(none)} of {len(cells)} pairs have a layout that fits."
    if none:
        alt += f" None for: {', '.join(none)}."
    return fig, [row for cell in cells if (row := _row(cell))], alt


def _shade(cell: Cell) -> float:
    """Share of the budget that is left beside one request: darker is roomier; 0 is "does not fit"."""
    return 0.0 if cell.plan is None else max(0.02, min(1.0, cell.plan.headroom / cell.plan.budget))


def _field(cell: Cell) -> str:
    if cell.plan is None:
        return "no"
    return f"{cell.gpus} GPU{'s' if cell.gpus != 1 else ''}<br>{cell.plan.headroom / GIB:.0f} GiB left"


def _row(cell: Cell) -> dict[str, Any]:
    found = cell.plan
    return {
        "model": cell.model,
        "GPU": cell.gpu,
        "fewest GPUs": cell.gpus,
        "weights": gib(found.weights.total) if found else None,
        "left": gib(found.headroom) if found else None,
        "requests": round(found.concurrency, 1) if found else None,
        "longest context": found.max_context if found else None,
        "fit": str(found.fit) if found else "does not fit",
    }


PARTS = ("weights", "MTP weights", "activations", "CUDA graphs", "communication", "one request", "left for more")


def parts(found: Plan) -> dict[str, float]:
    """Memory of one GPU by what it is for, GiB, in the order of PARTS. What is left may be negative."""
    sizes = (
        found.weights.total - found.weights.mtp,
        found.weights.mtp,
        found.overhead.activations,
        found.overhead.cuda_graphs,
        found.overhead.communication,
        found.request_bytes,
        found.headroom,
    )
    return {name: gib(size) for name, size in zip(PARTS, sizes, strict=True)}


# What the bars show, bottom to top: colour and pattern.
_BARS = {
    "weights": ("#0072B2", ""),
    "MTP weights": ("#56B4E9", "/"),
    "activations, graphs, communication": ("#E69F00", ""),
    "one request": ("#D55E00", "x"),
    "left for more requests": ("#e8e8e8", ""),
}


def _bars(found: Plan) -> dict[str, float]:
    sizes = (
        found.weights.total - found.weights.mtp,
        found.weights.mtp,
        found.overhead.total,
        found.request_bytes,
        max(0, found.headroom),
    )
    return {name: gib(size) for name, size in zip(_BARS, sizes, strict=True)}


def parts_figure(plans: Sequence[Plan]) -> tuple[go.Figure, list[dict[str, Any]], str]:
    """Stacked bars of what one GPU holds, against its budget; table; text alternative."""
    import plotly.graph_objects as go

    labels = [f"{found.request.gpus} x {found.request.gpu.name}" for found in plans]
    bars = {label: _bars(found) for label, found in zip(labels, plans, strict=True)}
    fig = go.Figure()
    for name, (colour, pattern) in _BARS.items():
        sizes = [bars[label][name] for label in labels]
        if any(size > 0 for size in sizes):
            look = {"color": colour, "pattern": {"shape": pattern}, "line": {"width": 0}}
            fig.add_bar(name=name, x=labels, y=sizes, marker=look)
    fig.add_scatter(
        name="budget",
        x=labels,
        y=[gib(found.budget) for found in plans],
        mode="markers",
        marker={"symbol": "line-ew", "size": 46, "line": {"width": 3, "color": "#000000"}},
    )
    fig.update_layout(barmode="stack")
    fig.update_yaxes(title_text="GiB a GPU")
    over = [label for label, found in zip(labels, plans, strict=True) if not found.fits]
    alt = f"Too small: {', '.join(over)}." if over else "Every layout holds the weights and one request."
    rows = [
        {"layout": label, **parts(found), "budget": gib(found.budget), "fit": str(found.fit)}
        for label, found in zip(labels, plans, strict=True)
    ]
    return fig, rows, alt


def same_layout(asked: Request, gpus: Iterable[str]) -> tuple[Plan, ...]:
    """The same launch on other kinds of GPU."""
    from nemolab.models.gpus import find

    return tuple(plan(asked.but(gpu=find(name), memory=None)) for name in gpus)
