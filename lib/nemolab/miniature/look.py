"""What training and examination look like: tables, figures, findings, and the one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nemolab.core.finding import Finding, Severity
from nemolab.core.intervals import Share
from nemolab.miniature import evaluate
from nemolab.miniature.evaluate import Examination, Outcome
from nemolab.miniature.params import EvaluateResults, TrainResults
from nemolab.miniature.training import Training

if TYPE_CHECKING:
    import plotly.graph_objects as go

LIMIT_TO_8K, LIMIT_AT_32K, LIMIT_ABSENT = 0.99, 0.95, 0.95
Row = dict[str, object]


def phase_rows(record: dict[str, Any]) -> list[Row]:
    """One row a phase of the curriculum."""
    return [
        {
            "steps": phase["steps"],
            "tokens a step": phase["tokens"],
            "lengths": ", ".join(
                f"{length:,} ({share:.0%})" for length, share in zip(phase["lengths"], phase["shares"], strict=True)
            ),
        }
        for phase in record["plan"]["phases"]
    ]


def curve_figure(log: Sequence[dict[str, Any]]) -> go.Figure:
    """Share of whole answers right, and the loss, by step."""
    import plotly.graph_objects as go

    steps = [line["step"] for line in log]
    figure = go.Figure()
    figure.add_scatter(x=steps, y=[line["accuracy"] for line in log], name="answers right", mode="lines")
    figure.add_scatter(x=steps, y=[line["loss"] for line in log], name="loss", mode="lines", line={"dash": "dot"})
    figure.update_xaxes(title_text="step")
    figure.update_yaxes(title_text="share; nats", rangemode="tozero")
    return figure


def curve_rows(log: Sequence[dict[str, Any]], count: int = 12) -> list[Row]:
    """About `count` lines of the log, evenly, the last one with them."""
    stride = max(1, len(log) // count)
    lines = [*log[:-1][::stride], log[-1]]
    return [
        {
            "step": line["step"],
            "after": line["seconds"],
            "length": line["length"],
            "loss": line["loss"],
            "answers right": f"{line['accuracy']:.1%}",
        }
        for line in lines
    ]


def curve_sentence(log: Sequence[dict[str, Any]]) -> str:
    """The curve in words."""
    first = next((line for line in log if line["accuracy"] >= 0.9), None)
    last = log[-1]
    begin = f"Nine of ten answers are right from step {first['step']} on; " if first else ""
    return f"{begin}at the end, step {last['step']}, {last['accuracy']:.1%} are, with a loss of {last['loss']:.2f}."


def training_results(trained: Training) -> TrainResults:
    """The results that `60_train_miniature` publishes."""
    last, record = trained.log[-1], trained.record
    return TrainResults(
        parameters=record["parameters"],
        steps=last["step"],
        tokens=last["tokens"],
        seconds=record["seconds"],
        longest=max(length for phase in record["plan"]["phases"] for length in phase["lengths"]),
        accuracy=last["accuracy"],
        device=record["device"],
    )


def plan_rows(what: Examination) -> list[Row]:
    """What will be asked: one row a length."""
    return [
        {
            "length": f"{length:,}",
            "texts": texts,
            "asked, in the text": texts * what.present,
            "asked, not in the text": texts * what.absent,
        }
        for length, texts in zip(what.lengths, what.texts, strict=True)
    ]


def share_rows(shares: dict[Any, Share], what: str) -> list[Row]:
    """One row a group: n, right, share, interval."""
    return [
        {
            what: _name(group),
            "n": share.n,
            "right": share.successes,
            "exact match": _percent(share.value) if share.n else "-",
            "95 % interval": f"{_percent(share.low)} to {_percent(share.high)}",
        }
        for group, share in shares.items()
    ]


def share_figure(shares: dict[Any, Share], axis: str, limits: Sequence[float] = ()) -> go.Figure:
    """Exact match by group with its interval; `limits` as dotted lines."""
    import plotly.graph_objects as go

    names, values = [_name(group) for group in shares], [share.value for share in shares.values()]
    figure = go.Figure(
        go.Scatter(
            x=names,
            y=values,
            mode="markers",
            showlegend=False,
            marker={"size": 10},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [share.high - share.value for share in shares.values()],
                "arrayminus": [share.value - share.low for share in shares.values()],
            },
        )
    )
    for limit in limits:
        figure.add_hline(y=limit, line_dash="dot", annotation_text=f"limit {limit:.0%}")
    lowest = min((share.low for share in shares.values()), default=0.9)
    figure.update_xaxes(title_text=axis, type="category")
    figure.update_yaxes(title_text="exact match", tickformat=".1%", range=[min(0.9, lowest) - 0.02, 1.005])
    return figure


def share_sentence(shares: dict[Any, Share], what: str) -> str:
    """The weakest group in words."""
    if not shares:
        return f"Nothing was asked by {what}."
    group, share = min(shares.items(), key=lambda item: item[1].value)
    if share.value == 1:
        return f"Every answer is right in every group by {what}."
    return f"The weakest group by {what} is {_name(group)}: {share}."


def wrong_rows(outcomes: Sequence[Outcome], limit: int = 20) -> list[Row]:
    """The wrong answers, at most `limit` of them."""
    wrong = [outcome for outcome in outcomes if not outcome.right][:limit]
    return [
        {
            "ability": o.ability,
            "text": o.text or "-",
            "length": f"{o.length:,}" if o.length else "short",
            "depth": "-" if o.depth is None else f"{o.depth:.2f}",
            "thinking": "on" if o.thinking else "off",
            "expected": o.expected,
            "answer": o.answer,
        }
        for o in wrong
    ]


def evaluation_results(outcomes: Sequence[Outcome]) -> EvaluateResults:
    """The results that `61_evaluate_miniature` publishes."""
    there = evaluate.found(outcomes)
    short = evaluate.share(o for o in there if o.length <= 8192)
    middle = evaluate.share(o for o in there if o.length == 32768)
    long = evaluate.share(o for o in there if o.length == 65536)
    absent = evaluate.share(o for o in outcomes if o.ability == "absent")
    others = evaluate.share(o for o in outcomes if not o.length)
    limits = ((short, LIMIT_TO_8K), (middle, LIMIT_AT_32K), (absent, LIMIT_ABSENT))
    return EvaluateResults(
        asked=len(outcomes),
        to_8k=_value(short),
        to_8k_low=_value(short, low=True),
        at_32k=_value(middle),
        at_32k_low=_value(middle, low=True),
        at_65k=_value(long),
        absent=_value(absent),
        others=_value(others),
        stopped=round(sum(o.stopped for o in outcomes) / len(outcomes), 4) if outcomes else None,
        good=bool(outcomes) and all(share.value >= limit for share, limit in limits if share.n),
    )


def findings(outcomes: Sequence[Outcome]) -> list[Finding]:
    """Limits that were missed, and what the examination cannot show."""
    there = evaluate.found(outcomes)
    checks = (
        ("up to 8,192 tokens", evaluate.share(o for o in there if o.length <= 8192), LIMIT_TO_8K),
        ("at 32,768 tokens", evaluate.share(o for o in there if o.length == 32768), LIMIT_AT_32K),
        ("of refusals", evaluate.share(o for o in outcomes if o.ability == "absent"), LIMIT_ABSENT),
    )
    found = [
        Finding(
            "M-limit", Severity.ERROR, f"Exact match {what}: {share}, below {limit:.0%}.", "look at the wrong answers"
        )
        for what, share, limit in checks
        if share.n and share.value < limit
    ]
    texts = {(o.length, o.text, o.depth is None) for o in outcomes if o.length}
    if texts:
        message = "Questions about one text are not independent, so the intervals are a little too narrow."
        found.append(Finding("M-cluster", Severity.INFO, message))
    return found


def sentence(values: EvaluateResults) -> str:
    """The examination in one sentence."""
    parts = [
        f"{value:.1%} {what}"
        for value, what in (
            (values.to_8k, "right to 8k"),
            (values.at_32k, "at 32k"),
            (values.at_65k, "at 65k"),
            (values.absent, "of absent keys refused"),
        )
        if value is not None
    ]
    return f"{values.asked} requests: {', '.join(parts)}."


def _value(share: Share, *, low: bool = False) -> float | None:
    return round(share.low if low else share.value, 4) if share.n else None


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _name(group: Any) -> str:
    if isinstance(group, int):
        return f"{group:,}"
    if isinstance(group, tuple):
        return f"{group[0]:.0%} to {group[1]:.0%}"
    return str(group)
