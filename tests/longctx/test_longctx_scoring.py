"""Scoring and the reading of answers."""

from __future__ import annotations

import pytest

from nemolab.longctx import answers
from nemolab.longctx.sample import Kind, Question
from nemolab.longctx.scoring import score

NUMBER = Question("What is the special magic number for brave-otter?", ("1234567",), "number")
FOUR = Question("What are all the numbers?", ("1111111", "2222222", "3333333", "4444444"), "number")


@pytest.mark.parametrize(
    ("answer", "precision", "recall", "correct", "ruler"),
    [
        ("1234567", 1, 1, True, 1),
        ("The special magic number for brave-otter is 1,234,567.", 1, 1, True, 0),
        ("It is 7654321.", 0, 0, False, 0),
        ("1234567 or 7654321", 0.5, 1, False, 1),  # listing does not help; RULER's rule lets it
        ("<think>7654321?</think>1234567", 1, 1, True, 1),
        ("<think>It must be 1234567", 1, 0, False, 0),  # never came out of its thinking
        ("12345678", 0, 0, False, 1),  # a longer number is another number
        ("", 1, 0, False, 0),
    ],
)
def test_one_number(answer: str, precision: float, recall: float, correct: bool, ruler: float) -> None:
    found = score(NUMBER, answer)
    assert (found.precision, found.recall, found.correct, found.ruler) == (precision, recall, correct, ruler)


def test_listing_everything_gets_no_credit() -> None:
    everything = " ".join(str(n) for n in range(1_111_111, 1_111_311)) + " 2222222 3333333 4444444"
    found = score(FOUR, everything)
    assert found.recall == found.ruler == 1.0
    assert found.precision < 0.03
    assert not found.correct
    assert found.f1 < 0.05


def test_some_of_several() -> None:
    found = score(FOUR, "1111111, 2222222")
    assert (found.precision, found.recall, found.correct) == (1.0, 0.5, False)
    assert found.ruler == 0.5
    assert score(Question("?", FOUR.expected, "number", rule="part"), "1111111").ruler == 1.0


def test_the_key_in_the_question_is_no_answer() -> None:
    question = Question("What is the special magic word for brave-otter?", ("calm-lake",), "word")
    assert score(question, "The special magic word for brave-otter is calm-lake.").correct
    assert not score(question, "brave-otter").correct


def test_order_where_it_matters() -> None:
    question = Question("?", ("ABCDE", "FGHIJ"), "variable", ordered=True)
    assert score(question, "ABCDE, FGHIJ").correct
    assert not score(question, "FGHIJ, ABCDE").correct


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("uuid", "It is 5D4C1E0A-93F7-4B52-8D5E-0F1A2B3C4D5E.", ("5d4c1e0a-93f7-4b52-8d5e-0f1a2b3c4d5e",)),
        ("variable", "VAR ABCDE and FGHIJ, not abcde", ("ABCDE", "FGHIJ")),
        ("code", "The words bcdfgh, rhythm and listen", ("bcdfgh",)),
        ("node", "0123456789, abcdef0123 and 12345", ("0123456789", "abcdef0123")),
        ("name", "It was alma, or Bruno.", ("alma", "bruno")),
        ("place", "In the Kitchen of the castle", ("kitchen",)),
        ("integer", "It appears 52 times", ("52",)),
        ("number", "of 4 numbers: 1,234,567 and 7654321", ("1234567", "7654321")),
    ],
)
def test_ids(kind: Kind, text: str, found: tuple[str, ...]) -> None:
    assert answers.ids(text, kind) == found


@pytest.mark.parametrize(
    ("text", "declines", "garbage"),
    [
        ("The text does not say.", True, False),
        ("There is no special magic number for it.", True, False),
        ("I could not find it in the text.", True, False),
        ("The number is 1234567.", False, False),
        ("!!!!!!!!!!!!!!!!", False, True),
        ("the the the the the the the the the the the", False, True),
        ("\ufffd\ufffd\ufffd\ufffda", False, True),
        ("1111111", False, False),
    ],
)
def test_refusal_and_garbage(text: str, declines: bool, garbage: bool) -> None:
    assert answers.declines(text) is declines
    assert answers.garbage(text) is garbage
