"""Comparing two rows of answers to the same questions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oracle import Oracle, serving

from nemolab.core.errors import UsageError
from nemolab.longctx import SuiteResult, compare_look, pair_rows, run_suite
from nemolab.longctx.compare_params import CompareParams, CompareResults

NAMES = ("as usual", "without cache")


def asked(oracle: Oracle, which: int, **changes: object) -> SuiteResult:
    p = CompareParams(lengths="600,1200", haystacks=2, questions=6, **changes)  # type: ignore[arg-type]
    with serving(oracle) as endpoint:
        return run_suite(endpoint, p.suites()[which], "miniature")


def test_the_same_server_twice_does_not_differ_and_says_what_is_not_excluded() -> None:
    first, second = asked(Oracle(), 0), asked(Oracle(), 1)
    pairs = pair_rows(first.rows, second.rows)
    assert [pair.tokens for pair in pairs] == [600, 1200, None]
    assert compare_look.passed(pairs)
    assert [f.code for f in compare_look.findings(pairs, 0.05)] == ["X-OPEN"]
    values = CompareResults(**compare_look.results(pairs, first.rows, second.rows))
    assert (values.pairs, values.difference, values.same_answers, values.only_first) == (24, 0, 1, 0)
    assert values.difference_low < -0.05


def test_a_server_that_is_worse_at_a_length_is_found_with_the_n_it_took() -> None:
    pairs = pair_rows(asked(Oracle(), 0).rows, asked(Oracle(corrupts_beyond=1000), 0).rows)
    assert not compare_look.passed(pairs)
    short, long, total = (pair.result for pair in pairs)
    assert short.p == 1
    assert long.p == pytest.approx(2 / 2**12)  # twelve pairs, all against it
    assert (total.only_first, total.only_second) == (12, 0)
    assert [f.where for f in compare_look.findings(pairs, 0.05)] == ["1,200 tokens", "all tokens"]
    assert compare_look.figure(pairs, NAMES, 0.05).data[0].y[1] == -100
    assert len(compare_look.table(pairs, NAMES)) == 3


def test_a_stale_cache_shows_against_a_cold_one() -> None:
    oracle = Oracle(stale=True)
    first, second = asked(oracle, 0), asked(Oracle(stale=True), 1)
    assert all(body.get("cache_prompt", True) for body in oracle.bodies)
    pairs = pair_rows(first.rows, second.rows)
    assert pairs[-1].result.only_second > 10
    differ = compare_look.other_answers(first.rows, second.rows)
    assert len(differ) == 5
    assert "---" in differ[0][1]


def test_cold_requests_ask_for_no_cache_each_with_its_own_salt() -> None:
    oracle = Oracle()
    asked(oracle, 1)
    cold = [body for body in oracle.bodies if "cache_salt" in body]
    assert len(cold) == 24
    assert not any(body["cache_prompt"] for body in cold)
    assert len({body["cache_salt"] for body in cold}) == 24


def test_side_by_side_sends_a_texts_questions_together() -> None:
    oracle = Oracle(prefill_s_per_1000=0.05)
    result = asked(oracle, 1, against="side by side")
    assert oracle.most == 6
    assert all(row.correct for row in result.rows)
    alone = Oracle(prefill_s_per_1000=0.05)
    asked(alone, 0, against="side by side")
    assert alone.most == 1


def test_rows_that_are_no_pairs() -> None:
    rows = asked(Oracle(), 0).rows
    with pytest.raises(UsageError, match="no question in common"):
        pair_rows(rows, [])
    with pytest.raises(UsageError, match="two texts"):
        pair_rows(rows, [replace(row, sha256="other") for row in rows])


def test_the_other_server_needs_an_address() -> None:
    p = CompareParams(base_url="http://127.0.0.1:1/v1", model="m", against="other server")
    with pytest.raises(UsageError, match="no address"):
        p.endpoints()
    first, second = p.model_copy(update={"other_url": "http://127.0.0.1:2/v1"}).endpoints()
    assert (first.base_url, second.base_url, second.model) == ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1", "m")
