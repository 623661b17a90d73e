"""What a suite looks like: figures, and the table behind each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nemolab.core.intervals import Quantile, percent, proven
from nemolab.longctx import roofline_look
from nemolab.longctx.failures import MODEL, Outcome
from nemolab.longctx.roofline_look import Bound
from nemolab.longctx.rows import Row, Suite
from nemolab.longctx.stats import clustered
from nemolab.longctx.suite import texts
from nemolab.longctx.summary import Cell, Length

if TYPE_CHECKING:
    import plotly.graph_objects as go

Table = list[dict[str, Any]]  # one dict a row


def plan_table(suite: Suite) -> Table:
    """What will be asked at each length, at most, and what it would prove if every answer were right."""
    answers = len(suite.tasks) * suite.haystacks * suite.questions
    each = [[True] * (suite.haystacks * suite.questions // texts(suite, task)) for task in suite.tasks]
    worth = clustered([group for task, group in zip(suite.tasks, each, strict=True) for _ in range(texts(suite, task))])
    return [
        {
            "length": length,
            "texts": worth.haystacks,
            "questions": answers,
            "worth": f"{worth.effective:.1f} independent answers",
            "all right proves at least": percent(round(proven(worth.effective), 3)),
            "prompt tokens": length * answers,
        }
        for length in suite.lengths
    ]


def map_figure(cells: Sequence[Cell]) -> go.Figure:
    """The depth by length map: share in colour, and in every cell right/n with its interval."""
    import plotly.graph_objects as go

    lengths = sorted({cell.tokens for cell in cells})
    depths = sorted({(cell.low, cell.high) for cell in cells})
    at = {(cell.tokens, cell.low): cell.share for cell in cells}
    grid = [[at[length, low] for length in lengths] for low, _ in depths]
    figure = go.Figure()
    figure.add_heatmap(
        x=[f"{length:,}" for length in lengths],
        y=[f"{100 * low:.0f}-{100 * high:.0f} %" for low, high in depths],
        z=[[share.value if share.n else None for share in row] for row in grid],
        text=[[_cell(share.successes, share.n, share.low, share.high) for share in row] for row in grid],
        texttemplate="%{text}",
        zmin=0,
        zmax=1,
        colorbar={"title": "right", "tickformat": ".0%"},
        hoverongaps=False,
    )
    figure.update_xaxes(title="prompt tokens", type="category")
    figure.update_yaxes(title="depth of the needle", type="category", autorange="reversed")
    return figure


def map_table(cells: Sequence[Cell]) -> Table:
    """The map in figures."""
    return [
        {
            "length": cell.tokens,
            "depth": f"{100 * cell.low:.0f}-{100 * cell.high:.0f} %",
            "right": str(cell.share),
        }
        for cell in cells
    ]


def map_text(cells: Sequence[Cell]) -> str:
    """The map for who cannot see it: the weakest cells."""
    filled = sorted((cell for cell in cells if cell.share.n), key=lambda cell: cell.share.value)
    if not filled:
        return "No answer."
    weak = [cell for cell in filled if cell.share.value < 1][:3]
    if not weak:
        return f"Every needle was found, in all {len(filled)} cells."
    parts = (f"{cell.tokens:,} tokens at {100 * cell.low:.0f}-{100 * cell.high:.0f} %: {cell.share}" for cell in weak)
    return "Weakest: " + "; ".join(parts) + "."


def accuracy_figure(lengths: Sequence[Length], wanted: float) -> go.Figure:
    """Share of right answers by length, with intervals for the effective number, and RULER's string match."""
    import plotly.graph_objects as go

    x = [length.tokens for length in lengths]
    shares = [length.right.share for length in lengths]
    figure = go.Figure()
    figure.add_scatter(
        x=x,
        y=[s.value for s in shares],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [s.high - s.value for s in shares],
            "arrayminus": [s.value - s.low for s in shares],
        },
        name="exactly right",
    )
    figure.add_scatter(x=x, y=[length.ruler for length in lengths], name="RULER string match")
    figure.add_scatter(x=x, y=[wanted] * len(x), mode="lines", line={"dash": "dot"}, name="wanted")
    length_axis(figure, x)
    figure.update_yaxes(title="share of answers", range=[0, 1.05], tickformat=".0%")
    return figure


def length_table(lengths: Sequence[Length]) -> Table:
    """One row a length: share, what it is worth, RULER's score, controls."""
    return [
        {
            "length": length.tokens,
            "right": str(length.right),
            "worth": f"{length.right.effective:.1f} independent answers",
            "RULER string match": percent(length.ruler) if length.ruler is not None else "-",
            "controls passed": _controls(length),
        }
        for length in lengths
    ]


def task_table(lengths: Sequence[Length]) -> Table:
    """One row a task: its right answers at each length."""
    names = dict.fromkeys(task for length in lengths for task, _ in length.tasks)
    found = {(task, length.tokens): right for length in lengths for task, right in length.tasks}
    return [
        {"task": task} | {f"{each.tokens:,}": str(found.get((task, each.tokens), "-")) for each in lengths}
        for task in names
    ]


def ttft_figure(lengths: Sequence[Length], bounds: Sequence[Bound] = ()) -> go.Figure:
    """Median time to the first token by length, cold and with the text already in the server's cache.

    Args:
        bounds: roofline of the lengths, drawn beside them.
    """
    import plotly.graph_objects as go

    x = [length.tokens for length in lengths]
    figure = go.Figure()
    for name, which in (("first question on a text", "cold"), ("further questions", "warm")):
        values: list[Quantile] = [getattr(length, which) for length in lengths]
        figure.add_scatter(
            x=x,
            y=[v.value if v.n else None for v in values],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [v.high - v.value if v.high is not None else 0 for v in values],
                "arrayminus": [v.value - v.low if v.low is not None else 0 for v in values],
            },
            name=name,
        )
    if bounds:
        roofline_look.add_lines(figure, bounds)
    length_axis(figure, x)
    figure.update_yaxes(title="TTFT s", type="log", dtick="D2")
    return figure


def ttft_sentence(lengths: Sequence[Length]) -> str:
    """The figure in words; what was not measured is not mentioned."""
    parts = []
    for length in lengths:
        times = [f"{which} {q.value:.2f} s" for which, q in (("cold", length.cold), ("warm", length.warm)) if q.n]
        parts.append(f"{length.tokens:,} tokens: {', '.join(times) or 'not measured'}")
    return "; ".join(parts)


def ttft_table(lengths: Sequence[Length], bounds: Sequence[Bound] = ()) -> Table:
    """Time to the first token by length, with intervals, and what the cache gave.

    Args:
        bounds: roofline of the lengths: the cold times are held against it, in columns of their own.
    """
    at = {bound.tokens: bound for bound in bounds}
    return [
        {
            "length": length.tokens,
            "cold TTFT s": _seconds(length.cold),
            "warm TTFT s": _seconds(length.warm),
            "cold tokens/s": length.tokens / length.cold.value if length.cold.n else None,
            "from the cache": percent(length.cached) if length.cached is not None else "-",
        }
        | (roofline_look.columns(at.get(length.tokens), length.cold.value if length.cold.n else None) if bounds else {})
        for length in lengths
    ]


def outcome_table(asked: Sequence[Row]) -> Table:
    """Every class that occurred, by length, controls included, with an example of each."""
    lengths = sorted({row.length for row in asked})
    seen = [outcome for outcome in Outcome if any(row.outcome is outcome for row in asked)]
    rows: Table = []
    for outcome in seen:
        here = [row for row in asked if row.outcome is outcome]
        example = "" if outcome is Outcome.CORRECT else f"{here[0].id}: {here[0].why}"
        counts = {f"{length:,}": sum(row.length == length for row in here) for length in lengths}
        rows.append({"class": str(outcome)} | counts | {"example": example})
    return rows


def examples(asked: Sequence[Row], limit: int = 5) -> list[tuple[str, str]]:
    """Label and text of answers that were wrong, one of each class first."""
    wrong = [row for row in asked if row.outcome in MODEL and row.control != "no context"]
    first = list({row.outcome: row for row in reversed(wrong)}.values())
    rest = [row for row in wrong if row not in first]
    return [(f"{row.id} ({row.outcome}; expected {', '.join(row.expected) or 'a refusal'})", row.answer)
            for row in [*first, *rest][:limit]]  # fmt: skip


def _controls(length: Length) -> str:
    return "; ".join(f"{kind} {share.successes}/{share.n}" for kind, share in length.controls) or "-"


def _cell(right: int, n: int, low: float, high: float) -> str:
    return f"{right}/{n}<br>[{percent(low, '')}, {percent(high, '')}]" if n else "n = 0"


def _seconds(q: Quantile) -> str:
    if not q.n:
        return "-"
    low = f"{q.low:.2f}" if q.low is not None else "?"
    high = f"{q.high:.2f}" if q.high is not None else "no bound"
    return f"{q.value:.2f} [{low}, {high}], n = {q.n}"


def length_axis(figure: go.Figure, lengths: Sequence[int]) -> None:
    """Name every prompt length of a logarithmic axis."""
    figure.update_xaxes(
        title="prompt tokens", type="log", tickvals=list(lengths), ticktext=[f"{length:,}" for length in lengths]
    )
