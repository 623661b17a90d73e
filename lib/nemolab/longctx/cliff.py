"""Where answers stop being right: at one place, as overflowing kernels do, or little by little, as models do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nemolab.longctx.rows import Row

_GOOD, _BAD = 0.9, 0.2  # shares before and after a cliff
_EDGE = 2.0  # log-likelihood by which a step must beat a slope: a step has one parameter more
_LEAST = 4  # answers on each side


@dataclass(frozen=True, slots=True)
class Cliff:
    """A place where right answers end.

    Attributes:
        of: what it is a place in: the prompt's length, or the needle's offset.
        after, before: tokens between which it lies: last good and first bad.
        before_share, after_share: right answers on both sides.
        n: answers looked at.
    """

    of: Literal["length", "offset"]
    after: int
    before: int
    before_share: float
    after_share: float
    n: int


def cliff(rows: Sequence[Row]) -> Cliff | None:
    """The cliff in `rows`, by length or by offset, whichever fits better; None where a slope fits as well, or nothing
    fails. Requests without an answer do not count: they have causes of their own."""
    from nemolab.longctx.failures import FORM, MODEL, Outcome

    judged = [row for row in rows if not row.control and row.outcome in MODEL | FORM | {Outcome.CORRECT}]
    by_length = _find("length", [(row.length, row.correct) for row in judged])
    by_offset = _find("offset", [(row.offset, row.correct) for row in judged if row.offset is not None])
    found = [each for each in (by_length, by_offset) if each is not None]
    return max(found, key=lambda each: each[0])[1] if found else None


def _find(of: Literal["length", "offset"], points: list[tuple[int, bool]]) -> tuple[float, Cliff] | None:
    points.sort()
    total, right = len(points), sum(good for _, good in points)
    best: tuple[float, Cliff] | None = None
    seen = 0
    for i in range(1, total):
        seen += points[i - 1][1]
        if points[i][0] == points[i - 1][0] or i < _LEAST or total - i < _LEAST:
            continue
        low, high = seen / i, (right - seen) / (total - i)
        fit = _loglik(seen, i) + _loglik(right - seen, total - i)
        if low >= _GOOD and high <= _BAD and (best is None or fit > best[0]):
            best = fit, Cliff(of, points[i - 1][0], points[i][0], low, high, total)
    return best if best is not None and best[0] - _slope(points) >= _EDGE else None


def _loglik(right: int, n: int) -> float:
    return sum(k * math.log(k / n) for k in (right, n - right) if k)


def _slope(points: Sequence[tuple[int, bool]]) -> float:
    """Log-likelihood of a logistic slope over the logarithm of the place, no steeper than a fall over a factor of 2.

    Steeper slopes are steps in all but name: models lose over octaves of length, kernels at one offset.
    """
    import numpy as np
    from scipy.optimize import minimize

    x = np.log2(np.asarray([max(1, place) for place, _ in points], dtype=float))
    y = np.asarray([good for _, good in points], dtype=float)
    centre = float(x.mean())

    def loss(theta: np.ndarray) -> float:
        z = theta[0] - theta[1] * (x - centre)
        return float(np.sum(np.logaddexp(0.0, z) - y * z))

    # From 90 % to 10 % a logistic needs 4.4 / slope octaves.
    fit = minimize(loss, np.asarray([0.0, 1.0]), bounds=[(-40, 40), (0.0, 4.4)])
    return -float(fit.fun)
