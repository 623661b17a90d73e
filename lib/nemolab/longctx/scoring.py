"""Scoring: precision and recall over exact ids, and RULER's string match beside them."""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.longctx import answers
from nemolab.longctx.sample import Question


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one answer.

    Attributes:
        given: ids in the answer, without those that the question itself names.
        precision: share of the given ids that are right; 1 when none is given.
        recall: share of the expected ids that are given; 1 when none is expected.
        correct: precision and recall are both 1 (and the order is right where it matters).
        ruler: RULER's string match, which knows no precision: an answer that lists everything scores 1.
    """

    given: tuple[str, ...]
    precision: float
    recall: float
    correct: bool
    ruler: float

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def score(question: Question, text: str) -> Score:
    """Score `text` (thinking is taken off) as the answer to `question`."""
    answer = answers.final(text)
    expected = [answers.normal(value, question.kind) for value in question.expected]
    named = set(answers.ids(question.text, question.kind)) - set(expected)
    given = tuple(value for value in answers.ids(answer, question.kind) if value not in named)
    right = sum(value in expected for value in given)
    precision = right / len(given) if given else 1.0
    recall = right / len(expected) if expected else 1.0
    correct = precision == recall == 1.0 and bool(given or not expected)
    if correct and question.ordered:
        correct = list(given) == expected
    return Score(given, precision, recall, correct, ruler(question, answer))


def ruler(question: Question, answer: str) -> float:
    """RULER's string match (NVIDIA/RULER, `scripts/eval/synthetic/constants.py`, commit c3f5e3b).

    `all`: share of the references that occur in the answer, case ignored; `part`: 1 if any does.
    """
    if not question.expected:
        return 0.0 if answers.ids(answer, question.kind) else 1.0
    hits = [reference.lower() in answer.lower() for reference in question.expected]
    return float(any(hits)) if question.rule == "part" else sum(hits) / len(hits)
