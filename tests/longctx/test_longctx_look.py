"""Figures in words: what was not measured is not said."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from nemolab.core.intervals import Quantile
from nemolab.longctx import conclude, look
from nemolab.longctx.failures import Outcome
from nemolab.longctx.rows import Row, Suite
from nemolab.longctx.stats import Clustered, clustered
from nemolab.longctx.summary import Length, by_length, holds_to

NONE = Quantile(0.5, math.nan, None, None, 0)


def length(tokens: int, cold: Quantile, warm: Quantile) -> Length:
    right: Clustered = clustered([[True]])
    return Length(tokens, right, 1.0, cold, warm, None, (), ())


def test_times_that_were_not_measured_are_left_out() -> None:
    seen = Quantile(0.5, 0.114, 0.1, 0.2, 3)
    found = [length(512, seen, NONE), length(8192, seen, seen), length(65536, NONE, NONE)]
    assert look.ttft_sentence(found) == (
        "512 tokens: cold 0.11 s; 8,192 tokens: cold 0.11 s, warm 0.11 s; 65,536 tokens: not measured"
    )


def row(tokens: int = 8192, **changes: Any) -> Row:
    plain = Row(
        id=f"a/{tokens}/0/0", task="niah_single_1", length=tokens, seed=0, question=0, control="", built=tokens,
        counted=tokens, cached=None, warm=False, depth=0.5, offset=1, sha256="", expected=(), given=(), answer="",
        outcome=Outcome.CORRECT, why="", correct=True, precision=1.0, recall=1.0, ruler=1.0, finish_reason="stop",
        ttft_s=1.0, total_s=1.0, thought_chars=0, completion_tokens=9, lag_s=0.0,
    )  # fmt: skip
    return replace(plain, **changes)


def test_a_control_that_got_no_answer_invents_nothing() -> None:
    control = row(control="wrong key")
    refused = replace(control, outcome=Outcome.REFUSED_LENGTH, correct=False, counted=None)
    invented = replace(control, outcome=Outcome.WRONG_IN_CONTEXT, correct=False)

    def said(*rows: Row) -> tuple[list[str], float | None]:
        lengths = by_length(rows)
        absent = [f.message for f in conclude.findings(rows, lengths, 0.8) if f.code == "X-ABSENT"]
        return absent, conclude.results(rows, lengths, 0.8)["wrong_key_share"]

    assert said(row(), refused) == ([], None)
    assert said(row(), control, refused) == ([], 1.0)
    (message,), share = said(row(), control, invented, refused)
    assert ("n = 2" in message, share) == (True, 0.5)


def test_a_wait_that_no_cache_spares_is_named() -> None:
    seen = Quantile(0.5, 7.5, 7.0, 8.0, 3)
    lengths = [length(262_144, seen, seen), length(1_048_064, seen, seen)]

    def asked(tokens: int, cached: int | None, ttft_s: float) -> Row:
        return row(tokens, cached=cached, ttft_s=ttft_s, warm=True)

    def said(*rows: Row) -> list[str]:
        return [f"{f.where}: {f.message}" for f in conclude.findings(rows, lengths, 0.8) if f.code == "X-TEXT"]

    slow = [asked(1_048_064, 1_048_016, seconds) for seconds in (3.4, 3.7, 4.2)]
    (found,) = said(asked(262_144, 261_936, 0.8), *slow)
    assert found.startswith("1,048,064 tokens: ")
    assert "still waits 3.7 s" in found
    assert said(asked(262_144, 261_936, 0.8)) == [], "too short a wait to speak of"
    assert said(asked(1_048_064, 16_320, 7.5), asked(1_048_064, None, 7.5)) == [], "the prompt was computed"
    assert said(*(replace(one, by_ids=True) for one in slow)) == [], "there was no text to cut"
    cold = asked(1_048_064, 0, 300.0)
    near = [asked(1_048_064, 1_040_000, seconds) for seconds in (3.4, 3.7, 4.2)]  # 8,064 tokens of 300 s a million
    assert said(cold, *near) == [], "the rest was computed"
    assert len(said(cold, *slow)) == 1


def of_task(task: str, right: int, wrong: int, tokens: int = 65_536, each: int = 8) -> list[Row]:
    """Rows of a task, `each` questions a text."""
    answers = [True] * right + [False] * wrong
    return [
        row(tokens, task=task, seed=i // each, correct=good, outcome=Outcome.CORRECT if good else Outcome.REFUSAL)
        for i, good in enumerate(answers)
    ]


def test_a_task_that_fails_is_not_made_good_by_the_others() -> None:
    rows = [*of_task("easy", 40, 0, 4096), *of_task("hard", 40, 0, 4096)]
    rows += [*of_task("easy", 320, 0, each=1), *of_task("hard", 0, 32)]
    lengths = by_length(rows)
    assert lengths[1].right.share.low >= 0.8, "all together hold"
    assert holds_to(lengths, 0.8) == 4096
    assert not conclude.passed(rows, lengths, 0.8)
    sentence = conclude.verdict(lengths, 0.8)
    assert "; fails at 65,536 in hard at 0 % [0, 16.9], n = 32 on 4 texts; all together 90.9 %" in sentence
    assert look.task_table(lengths)[1] == {
        "task": "hard",
        "4,096": "100 % [86, 100], n = 40 on 5 texts",
        "65,536": "0 % [0, 16.9], n = 32 on 4 texts",
    }
    few = [*of_task("easy", 16, 0), *of_task("hard", 0, 16)]
    assert not [f for f in conclude.findings(few, by_length(few), 0.8) if f.code == "X-UNPROVEN"], "no text would help"
    alone = by_length([one for one in rows if one.task == "easy"])
    assert (holds_to(alone, 0.8), alone[1].failing(0.8)) == (65_536, [])
    every = by_length(of_task("hard", 0, 32) + of_task("worse", 0, 32))
    assert conclude.verdict(every, 0.8).startswith("Fails at 65,536: 0 %")


def test_a_plan_counts_what_answers_are_worth() -> None:
    (line,) = look.plan_table(Suite(("niah_multikey_1", "niah_single_1"), (600,), haystacks=4, questions=8))
    assert (line["texts"], line["questions"]) == (36, 64)
    assert line["worth"] == "47.4 independent answers"
    assert line["all right proves at least"] == "93.9 %"
