"""The suite's tasks by name: each makes an instance from a seed, depths and a number of questions, purely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.longctx import haystacks, niah, puzzles
from nemolab.longctx.sample import Sample


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        help: what it measures, in one line.
        make: `(seed, depths, questions) -> Sample`.
        ruler: whether RULER has the task under the same name.
        document: whether its haystack may be replaced by the user's own text.
        needles: for a task that asks one question a text: needles that the question is about; 0 for the others.
    """

    help: str
    make: haystacks.Make
    ruler: bool = False
    document: bool = False
    needles: int = 0


TASKS: dict[str, Task] = {
    "niah_single_1": Task(
        "one number in repeated noise",
        niah.single("niah_single_1", "number", "noise"),
        needles=1,
        ruler=True,
        document=True,
    ),
    "niah_single_2": Task(
        "one number in prose", niah.single("niah_single_2", "number", "prose"), needles=1, ruler=True, document=True
    ),
    "niah_single_3": Task(
        "one uuid in prose", niah.single("niah_single_3", "uuid", "prose"), needles=1, ruler=True, document=True
    ),
    "niah_multikey_1": Task(
        "one of several numbers in prose",
        niah.multikey("niah_multikey_1", "number", "prose", 4),
        ruler=True,
        document=True,
    ),
    "niah_multikey_2": Task(
        "one number among nothing but others", niah.multikey("niah_multikey_2", "number", "needles", 1), ruler=True
    ),
    "niah_multikey_3": Task(
        "uuid to uuid among nothing but others", niah.multikey("niah_multikey_3", "uuid", "needles", 1), ruler=True
    ),
    "niah_multivalue": Task("all four numbers of one key", niah.multivalue, needles=4, ruler=True),
    "niah_multiquery": Task("the numbers of four keys at once", niah.multiquery, needles=4, ruler=True),
    "vt": Task("variables that end up with a value, over four hops", puzzles.tracking, ruler=True),
    "fwe": Task("the most frequent coded words, and an exact count", puzzles.frequent, ruler=True),
    "graph_bfs": Task("nodes two steps away in a list of edges", puzzles.graph("bfs")),
    "graph_parents": Task("nodes with an edge to a node", puzzles.graph("parents")),
    "ith": Task("the i-th answer to the same request in a chat", puzzles.occurrence),
    "facts": Task("where a thing is after it was carried about", puzzles.facts),
    "latent": Task("who is meant, without a word in common", puzzles.latent),
}


def task(name: str) -> Task:
    """The task of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in TASKS:
        raise UsageError(f"no task {name!r}", where="tasks", fix=f"one of {', '.join(TASKS)}")
    return TASKS[name]


def make(
    name: str, seed: int, depths: Sequence[float] = (0.5,), questions: int = 1, documents: tuple[Path, ...] = ()
) -> Sample:
    """An instance of task `name`.

    Args:
        depths: of the needles, from 0 to 1; at least one.
        questions: to ask of the haystack, where the task can ask several.
        documents: text files that replace the haystack.

    Raises:
        UsageError: no such task, a depth out of range, or a task whose haystack is its content.
    """
    found = task(name)
    if not depths or not all(0 <= depth <= 1 for depth in depths):
        raise UsageError(f"not depths: {list(depths)}", where="depths", fix="numbers from 0 to 1")
    sample = found.make(seed, depths, questions)
    if not documents:
        return sample
    if not found.document:
        able = ", ".join(name for name, each in TASKS.items() if each.document)
        raise UsageError(f"{name} cannot hide in a document", where="documents", fix=f"use one of {able}")
    return replace(sample, haystack=haystacks.document(documents))
