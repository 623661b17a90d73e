"""Intervals against scipy and against their own coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nemolab.core.intervals import needed_for_quantile, percent, proven, quantile, settles, trials_for, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (92, 100), (1193, 1300), (1, 2)])
def test_wilson_is_scipys(k: int, n: int) -> None:
    ours, theirs = wilson(k, n), stats.binomtest(k, n).proportion_ci(method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_reads_as_a_sentence() -> None:
    assert str(wilson(92, 100)) == "92 % [85, 95.9], n = 100"
    assert str(wilson(20, 20)) == "100 % [83.9, 100], n = 20"
    assert str(wilson(0, 0)) == "unproven (n = 0)"


def test_percent_never_rounds_up_to_all() -> None:
    assert percent(0.9996) == "99.96 %"
    assert percent(0.99) == "99 %"


@pytest.mark.parametrize(("n", "share"), [(10, 0.741), (20, 0.861), (50, 0.942), (300, 0.990)])
def test_what_a_clean_row_proves(n: int, share: float) -> None:
    assert proven(n) == pytest.approx(share, abs=5e-4)
    assert trials_for(proven(n) - 1e-9) == n


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9, 0.99])
def test_how_many_settle_a_share(share: float) -> None:
    n = settles(share)
    assert wilson(n, n).low >= share > wilson(n - 1, n - 1).low


def test_quantile_intervals_cover_the_truth() -> None:
    rng = np.random.default_rng(1)
    for q in (0.5, 0.9):
        truth = stats.expon.ppf(q)
        hits = 0
        for _ in range(400):
            found = quantile(rng.exponential(size=60).tolist(), q)
            assert found.low is not None
            assert found.high is not None
            hits += found.low <= truth <= found.high
        assert hits >= 370  # at least 95 % by construction; 400 trials put 370 four deviations below


def test_quantile_without_a_bound_says_so() -> None:
    few = quantile(list(range(20)), 0.99)
    assert few.high is None
    assert not few.bounded
    need = needed_for_quantile(0.99)
    assert quantile(list(range(need)), 0.99).bounded
    assert not quantile(list(range(need - 1)), 0.99).bounded
    assert quantile([], 0.5).n == 0
