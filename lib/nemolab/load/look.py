"""What a ladder looks like: figures with the table behind each, findings, and the one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nemolab.core.finding import Finding, Severity
from nemolab.core.intervals import Quantile, needed_for_quantile
from nemolab.load.plan import Plan, Slo
from nemolab.load.rows import LadderResult
from nemolab.load.summary import Knee, Rate, Summary

if TYPE_CHECKING:
    import plotly.graph_objects as go

Table = list[dict[str, Any]]  # one dict a row


def axis(ladder: LadderResult) -> str:
    """Name of the load axis."""
    closed = all(run.stage.mode == "closed" for run in ladder.stages)
    return "requests in flight" if closed else "requests a second"


def plan_table(plan: Plan, slo: Slo) -> Table:
    """What will be sent, before it is sent: one row a stage."""
    return [
        {
            "stage": str(stage),
            "requests": stage.requests,
            "prompt tokens": stage.requests * plan.prompt_tokens,
            "output tokens": stage.requests * plan.output_tokens,
            "limits": str(slo),
        }
        for stage in plan.stages
    ]


def throughput_table(summaries: Sequence[Summary]) -> Table:
    """Load, rates with intervals, errors and goodput: one row a stage."""
    return [
        {
            "load": f"{s.level:g}",
            "n": s.n,
            "failed": s.n - s.ok,
            "in flight (mean)": round(s.in_flight, 1),
            "requests/s": _rate(s.requests_s, 2),
            "output tokens/s": _rate(s.output_s),
            "within limits": str(s.good),
            "good requests/s": round(s.goodput_s, 2),
        }
        for s in summaries
    ]


def latency_table(summaries: Sequence[Summary]) -> Table:
    """Quantiles of TTFT, TPOT and end-to-end time in ms with intervals: one row a stage and quantile."""
    return [
        {
            "load": f"{s.level:g}",
            "quantile": f"p{100 * s.ttft[i].q:g}",
            "n": s.ttft[i].n,
            "TTFT ms": _quantile(s.ttft[i]),
            "TPOT ms": _quantile(s.tpot[i]),
            "end to end ms": _quantile(s.e2e[i]),
        }
        for s in summaries
        for i in range(len(s.ttft))
    ]


def throughput_figure(ladder: LadderResult, summaries: Sequence[Summary]) -> go.Figure:
    """Output tokens a second against load, with intervals, beside what the lowest load would give in proportion."""
    import plotly.graph_objects as go

    levels = [s.level for s in summaries]
    first = summaries[0]
    figure = go.Figure()
    figure.add_scatter(
        x=levels,
        y=[first.output_s.value * level / first.level for level in levels],
        mode="lines",
        line={"dash": "dot"},
        name="in proportion",
    )
    figure.add_scatter(
        x=levels,
        y=[s.output_s.value for s in summaries],
        error_y=_bars([s.output_s for s in summaries]),
        name="measured",
    )
    return _axes(figure, axis(ladder), "output tokens/s", levels)


def latency_figure(ladder: LadderResult, summaries: Sequence[Summary], which: str, limit_ms: float) -> go.Figure:
    """Median and 90th percentile of `which` ("ttft" or "tpot") in ms against load, with intervals and the limit."""
    import plotly.graph_objects as go

    levels = [s.level for s in summaries]
    figure = go.Figure()
    for position, name in ((0, "median"), (1, "90th percentile")):
        values: list[Quantile] = [getattr(s, which)[position] for s in summaries]
        figure.add_scatter(x=levels, y=[v.value for v in values], error_y=_bars(values), name=name)
    figure.add_scatter(x=levels, y=[limit_ms] * len(levels), mode="lines", line={"dash": "dash"}, name="limit")
    return _axes(figure, axis(ladder), f"{which.upper()} ms", levels)


def goodput_figure(ladder: LadderResult, summaries: Sequence[Summary]) -> go.Figure:
    """Requests a second, all and those within the limits, against load."""
    import plotly.graph_objects as go

    levels = [s.level for s in summaries]
    figure = go.Figure()
    figure.add_scatter(x=levels, y=[s.requests_s.value for s in summaries], name="completed")
    figure.add_scatter(x=levels, y=[s.goodput_s for s in summaries], line={"dash": "dash"}, name="within limits")
    return _axes(figure, axis(ladder), "requests/s", levels)


def alternative(summaries: Sequence[Summary]) -> str:
    """The figures in a sentence, for who cannot see them."""
    parts = [
        f"{s.level:g}: {s.output_s.value:.0f} tokens/s, TTFT {s.ttft[0].value:.0f} ms, TPOT {s.tpot[0].value:.1f} ms"
        for s in summaries
    ]
    return "By load (medians): " + "; ".join(parts) + "."


def verdict(summaries: Sequence[Summary], found: Knee, slo: Slo, share: float) -> str:
    """The one sentence: the peak, the knee, and how far the service level holds."""
    best = next(s for s in summaries if s.level == found.best)
    peak = f"Peaks at {_rate(best.output_s)} output tokens/s with load {best.level:g}"
    knee = f"more than {found.level:g} hardly adds" if found.level is not None else "not saturated there"
    wanted = f"{100 * share:g} % of requests within {slo}"
    held = f"{wanted} up to load {found.best_good:g}" if found.best_good else f"{wanted}: at no load"
    return f"{peak}; {knee}; {held}."


def findings(ladder: LadderResult, summaries: Sequence[Summary]) -> list[Finding]:
    """What a reader must know before using the figures."""
    out = [Finding("L-NOTE", Severity.WARNING, note, fix="see the rows' errors") for note in ladder.notes]
    for s in summaries:
        where = f"load {s.level:g}"
        if s.errors:
            kinds = ", ".join(f"{kind} x {count}" for kind, count in s.errors)
            text = f"{s.n - s.ok} of {s.n} requests failed: {kinds}."
            out.append(Finding("L-ERRORS", Severity.ERROR, text, "read the server's log of that time", where=where))
        if s.limited:
            fix = "run the client on another machine, or read these figures as a lower bound"
            out.append(
                Finding("L-CLIENT", Severity.WARNING, f"The client was the limit: {s.limited}.", fix, where=where)
            )
        if s.short:
            text = f"{s.short} of {s.ok} outputs were shorter than asked, so rates are of a lighter load."
            out.append(Finding("L-SHORT", Severity.WARNING, text, "use an engine that knows ignore_eos", where=where))
        if s.cached is not None and s.cached > ladder.plan.shared_prefix + 0.1:
            text = f"{100 * s.cached:.0f} % of prompt tokens came from the prefix cache: no cold TTFT."
            out.append(Finding("L-CACHE", Severity.WARNING, text, "change the seed", where=where))
    small = sorted({s.n for s in summaries if s.n < needed_for_quantile(0.99)})
    if small:
        text = f"99th percentiles have no upper bound with n = {small[0]}; they take n >= {needed_for_quantile(0.99)}."
        out.append(Finding("L-SAMPLE", Severity.INFO, text))
    return out


def results(ladder: LadderResult, summaries: Sequence[Summary], found: Knee) -> dict[str, Any]:
    """The values of `LadderResults`."""
    first, top = summaries[0], summaries[-1]
    best = next(s for s in summaries if s.level == found.best)
    return {
        "output_tokens_per_s": round(best.output_s.value, 1),
        "requests_per_s": round(best.requests_s.value, 3),
        "best_level": best.level,
        "knee_level": found.level,
        "ttft_p50_ms": _known(first.ttft[0], 2),
        "tpot_p50_ms": _known(first.tpot[0], 3),
        "ttft_p90_top_ms": _known(top.ttft[1], 2),
        "good_level": found.best_good,
        "good_share": round(first.good.value, 4),
        "requests": sum(s.n for s in summaries),
        "errors": sum(s.n - s.ok for s in summaries),
        "client_limited": any(s.limited for s in summaries),
    }


def _known(q: Quantile, digits: int) -> float | None:
    return round(q.value, digits) if q.n else None


def _rate(rate: Rate, digits: int = 0) -> str:
    return f"{rate.value:.{digits}f} [{rate.low:.{digits}f}, {rate.high:.{digits}f}]"


def _quantile(q: Quantile) -> str:
    low = f"{q.low:.1f}" if q.low is not None else "?"
    high = f"{q.high:.1f}" if q.high is not None else "no bound"
    return f"{q.value:.1f} [{low}, {high}]" if q.n else "-"


def _bars(values: Sequence[Rate] | Sequence[Quantile]) -> dict[str, Any]:
    """Error bars; a side without a bound is drawn as long as the value itself would be misleading, so it has none."""
    up = [(v.high - v.value) if v.high is not None else 0.0 for v in values]
    down = [(v.value - v.low) if v.low is not None else 0.0 for v in values]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down}


def _axes(figure: go.Figure, x: str, y: str, levels: Sequence[float]) -> go.Figure:
    figure.update_xaxes(title=x, type="log", tickvals=list(levels), ticktext=[f"{level:g}" for level in levels])
    figure.update_yaxes(title=y, rangemode="tozero")
    return figure
