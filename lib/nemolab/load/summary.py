"""Statistics of a ladder: rates, latencies and goodput of each stage, each with its interval, and where it saturates.

Pure functions of the raw rows. Every random draw has a fixed seed, so that the same rows give the same numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from nemolab.core.intervals import Quantile, Share, quantile, wilson
from nemolab.load.plan import Slo
from nemolab.load.rows import LadderResult, Request, StageRun

QUANTILES = (0.5, 0.9, 0.99)
_RESAMPLES = 1000
_FLAT = 0.25  # below a quarter of proportional growth a stage counts as saturated
_LAG_SHARE = 0.1  # client lateness above this share of the median TTFT spoils the figures
_CPU_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Rate:
    """Something a second, with a bootstrap interval over requests (95 %)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One stage in figures.

    Attributes:
        errors: requests that failed, by class.
        in_flight: mean number of requests in flight; below the stage's level while it fills and drains.
        requests_s: completed requests a second.
        output_s: output tokens a second, from `usage`.
        total_s: prompt and output tokens a second.
        ttft, tpot, e2e: quantiles in milliseconds; in an open stage TTFT and end to end count from when it was due.
        good: requests within the service level, of all that were sent: an error is never good.
        goodput_s: good requests a second.
        short: completed requests with fewer output tokens than asked for.
        cached: share of prompt tokens that the server took from its prefix cache; None where it does not say.
        limited: why the client, not the server, set these figures; "" if it did not.
    """

    level: float
    n: int
    ok: int
    errors: tuple[tuple[str, int], ...]
    in_flight: float
    requests_s: Rate
    output_s: Rate
    total_s: Rate
    ttft: tuple[Quantile, ...]
    tpot: tuple[Quantile, ...]
    e2e: tuple[Quantile, ...]
    good: Share
    goodput_s: float
    short: int
    cached: float | None
    limited: str


@dataclass(frozen=True, slots=True)
class Knee:
    """Where more load stops paying.

    Attributes:
        level: first level after which throughput grows by less than a quarter of the load; None if it never did.
        best: level with the highest output rate.
        best_good: highest level at which the service level holds for the wanted share; None if at none.
    """

    level: float | None
    best: float
    best_good: float | None


def summarise(ladder: LadderResult, slo: Slo) -> tuple[Summary, ...]:
    """A summary of each stage that ran."""
    return tuple(_stage(run, slo, ladder.plan.output_tokens) for run in ladder.stages)


def within(row: Request, slo: Slo) -> bool:
    """Whether a request kept the service level. A limit on a time that was not measured is not kept."""
    if not row.ok:
        return False
    pairs = (
        (slo.ttft_ms, _from_due(row, row.ttft_s)),
        (slo.tpot_ms, row.tpot_s if row.completion_tokens != 1 else 0.0),
        (slo.e2e_ms, _from_due(row, row.total_s)),
    )
    return all(limit is None or (value is not None and 1000 * value <= limit) for limit, value in pairs)


def knee(summaries: Sequence[Summary], wanted: float = 0.9) -> Knee:
    """Find the knee in output tokens a second.

    Raises:
        ValueError: no stage.
    """
    if not summaries:
        raise ValueError("no stage to look at")
    level = None
    for now, then in pairwise(summaries):
        if now.output_s.value <= 0 or then.output_s.value <= 0:
            continue
        growth = math.log(then.output_s.value / now.output_s.value) / math.log(then.level / now.level)
        if growth < _FLAT:
            level = now.level
            break
    best = max(summaries, key=lambda s: s.output_s.value)
    good = [s.level for s in summaries if s.good.n and s.good.value >= wanted]
    return Knee(level, best.level, max(good, default=None))


def _stage(run: StageRun, slo: Slo, wanted_tokens: int) -> Summary:
    done = [row for row in run.requests if row.ok]
    good = sum(within(row, slo) for row in run.requests)
    in_flight = sum(row.total_s for row in run.requests) / run.wall_s
    return Summary(
        level=run.stage.level,
        n=len(run.requests),
        ok=len(done),
        errors=tuple(sorted(Counter(str(row.error_class) for row in run.requests if not row.ok).items())),
        in_flight=in_flight,
        requests_s=_rate([1.0 for _ in done], done, run),
        output_s=_rate([float(row.completion_tokens or 0) for row in done], done, run),
        total_s=_rate([float((row.completion_tokens or 0) + (row.prompt_tokens or 0)) for row in done], done, run),
        ttft=_quantiles([_from_due(row, row.ttft_s) for row in done]),
        tpot=_quantiles([row.tpot_s for row in done]),
        e2e=_quantiles([_from_due(row, row.total_s) for row in done]),
        good=wilson(good, len(run.requests)),
        goodput_s=good / run.wall_s,
        short=sum((row.completion_tokens or 0) < wanted_tokens for row in done),
        cached=_cached(done),
        limited=_limited(run, done),
    )


def _from_due(row: Request, seconds: float | None) -> float | None:
    """A latency from when the request was due: waiting in a client that cannot keep up is not free."""
    return None if seconds is None else seconds + row.late_s


def _quantiles(seconds: Sequence[float | None]) -> tuple[Quantile, ...]:
    ms = [1000 * value for value in seconds if value is not None]
    return tuple(quantile(ms, q) for q in QUANTILES)


def _rate(amounts: Sequence[float], done: Sequence[Request], run: StageRun) -> Rate:
    """`sum(amounts) / wall` with an interval from resampled requests.

    The wall time of a resample is its requests' latencies over the mean number in flight (Little's law), which is
    the measured wall time for the sample itself.
    """
    if not done:
        return Rate(0.0, 0.0, 0.0)
    import numpy as np

    amount = np.asarray(amounts)
    latency = np.asarray([row.total_s for row in done])
    in_flight = latency.sum() / run.wall_s
    picks = np.random.default_rng(0).integers(0, len(done), (_RESAMPLES, len(done)))
    rates = amount[picks].sum(axis=1) / (latency[picks].sum(axis=1) / in_flight)
    low, high = np.quantile(rates, (0.025, 0.975))
    return Rate(float(amount.sum() / run.wall_s), float(low), float(high))


def _cached(done: Sequence[Request]) -> float | None:
    known = [row for row in done if row.cached_tokens is not None and row.prompt_tokens]
    if not known:
        return None
    return sum(row.cached_tokens or 0 for row in known) / sum(row.prompt_tokens or 0 for row in known)


def _limited(run: StageRun, done: Sequence[Request]) -> str:
    ttfts = [row.ttft_s for row in done if row.ttft_s is not None]
    if ttfts:
        lag, ttft = median(row.lag_s for row in done), median(ttfts)
        if lag > _LAG_SHARE * ttft:
            return f"the client's event loop was {1000 * lag:.1f} ms late where a first token took {1000 * ttft:.1f} ms"
    if run.cpu_share > _CPU_SHARE:
        return f"the client took {100 * run.cpu_share:.0f} % of a core"
    late = [row.late_s for row in run.requests]
    if late and run.stage.mode == "open" and median(late) > 0.5 / run.stage.level:
        return f"requests left {1000 * median(late):.0f} ms late"
    return ""
