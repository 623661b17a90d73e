"""Statistics against published values, exact ones, and their own coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from nemolab.core.intervals import wilson
from nemolab.longctx.stats import claim, clustered, decided, paired, pairs_needed, sequence, settled


def test_one_question_a_text_is_wilson() -> None:
    groups = [[True]] * 18 + [[False]] * 2
    found, plain = clustered(groups), wilson(18, 20)
    assert (found.share.low, found.share.high) == pytest.approx((plain.low, plain.high))
    assert found.effective == 20
    assert not found.assumed


def test_answers_that_go_together_are_worth_less() -> None:
    together = clustered([[True] * 8] * 6 + [[False] * 8] * 2)
    mixed = clustered([[True, True, True, False] * 2] * 8)
    assert together.rho == pytest.approx(1.0)
    assert together.effective == pytest.approx(8)
    assert mixed.rho == 0.0
    assert mixed.effective == 64
    assert together.share.low < mixed.share.low


def test_without_variation_the_correlation_is_assumed() -> None:
    found = clustered([[True] * 8] * 4)
    assert found.assumed
    assert found.effective == pytest.approx(32 / 1.7)  # as planned: 8 questions at rho 0.1
    assert "on 4 texts" in str(found)


@pytest.mark.parametrize(("rho", "per_text"), [(0.05, {4: 3.5, 16: 9.1, 64: 15.4}), (0.3, {4: 2.1, 16: 2.9, 64: 3.2})])
def test_design_effect_is_the_planned_one(rho: float, per_text: dict[int, float]) -> None:
    for questions, worth in per_text.items():
        assert questions / (1 + (questions - 1) * rho) == pytest.approx(worth, abs=0.06)


def test_cluster_intervals_cover() -> None:
    rng = np.random.default_rng(3)
    hits = plain = 0
    for _ in range(300):
        shares = rng.beta(8, 2, size=24)  # rho = 1 / 11
        groups = [(rng.random(8) < share).tolist() for share in shares]
        found = clustered(groups)
        hits += found.share.low <= 0.8 <= found.share.high
        naive = wilson(found.share.successes, found.share.n)
        plain += naive.low <= 0.8 <= naive.high
    assert hits >= 274  # 95 % of 300 is 285; three deviations below
    assert plain < hits


def test_mcnemar_is_scipys_exact_test() -> None:
    first = [True] * 10 + [False] * 3 + [True] * 40 + [False] * 5
    second = [False] * 10 + [True] * 3 + [True] * 40 + [False] * 5
    found = paired(first, second)
    assert (found.both, found.only_first, found.only_second, found.neither, found.n) == (40, 10, 3, 5, 58)
    assert found.p == pytest.approx(scipy_stats.binomtest(3, 13, 0.5).pvalue)
    assert found.difference == pytest.approx(-7 / 58)
    assert found.low < found.difference < 0.0 < found.high  # p is above 0.05
    assert paired([True], [True]).p == 1.0
    with pytest.raises(ValueError, match="no pairs"):
        paired([True], [])


def test_intervals_of_a_difference_cover_also_where_hardly_a_pair_differs() -> None:
    rng = np.random.default_rng(11)
    for n, b, c in ((16, 0.02, 0.02), (60, 0.05, 0.10), (100, 0.0, 0.03)):
        hits = 0
        for _ in range(300):
            kinds = rng.choice(4, size=n, p=[0.8, b, c, 0.2 - b - c])
            found = paired([k in (0, 1) for k in kinds], [k in (0, 2) for k in kinds])
            hits += found.low <= c - b <= found.high
        assert hits >= 274


@pytest.mark.parametrize(
    ("difference", "discordant", "pairs"), [(0.02, 0.06, 1175), (0.03, 0.08, 695), (0.05, 0.10, 312), (0.10, 0.15, 115)]
)
def test_pairs_needed_are_the_published_ones(difference: float, discordant: float, pairs: int) -> None:
    assert pairs_needed(difference, discordant) == pytest.approx(pairs, abs=1)


def test_looking_all_the_time_does_not_break_the_sequence() -> None:
    rng = np.random.default_rng(5)
    left = left_wilson = 0
    for _ in range(200):
        right = np.cumsum(rng.random(150) < 0.9)
        looks = range(5, 151, 5)
        left += any(not (s := sequence(int(right[n - 1]), n)).low <= 0.9 <= s.high for n in looks)
        left_wilson += any(not (s := wilson(int(right[n - 1]), n)).low <= 0.9 <= s.high for n in looks)
    assert left <= 10  # 5 % of 200
    assert left_wilson > 10  # what looking does to an interval made for one look


def test_a_threshold_is_settled_or_not() -> None:
    assert decided(40, 40, 0.8) is True
    assert decided(10, 40, 0.8) is False
    assert decided(5, 5, 0.8) is None
    assert decided(0, 0, 0.8) is None
    whole = sequence(20, 20)
    assert (whole.high, whole.low) == (1.0, pytest.approx(0.05 ** (1 / 20) * (1 / 21) ** (1 / 20), rel=1e-6))


def test_a_length_is_settled_by_what_its_answers_are_worth() -> None:
    assert settled({"a": [[True] * 8] * 6}, 0.8)
    assert settled({"a": [[False] * 8] * 2}, 0.8)
    # 5 of 6 tasks find all, one finds nothing: together above 80 %, and still it fails
    assert settled({"a": [[True]] * 80, "b": [[False] * 8] * 3}, 0.8)
    # by number below 80 % for sure; but it is two texts of six, which settle nothing (H200, 2026-11-30: 13 of 27)
    texts = {"easy": [[True]] * 3 + [[True] * 8], "hard": [[True, True] + [False] * 6, [False] * 8]}
    answers = [x for groups in texts.values() for group in groups for x in group]
    assert decided(sum(answers), len(answers), 0.8) is False
    assert not settled({"all": [group for groups in texts.values() for group in groups]}, 0.8)
    assert not settled({}, 0.8)


def test_claims_say_n_and_never_more_than_they_know() -> None:
    assert claim(8192, clustered([[True]] * 20), 0.8).startswith("holds at 8,192: 100 % [83.9, 100], n = 20")
    assert claim(8192, clustered([[True]] * 12), 0.8).startswith("at 8,192 unproven")
    assert claim(8192, clustered([[False]] * 12), 0.8).startswith("fails at 8,192")
