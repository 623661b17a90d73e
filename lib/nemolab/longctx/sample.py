"""A task's instance before it has a length: what is asked, what hides where, what fills the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "word", "uuid", "variable", "code", "node", "name", "place", "integer"]
Control = Literal["", "no context", "wrong key"]
Rule = Literal["all", "part"]


@dataclass(frozen=True, slots=True)
class Needle:
    """A line that hides at a depth: 0 is the start of the haystack, 1 its end."""

    line: str
    depth: float


@dataclass(frozen=True, slots=True)
class Question:
    """One question on a haystack.

    Attributes:
        text: the last lines of the prompt.
        expected: exact ids that make the answer; none means that a refusal is right.
        kind: of the ids, which says how they are read from an answer.
        depth: of the needle asked for; None when the answer does not lie in one place.
        rule: RULER's string match for the second column: all references, or any.
        control: "wrong key" asks for what is not there.
        max_tokens: enough for the answer without thinking.
        ordered: the ids have to come in the order expected.
    """

    text: str
    expected: tuple[str, ...]
    kind: Kind
    depth: float | None = None
    rule: Rule = "all"
    control: Control = ""
    max_tokens: int = 64
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A task's instance: a pure function of task, seed and depths made it.

    Attributes:
        task: name of the task.
        seed: that it was made from.
        head: text before the haystack.
        haystack: makes the endless haystack, line by line, the same every time.
        needles: lines that hide in it.
        questions: asked of the same haystack, one prompt each.
        settle: questions whose answer depends on how much haystack there is, from its lines; None when none does.
    """

    task: str
    seed: int
    head: str
    haystack: Callable[[], Iterator[str]]
    needles: tuple[Needle, ...]
    questions: tuple[Question, ...]
    settle: Callable[[Sequence[str]], tuple[Question, ...]] | None = None
