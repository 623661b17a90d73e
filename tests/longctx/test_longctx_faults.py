"""Seeded faults: each is found, and rightly classed, with the n it took."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from oracle import Oracle, serving
from vocabularies import trained

from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.intervals import proven
from nemolab.longctx import Outcome, Row, Suite, SuiteResult, by_depth, by_length, conclude, look, run_suite
from nemolab.longctx.params import ContextResults
from nemolab.longctx.suite import sample, texts
from nemolab.longctx.summary import holds_to

SMALL = Suite(("niah_multikey_1",), (600, 1200), haystacks=2, questions=4)


def ask(oracle: Oracle, suite: Suite = SMALL, **more: Any) -> SuiteResult:
    with serving(oracle) as endpoint:
        return run_suite(endpoint, suite, "miniature", **more)


def real(result: SuiteResult, length: int | None = None) -> list[Row]:
    return [row for row in result.rows if not row.control and length in (None, row.length)]


def classes(rows: list[Row]) -> set[Outcome]:
    return {row.outcome for row in rows}


def test_a_good_server_passes_to_the_token() -> None:
    seen: list[tuple[int, int, str]] = []
    result = ask(Oracle(), progress=lambda *what: seen.append(what))
    assert classes(list(result.rows)) == {Outcome.CORRECT}
    assert all(row.counted == row.built for row in result.rows)
    assert {row.built for row in real(result)} == {600, 1200}
    lengths = by_length(result.rows)
    assert [length.right.share.n for length in lengths] == [8, 8]
    assert [dict(length.controls)["wrong key"].n for length in lengths] == [2, 2]
    assert [dict(length.controls)["no context"].n for length in lengths] == [8, 8]
    assert seen[-1][0] == len(result.rows) == 36
    assert conclude.passed(result.rows, lengths, 0.6)
    assert conclude.verdict(lengths, 0.6).startswith("Holds to 1,200 at 100 %")
    assert ContextResults(**conclude.results(result.rows, lengths, 0.6)).length_error_tokens == 0


def test_every_depth_is_asked() -> None:
    result = ask(Oracle(), Suite(("niah_multikey_1",), (2000,), haystacks=4, questions=5, controls=False))
    assert [cell.share.n for cell in by_depth(result.rows)] == [4] * 5
    assert len({row.depth for row in result.rows}) == 20


@pytest.mark.parametrize("task", ["niah_single_2", "niah_multivalue", "niah_multikey_1"])
def test_as_many_answers_whatever_the_task_and_at_every_depth(task: str) -> None:
    suite = Suite((task,), (600,), haystacks=2, questions=5, controls=False)
    samples = [sample(suite, task, 600, number) for number in range(texts(suite, task))]
    assert sum(len([q for q in s.questions if not q.control]) for s in samples) == 10
    depths = sorted(needle.depth for s in samples for needle in s.needles)
    assert depths[0] < 0.15
    assert depths[-1] > 0.85
    assert max(b - a for a, b in pairwise(depths)) < 0.25


def test_a_server_that_truncates() -> None:
    result = ask(Oracle(truncates_at=1000))
    assert classes(real(result, 600)) == {Outcome.CORRECT}
    assert classes(real(result, 1200)) == {Outcome.TRUNCATED}  # also where the needle lies before the cut
    lengths = by_length(result.rows)
    assert holds_to(lengths, 0.6) == 600
    assert lengths[1].right.share.n == 0  # nothing was learnt about the model
    assert conclude.verdict(lengths, 0.6).endswith("at 1,200 unproven: no answer that counts.")
    assert not conclude.passed(result.rows, lengths, 0.6)
    assert any("truncated" in f.message for f in conclude.findings(result.rows, lengths, 0.6))


def test_a_server_that_swallows_one_answer_in_a_hundred() -> None:
    suite = Suite(("niah_multikey_1",), (600,), haystacks=30, questions=10, controls=False)
    result = ask(Oracle(swallows=lambda number: number % 100 == 0), suite)
    assert Counter(row.outcome for row in result.rows) == {Outcome.CORRECT: 297, Outcome.EMPTY_200: 3}
    assert proven(300) > 0.99 > proven(200)  # so many it takes: 200 clean answers would not have excluded it
    (length,) = by_length(result.rows)
    assert (length.right.share.successes, length.right.share.n) == (297, 297)  # the model missed none
    assert conclude.results(result.rows, [length], 0.9)["not_answered"] == 3
    assert not conclude.passed(result.rows, [length], 0.9)


def test_a_state_that_is_corrupt_beyond_a_length() -> None:
    result = ask(Oracle(corrupts_beyond=1000))
    assert classes(real(result, 600)) == {Outcome.CORRECT}
    assert classes(real(result, 1200)) == {Outcome.WRONG_NOT_IN_CONTEXT}
    lengths = by_length(result.rows)
    assert holds_to(lengths, 0.6) == 600
    assert "fails at 1,200" in conclude.verdict(lengths, 0.6)


def test_a_state_that_is_corrupt_is_named_as_a_cliff_once_there_are_lengths_on_both_sides() -> None:
    suite = Suite(
        ("niah_multikey_1",), (400, 600, 800, 950, 1050, 1300, 1600), haystacks=1, questions=6, controls=False
    )
    result = ask(Oracle(corrupts_beyond=1000), suite)
    (named,) = [f for f in conclude.findings(result.rows, by_length(result.rows), 0.6) if f.code == "X-CLIFF"]
    assert "between 950 and 1,050 tokens of prompt" in named.message


def test_a_stale_cache_is_told_from_the_model() -> None:
    result = ask(Oracle(stale=True), Suite(("niah_multikey_1",), (600,), haystacks=2, questions=4, recheck=3))
    wrong = [row for row in real(result) if not row.correct]
    assert [row.outcome for row in wrong[:3]] == [Outcome.CACHE_SUSPECT] * 3
    assert Outcome.CACHE_SUSPECT not in classes(wrong[3:])  # the limit on second looks
    assert "right without the cache" in wrong[0].why
    assert any("prefix caching" in f.fix for f in conclude.findings(result.rows, by_length(result.rows), 0.6))


def test_a_distractor() -> None:
    result = ask(Oracle(distracts=True))
    assert classes(real(result)) == {Outcome.WRONG_IN_CONTEXT}
    assert all(row.ruler == 0 for row in real(result))


def test_a_proxy_that_cuts_idle_connections() -> None:
    oracle = Oracle(prefill_s_per_1000=2.0, cuts_idle_after_s=2.1)
    result = ask(oracle, Suite(("niah_single_1",), (600, 1200), haystacks=1, questions=1, controls=False))
    assert [row.outcome for row in result.rows] == [Outcome.CORRECT, Outcome.IDLE_CUT]
    assert "after 2." in result.rows[1].why


def test_a_length_that_is_refused_ends_the_suite() -> None:
    result = ask(Oracle(refuses_beyond=1000), Suite(("niah_multikey_1",), (600, 1200, 1800), haystacks=1, questions=2))
    assert classes(real(result, 1200)) == {Outcome.REFUSED_LENGTH}
    assert not real(result, 1800)
    assert "refuses 1,200 tokens" in result.notes[0]


def test_a_body_limit_is_not_the_models() -> None:
    result = ask(Oracle(body_limit=3500))
    assert classes(real(result, 1200)) == {Outcome.NOT_SENT}


def test_an_engine_that_dies_ends_the_suite() -> None:
    result = ask(Oracle(dies_at=5))
    assert result.rows[-1].outcome is Outcome.ENGINE_DIED
    assert len(result.rows) == 3  # after two requests for calibration
    assert "engine died" in result.notes[0]


def test_a_hop_that_retries() -> None:
    result = ask(Oracle(retries=True), Suite(("niah_single_1",), (600,), haystacks=1, questions=1, controls=False))
    assert classes(list(result.rows)) == {Outcome.RETRIED}


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        ("!" * 40, Outcome.GARBAGE),
        ("The text does not say.", Outcome.REFUSAL),
        ("Blue.", Outcome.FORMAT),
    ],
)
def test_forms(says: str, outcome: Outcome) -> None:
    result = ask(Oracle(says=says), Suite(("niah_multikey_1",), (600,), haystacks=1, questions=2))
    assert classes(real(result)) == {outcome}


def test_thoughts_that_take_the_budget() -> None:
    suite = Suite(("niah_single_1",), (600,), haystacks=1, questions=1, thinking=True, thinking_tokens=100)
    oracle = Oracle(thinks=True)
    result = ask(oracle, suite)
    assert real(result)[0].outcome is Outcome.THINKING_ATE_BUDGET
    assert oracle.bodies[-1]["max_tokens"] == 164
    assert oracle.bodies[-1]["chat_template_kwargs"] == {"enable_thinking": True}


def test_another_tokenizer_is_refused_at_once(tmp_path: Path) -> None:
    trained().save(str(tmp_path / "tokenizer.json"))
    with serving(Oracle()) as endpoint, pytest.raises(NemolabError, match="counts other tokens"):
        run_suite(endpoint, SMALL, str(tmp_path / "tokenizer.json"))


def test_nobody_there() -> None:
    with serving(Oracle()) as endpoint:
        pass
    with pytest.raises(NemolabError, match="did not tell its tokens"):
        run_suite(endpoint, SMALL, "miniature")


def test_a_suite_goes_on_where_it_stopped(tmp_path: Path) -> None:
    book = tmp_path / "rows.jsonl"
    first = ask(Oracle(dies_at=12), journal=book)
    lines = book.read_text().splitlines()
    assert len(lines) == 1 + len(first.rows)
    # The row of the dead engine is asked again; and a crash in the middle of a line leaves half of it.
    assert first.rows[-1].outcome is Outcome.ENGINE_DIED
    book.write_text("\n".join(lines) + "\n" + lines[-1][:40])
    oracle = Oracle()
    second = ask(oracle, journal=book)
    assert classes(list(second.rows)) == {Outcome.CORRECT}
    assert len(second.rows) == 36
    assert oracle.number == 2 + 36 - (len(first.rows) - 1)
    with pytest.raises(UsageError, match="another suite"):
        ask(Oracle(), Suite(("vt",), (600,), seed=1), journal=book)


def test_it_stops_when_the_threshold_is_settled() -> None:
    suite = Suite(("niah_multikey_1",), (600,), haystacks=40, questions=5, controls=False, stop_at=0.8)
    result = ask(Oracle(), suite)
    assert 25 <= len(result.rows) <= 45
    assert "settled" in result.notes[0]


def test_a_budget_ends_a_length_after_at_least_one_text() -> None:
    suite = Suite(("niah_multikey_1",), (600, 1200), haystacks=50, questions=2, controls=False, budget_s=0.001)
    result = ask(Oracle(prefill_s_per_1000=0.05), suite)
    assert len(result.rows) == 4
    assert "were used after 2 requests" in result.notes[0]


def test_the_look_of_a_suite_without_one_right_answer() -> None:
    result = ask(Oracle(says="Blue."))
    lengths, cells = by_length(result.rows), by_depth(result.rows)
    assert conclude.verdict(lengths, 0.8).startswith("Fails at 600: 0 %")
    assert look.map_figure(cells).data[0].z[0][0] == 0
    assert look.map_text(cells).startswith("Weakest")
    assert len(look.length_table(lengths)) == 2
    assert len(look.accuracy_figure(lengths, 0.8).data) == 3
    assert [row["class"] for row in look.outcome_table(result.rows)] == ["correct", "format"]
    ContextResults(**conclude.results(result.rows, lengths, 0.8))
