"""Tasks that a lookup does not solve: chains, counts, graphs, order, change and meaning.

Needles and haystack have the same form in all but `vt` and `latent`, so that nothing stands out by its style.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from nemolab.longctx import haystacks
from nemolab.longctx.sample import Needle, Question, Sample
from nemolab.longctx.tables import ASSOCIATIONS, NAMES, PLACES, THINGS
from nemolab.miniature import wording

_HOPS = 4
_CONSONANTS = "bcdfghjklmnpqrstvwxz"  # coded words without vowels: never an English word in an answer
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def tracking(seed: int, depths: Sequence[float], questions: int) -> Sample:
    """`vt`: chains of assignments, as RULER's variable tracking; a question for each chain but one."""
    rng = Random(f"vt {seed}")
    chains = questions + 1
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    names = _distinct(chains * (_HOPS + 1), lambda: "".join(rng.choices(letters, k=5)))
    values = _distinct(chains, lambda: str(rng.randint(10_000, 99_999)))
    needles: list[Needle] = []
    asked: list[Question] = []
    for i, value in enumerate(values):
        chain = names[i * (_HOPS + 1) : (i + 1) * (_HOPS + 1)]
        places = _rising(rng, depths[i % len(depths)], _HOPS + 1)
        lines = [f"VAR {chain[0]} = {value}", *(f"VAR {b} = VAR {a}" for a, b in pairwise(chain))]
        needles += (Needle(line, depth) for line, depth in zip(lines, places, strict=True))
        text = f"Question: Find all variables that are assigned the value {value} in the text above."
        asked.append(Question(text, tuple(chain), "variable", max_tokens=128))
    head = "Memorize and track the chain(s) of variable assignment hidden in the following text.\n"
    return Sample("vt", seed, head, haystacks.noise, tuple(needles), tuple(asked[:questions]))


def frequent(seed: int, depths: Sequence[float], questions: int) -> Sample:
    """`fwe`: the three most frequent coded words, as RULER's; and how often one of them occurs, exactly.

    Every line has the frequent words 4, 3 and 2 times, ten dots and one rare word, so that the order is never a tie
    and the count is known whatever the length.
    """
    rng = Random(f"fwe {seed}")
    words = _distinct(1003, lambda: "".join(rng.choices(_CONSONANTS, k=6)))
    top, rare = words[:3], words[3:]

    def lines() -> Iterator[str]:
        order = Random(f"fwe lines {seed}")
        while True:
            line = [*top[:1] * 4, *top[1:2] * 3, *top[2:3] * 2, order.choice(rare), *["..."] * 10]
            order.shuffle(line)
            yield "Text " + " ".join(line) + "."

    three = Question(
        "Question: Do not provide any explanation. Please ignore the dots '....'. What are the three most frequently "
        "appeared words in the above coded text?",
        tuple(top),
        "code",
    )
    count = Question(f"Question: How many times does the word {top[0]} appear in the above coded text?", (), "integer")

    def settle(used: Sequence[str]) -> tuple[Question, ...]:
        counted = Counter(word.rstrip(".") for line in used for word in line.split())
        return (three, replace(count, expected=(str(counted[top[0]]),)))[: max(1, min(questions, 2))]

    head = (
        "Read the following coded text and track the frequency of each coded word. Find the three most frequently "
        "appeared coded words."
    )
    return Sample("fwe", seed, head, lines, (), (three, count)[: max(1, min(questions, 2))], settle)


def graph(kind: str) -> haystacks.Make:
    """`graph_bfs` and `graph_parents`: operations on a long list of directed edges; scored by set, F1 beside it."""

    def make(seed: int, depths: Sequence[float], questions: int) -> Sample:
        rng = Random(f"graph_{kind} {seed}")
        fresh = _fresh_node(rng)
        edges: list[tuple[str, str]] = []
        asked: list[Question] = []
        for _ in range(questions):
            root, near = next(fresh), [next(fresh) for _ in range(3)]
            far = [next(fresh) for _ in range(4)]
            if kind == "bfs":
                edges += [(root, node) for node in near]
                edges += [(near[i % 3], node) for i, node in enumerate(far)]
                edges += [(next(fresh), root), (far[0], next(fresh))]  # into the root, and one step too far
                text = f"Perform a BFS from node {root} with depth 2. Give the nodes that are exactly 2 steps away."
                asked.append(Question(text, tuple(far), "node", max_tokens=160))
            else:
                edges += [(node, root) for node in near]
                edges += [(root, node) for node in far]
                text = f"Find the parents of node {root}: the nodes that have an edge to it."
                asked.append(Question(text, tuple(near), "node", max_tokens=128))
        places = [depths[i % len(depths)] if i < len(depths) else rng.random() for i in range(len(edges))]
        rng.shuffle(places)
        needles = tuple(Needle(_edge(*edge), place) for edge, place in zip(edges, places, strict=True))
        head = (
            "You will be given a graph as a list of directed edges, and an operation to perform on it. Return the set "
            "of nodes that results, without the node asked about."
        )
        return Sample(f"graph_{kind}", seed, head, _edges(seed), needles, tuple(asked))

    return make


def occurrence(seed: int, depths: Sequence[float], questions: int) -> Sample:
    """`ith`: a chat in which the same request comes several times; which answer came when?"""
    rng = Random(f"ith {seed}")
    form, topic = rng.choice(_FORMS), rng.choice(wording.NOUNS)
    count = min(max(questions, 4), len(_ORDINALS))
    titles = _distinct(count, lambda: wording.key(rng))
    places = sorted([*depths, *(rng.random() for _ in range(count))][:count])
    needles = tuple(Needle(_turn(form, topic, title), place) for title, place in zip(titles, places, strict=True))

    def lines() -> Iterator[str]:
        more = Random(f"ith lines {seed}")
        while True:
            other = (more.choice(_FORMS), more.choice(wording.NOUNS))
            if other != (form, topic):
                yield _turn(*other, wording.key(more))

    asked = tuple(
        Question(
            f"The user asked for a {form} about the {topic} {count} times. What is the title of the {_ORDINALS[i]} "
            "answer to that? Give the title only.",
            (titles[i],),
            "word",
            places[i],
        )
        for i in range(min(questions, count))
    )
    head = "Below is a chat between a user and an assistant. I will ask you about it afterwards."
    return Sample("ith", seed, head, lines, needles, asked)


def facts(seed: int, depths: Sequence[float], questions: int) -> Sample:
    """`facts`: things that people carry from place to place; where is each at the end?"""
    rng = Random(f"facts {seed}")
    count = min(questions, 8)
    people, things = rng.sample(NAMES, len(NAMES)), rng.sample(THINGS, len(THINGS))
    needles: list[Needle] = []
    asked: list[Question] = []
    for i in range(count):
        person, thing = people[i], things[i]
        start, *stops = rng.sample(PLACES, 4)
        story = [f"{person} takes the {thing} in the {start}."]
        story += [f"{person} goes to the {place}." for place in stops[:2]]
        story += [f"{person} leaves the {thing} there.", f"{person} goes to the {stops[2]}."]
        places = _rising(rng, depths[i % len(depths)], len(story))
        needles += (Needle(line, place) for line, place in zip(story, places, strict=True))
        text = f"Where is the {thing} at the end? Give the place only."
        asked.append(Question(text, (stops[1],), "place"))
    others, rest = people[count:], things[count:]

    def lines() -> Iterator[str]:
        more = Random(f"facts lines {seed}")
        while True:
            person, place, thing = more.choice(others), more.choice(PLACES), more.choice(rest)
            yield more.choice(
                (f"{person} goes to the {place}.", f"{person} takes the {thing}.", f"{person} leaves the {thing}.")
            )

    head = "The following story tells where people go and what they carry. I will ask you about it afterwards."
    return Sample("facts", seed, head, lines, tuple(needles), tuple(asked))


def latent(seed: int, depths: Sequence[float], questions: int) -> Sample:
    """`latent`: the question means the needle and shares no content word with it (after NoLiMa, own table)."""
    rng = Random(f"latent {seed}")
    count = min(max(questions, 4), len(ASSOCIATIONS))
    people, chosen = rng.sample(NAMES, count), rng.sample(ASSOCIATIONS, count)
    places = [*depths, *(rng.random() for _ in range(count))][:count]
    needles = tuple(
        Needle(f"{person} {does}.", place) for person, (does, _), place in zip(people, chosen, places, strict=True)
    )
    asked = tuple(
        Question(f"{text} Answer with the name only.", (person,), "name", place)
        for person, (_, text), place in list(zip(people, chosen, places, strict=True))[:questions]
    )
    head = "Read the following text. Some sentences are about people. I will ask you about one of them."
    return Sample("latent", seed, head, haystacks.prose(seed), needles, asked)


_FORMS = ("poem", "riddle", "song", "letter", "joke", "recipe", "speech", "story", "prayer", "toast")


def _turn(form: str, topic: str, title: str) -> str:
    return f"User: Write a {form} about the {topic}. Assistant: Here is a {form} with the title {title}."


def _edge(a: str, b: str) -> str:
    return f"{a} -> {b}"


def _fresh_node(rng: Random) -> Iterator[str]:
    """New nodes for the planted part, drawn as those of the rest are: 40 bits do not meet by chance."""
    seen: set[str] = set()
    while True:
        node = f"{rng.getrandbits(40):010x}"
        if node not in seen:
            seen.add(node)
            yield node


def _edges(seed: int) -> haystacks.Source:
    def lines() -> Iterator[str]:
        rng = Random(f"{seed} edges")
        bits = rng.getrandbits
        pool = [f"{bits(40):010x}" for _ in range(4096)]
        while True:
            for a, b in zip(rng.choices(pool, k=4096), rng.choices(pool, k=4096), strict=True):
                yield f"{a} -> {b}"

    return lines


def _rising(rng: Random, start: float, count: int) -> list[float]:
    """`count` rising depths: one at `start`, the others anywhere before and after it."""
    return sorted([start, *(rng.random() for _ in range(count - 1))])


def _distinct(count: int, draw: haystacks.Draw) -> list[str]:
    out: dict[str, None] = {}
    while len(out) < count:
        out[draw()] = None
    return list(out)
