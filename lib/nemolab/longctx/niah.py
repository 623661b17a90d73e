"""Needles in a haystack, named, worded and composed as RULER's (NVIDIA/RULER, commit c3f5e3b, Apache-2.0).

Where RULER asks one question a haystack, these can ask several, each for another needle at another depth. The
haystacks need no download: RULER's essays are replaced by plain prose of our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from nemolab.longctx import haystacks
from nemolab.longctx.sample import Needle, Question, Sample
from nemolab.miniature import wording
from nemolab.miniature.wording import Kind

_SINGLE = (
    "A special magic {kind} is hidden within the following text. Make sure to memorize it. I will quiz you about the "
    "{kind} afterwards."
)
_ALL = "What are all the special magic {kind}s for {keys} mentioned in the provided text?"


def single(task: str, kind: Kind, haystack: str) -> haystacks.Make:
    """`niah_single_*`: one needle, one question."""

    def make(seed: int, depths: Sequence[float], questions: int) -> Sample:
        rng = Random(f"{task} {seed}")
        key, value = wording.key(rng), wording.value(kind, rng)
        return Sample(
            task,
            seed,
            _SINGLE.format(kind=kind),
            _haystack(haystack, kind, seed, frozenset({key})),
            (Needle(wording.needle(kind, key, value), depths[0]),),
            (Question(wording.question(kind, key), (value,), kind, depths[0]),),
        )

    return make


def multikey(task: str, kind: Kind, haystack: str, least: int) -> haystacks.Make:
    """`niah_multikey_*`: a needle at each depth, at least `least` of them, and a question for each of the first
    `questions`, then one for a key that no needle has (the wrong-key control)."""

    def make(seed: int, depths: Sequence[float], questions: int) -> Sample:
        rng = Random(f"{task} {seed}")
        places = [*depths, *(rng.random() for _ in range(least - len(depths)))]
        keys = _distinct(rng, len(places) + 1, uuid=kind == "uuid")
        values = [wording.value(kind, rng) for _ in places]
        needles = tuple(
            Needle(wording.needle(kind, key, value), depth)
            for key, value, depth in zip(keys, values, places, strict=False)
        )
        asked = tuple(
            Question(wording.question(kind, keys[i]), (values[i],), kind, places[i])
            for i in range(min(questions, len(places)))
        )
        absent = Question(wording.question(kind, keys[-1]), (), kind, control="wrong key")
        source = _haystack(haystack, kind, seed, frozenset(keys))
        return Sample(task, seed, wording.introduction(kind), source, needles, (*asked, absent))

    return make


def multivalue(seed: int, depths: Sequence[float], questions: int) -> Sample:
    """`niah_multivalue`: one key with four values, all of them asked for."""
    rng = Random(f"niah_multivalue {seed}")
    key, values = wording.key(rng), _values(rng, 4)
    places = _spread(rng, depths, 4)
    needles = tuple(Needle(wording.needle("number", key, v), d) for v, d in zip(values, places, strict=True))
    question = Question(_ALL.format(kind="number", keys=key), tuple(values), "number", max_tokens=128)
    return Sample("niah_multivalue", seed, wording.introduction("number"), haystacks.prose(seed), needles, (question,))


def multiquery(seed: int, depths: Sequence[float], questions: int) -> Sample:
    """`niah_multiquery`: four keys with a value each, all asked for at once."""
    rng = Random(f"niah_multiquery {seed}")
    keys, values = _distinct(rng, 4), _values(rng, 4)
    places = _spread(rng, depths, 4)
    needles = tuple(Needle(wording.needle("number", k, v), d) for k, v, d in zip(keys, values, places, strict=True))
    query = ", ".join(keys[:-1]) + f", and {keys[-1]}"
    question = Question(_ALL.format(kind="number", keys=query), tuple(values), "number", max_tokens=128)
    return Sample("niah_multiquery", seed, wording.introduction("number"), haystacks.prose(seed), needles, (question,))


def _haystack(name: str, kind: Kind, seed: int, taken: frozenset[str]) -> haystacks.Source:
    if name == "needles":
        return haystacks.needles(kind, seed, taken)
    return haystacks.noise if name == "noise" else haystacks.prose(seed)


def _distinct(rng: Random, count: int, uuid: bool = False) -> list[str]:
    keys: dict[str, None] = {}
    while len(keys) < count:
        keys[wording.value("uuid", rng) if uuid else wording.key(rng)] = None
    return list(keys)


def _values(rng: Random, count: int) -> list[str]:
    values: dict[str, None] = {}
    while len(values) < count:
        values[wording.value("number", rng)] = None
    return list(values)


def _spread(rng: Random, depths: Sequence[float], count: int) -> list[float]:
    """`count` depths: the ones given first, then random ones."""
    return [*depths[:count], *(rng.random() for _ in range(count - len(depths)))]
