"""Intervals for what was counted or timed: the share of successes, quantiles of a sample, what a clean row proves.

All of them are 95 % unless told otherwise, and all carry n. Stdlib only: notebooks start sooner without scipy, and the
tests hold these against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Share:
    """A share of successes with its Wilson score interval."""

    successes: int
    n: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself; NaN without trials."""
        return self.successes / self.n if self.n else math.nan

    def __str__(self) -> str:
        if not self.n:
            return "unproven (n = 0)"
        return f"{percent(self.value)} [{percent(self.low, '')}, {percent(self.high, '')}], n = {self.n}"


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a sample with a distribution-free interval from order statistics.

    `low` or `high` is None where the sample is too small to bound that side: with n = 20, nothing bounds a 99th
    percentile from above.
    """

    q: float
    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def bounded(self) -> bool:
        """Whether the sample bounds the quantile on both sides."""
        return self.low is not None and self.high is not None


def percent(share: float, sign: str = " %") -> str:
    """A share as a percentage: no false decimals, and 99.6 % never rounds to 100."""
    value = 100 * share
    digits = 0 if abs(value - round(value)) < 0.05 else 1
    while 0 < share < 1 and digits < 6 and float(f"{value:.{digits}f}") in (0, 100):
        digits += 1
    return f"{value:.{digits}f}{sign}"


def wilson(successes: int, n: int, confidence: float = 0.95) -> Share:
    """Wilson score interval of `successes` in `n` trials (Wilson 1927; scipy's `proportion_ci(method="wilson")`)."""
    if not n:
        return Share(0, 0, 0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p, z2 = successes / n, z * z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Share(successes, n, low, high)


def proven(n: float, confidence: float = 0.95) -> float:
    """The share that `n` successes in `n` trials prove, one-sided and exact: the rule of three without its rounding.
    Answers of one text are worth a number that need not be whole."""
    return (1 - confidence) ** (1 / n) if n else 0.0


def trials_for(share: float, confidence: float = 0.95) -> int:
    """Trials that must all succeed to prove `share`."""
    if not 0 < share < 1:
        raise ValueError(f"a share between 0 and 1, not {share}")
    return math.ceil(math.log(1 - confidence) / math.log(share))


def settles(share: float, confidence: float = 0.95) -> int:
    """Trials that must all succeed before the lower end of `wilson` reaches `share`."""
    if not 0 < share < 1:
        raise ValueError(f"a share between 0 and 1, not {share}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    return math.ceil(z * z * share / (1 - share))


def quantile(sample: Sequence[float], q: float, confidence: float = 0.95) -> Quantile:
    """Quantile `q` of `sample` (linear interpolation) with the interval that order statistics give.

    The number of values below the true quantile is binomial(n, q); the interval runs from the order statistic that is
    too high with a chance of at most `(1 - confidence) / 2` to the one that is too low with that chance.
    """
    n = len(sample)
    if not n:
        return Quantile(q, math.nan, None, None, 0)
    ordered = sorted(sample)
    at = q * (n - 1)
    below = math.floor(at)
    value = ordered[below] + (ordered[min(below + 1, n - 1)] - ordered[below]) * (at - below)
    tail = (1 - confidence) / 2
    cumulative = list(accumulate(_binomial(k, n, q) for k in range(n)))  # P(at most k values below the quantile)
    lower = max((k for k in range(n) if cumulative[k] <= tail), default=None)
    upper = next((k for k in range(n) if cumulative[k] >= 1 - tail), None)
    # Of the sorted values (from 0), number k exceeds the quantile exactly when at most k values lie below it.
    return Quantile(
        q, value, ordered[lower] if lower is not None else None, ordered[upper] if upper is not None else None, n
    )


def _binomial(k: int, n: int, p: float) -> float:
    """Chance of exactly `k` successes in `n` trials."""
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def needed_for_quantile(q: float, confidence: float = 0.95) -> int:
    """Smallest sample that bounds quantile `q` on both sides."""
    tail = (1 - confidence) / 2
    return math.ceil(max(math.log(tail) / math.log(q), math.log(tail) / math.log(1 - q)))
