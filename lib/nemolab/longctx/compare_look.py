"""What a comparison looks like, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from nemolab.core.finding import Finding, Severity
from nemolab.longctx.compare import Pair, sentence
from nemolab.longctx.rows import Row
from nemolab.longctx.stats import pairs_needed

if TYPE_CHECKING:
    import plotly.graph_objects as go

Names = tuple[str, str]
Table = list[dict[str, Any]]  # one dict a row


def figure(pairs: Sequence[Pair], names: Names, largest_loss: float) -> go.Figure:
    """Difference of right answers in points, by length and in all, with intervals and the loss that would matter."""
    import plotly.graph_objects as go

    labels = [_label(pair) for pair in pairs]
    gaps = [100 * pair.result.difference for pair in pairs]
    out = go.Figure()
    out.add_scatter(
        x=labels,
        y=gaps,
        mode="markers",
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [100 * pair.result.high - gap for pair, gap in zip(pairs, gaps, strict=True)],
            "arrayminus": [gap - 100 * pair.result.low for pair, gap in zip(pairs, gaps, strict=True)],
        },
        name=f"{names[1]} minus {names[0]}",
    )
    out.add_scatter(x=labels, y=[-100 * largest_loss] * len(labels), mode="lines", line={"dash": "dot"}, name="matters")
    out.update_xaxes(title="prompt tokens", type="category")
    out.update_yaxes(title="points of right answers", zeroline=True)
    return out


def table(pairs: Sequence[Pair], names: Names) -> Table:
    """Counts behind the figure."""
    return [
        {
            "length": _label(pair),
            "n": pair.result.n,
            "both right": pair.result.both,
            f"only {names[0]}": pair.result.only_first,
            f"only {names[1]}": pair.result.only_second,
            "neither": pair.result.neither,
            "difference, points": _points(pair),
            "p": round(pair.result.p, 4),
        }
        for pair in pairs
    ]


def text(pairs: Sequence[Pair], names: Names) -> str:
    """The comparison in sentences."""
    return " ".join(sentence(pair, names) for pair in pairs)


def times(first: Sequence[Row], second: Sequence[Row], names: Names) -> Table:
    """Median time to the first token of both, by length: what a cache or another server is worth."""
    lengths = sorted({row.length for row in first})
    medians = [(_median(first, n), _median(second, n)) for n in lengths]
    return [
        {
            "length": length,
            f"TTFT s, {names[0]}": a,
            f"TTFT s, {names[1]}": b,
            "ratio": b / a if a and b else None,
        }
        for length, (a, b) in zip(lengths, medians, strict=True)
    ]


def other_answers(first: Sequence[Row], second: Sequence[Row], limit: int = 5) -> list[tuple[str, str]]:
    """Label and both texts of answers that are not the same."""
    other = {row.id: row for row in second}
    differ = [(row, other[row.id]) for row in first if row.id in other and row.answer != other[row.id].answer]
    return [(f"{a.id} (expected {', '.join(a.expected)})", f"{a.answer}\n---\n{b.answer}") for a, b in differ[:limit]]


def passed(pairs: Sequence[Pair]) -> bool:
    """Whether no length, nor all together, is shown to lose."""
    return not any(pair.result.p < 0.05 and pair.result.difference < 0 for pair in pairs)


def findings(pairs: Sequence[Pair], largest_loss: float) -> list[Finding]:
    """What the comparison can and cannot show."""
    out = []
    for pair in pairs:
        r, where = pair.result, f"{_label(pair)} tokens"
        if r.p < 0.05 and r.difference < 0:
            text = f"Fewer right answers: {_points(pair)} points (p = {r.p:.3f}, n = {r.n})."
            out.append(Finding("X-WORSE", Severity.ERROR, text, "do not switch before you know why", where=where))
    total = pairs[-1].result
    if total.low < -largest_loss and passed(pairs):
        share = max(largest_loss, (total.only_first + total.only_second) / total.n)
        need = pairs_needed(largest_loss, share)
        text = f"A loss of {100 * largest_loss:g} points is not excluded: {_points(pairs[-1])}, n = {total.n}."
        out.append(Finding("X-OPEN", Severity.WARNING, text, f"about {need} pairs show it with 80 % power"))
    return out


def results(pairs: Sequence[Pair], first: Sequence[Row], second: Sequence[Row]) -> dict[str, Any]:
    """The values of `CompareResults`."""
    total, other = pairs[-1].result, {row.id: row for row in second}
    both = [(row, other[row.id]) for row in first if row.id in other]
    longest = max(row.length for row in first)
    a, b = _median(first, longest), _median(second, longest)
    return {
        "pairs": total.n,
        "difference": round(total.difference, 4),
        "difference_low": round(total.low, 4),
        "difference_high": round(total.high, 4),
        "p_value": round(total.p, 6),
        "only_first": total.only_first,
        "only_second": total.only_second,
        "same_answers": round(sum(x.answer == y.answer for x, y in both) / len(both), 4),
        "ttft_ratio": round(b / a, 3) if a and b else None,
    }


def _label(pair: Pair) -> str:
    return f"{pair.tokens:,}" if pair.tokens is not None else "all"


def _points(pair: Pair) -> str:
    r = pair.result
    return f"{100 * r.difference:+.1f} [{100 * r.low:+.1f}, {100 * r.high:+.1f}]"


def _median(rows: Sequence[Row], length: int) -> float | None:
    found = [row.ttft_s for row in rows if row.length == length and row.ttft_s is not None and not row.control]
    return median(found) if found else None
