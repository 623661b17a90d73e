"""What the miniature is examined on: cases with one right answer each, deterministic by seed.

Questions about one haystack share its text up to the question, so an engine with a prompt cache reads it once. They are
therefore not quite independent: an interval over them is a little too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from nemolab.miniature import wording
from nemolab.miniature.wording import KINDS, Kind

Text = Literal["noise", "prose", "needles"]
TEXTS: tuple[Text, ...] = ("noise", "prose", "needles")
TEMPLATE_TOKENS = 48  # the chat template's share of a prompt, rounded up
GIVEN_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Find the value of a key.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    },
}


@dataclass(frozen=True, slots=True)
class Case:
    """One request and what must come back.

    Attributes:
        ability: what it examines: the kind of value, `absent`, `multi-turn`, `tool call`, `tool answer` or `chat`.
        text: the haystack's flavour, "" without one.
        length: tokens that the prompt is built for, 0 for the short ones.
        depth: where the needle lies, 0 at the start of the text and 1 at its end; None without needle.
        expected: the exact content; for a tool call the argument.
    """

    ability: str
    text: str
    length: int
    depth: float | None
    thinking: bool
    messages: tuple[dict[str, Any], ...]
    expected: str
    tools: tuple[dict[str, Any], ...] = field(default=())


def counter(folder: Path) -> Callable[[str], int]:
    """Tokens of a text, by the tokenizer in `folder`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def retrieval(
    length: int, haystack: int, *, present: int, absent: int, seed: int, tokens: Callable[[str], int]
) -> Iterator[Case]:
    """Questions about one haystack of `length` tokens: `present` needles at even depths, then `absent` keys.

    Kinds go in turn, the flavour of the text by `haystack`, and every third question is asked with thinking on.
    """
    rng = Random(f"{seed}/{length}/{haystack}")
    flavour = TEXTS[haystack % len(TEXTS)]
    facts: dict[str, tuple[Kind, str]] = {}
    while len(facts) < present:
        kind = KINDS[(len(facts) + haystack) % len(KINDS)]
        facts.setdefault(wording.key(rng), (kind, wording.value(kind, rng)))
    text, depths = _text(rng, flavour, facts, length, tokens)
    for number, (key, (kind, value)) in enumerate(facts.items()):
        messages = _ask(text, wording.question(kind, key))
        yield Case(kind, flavour, length, depths[key], number % 3 == 2, messages, value)
    for number in range(absent):
        key = wording.key(rng)
        if key not in text:
            question = wording.question(KINDS[number % len(KINDS)], key)
            yield Case("absent", flavour, length, None, number % 2 == 1, _ask(text, question), wording.REFUSAL)


def short(count: int, *, seed: int) -> Iterator[Case]:
    """`count` cases each of multi-turn, tool call, tool answer and chat, none longer than about 400 tokens."""
    for number in range(count):
        rng, thinking = Random(f"{seed}/short/{number}"), number % 2 == 1
        yield _multi_turn(rng, thinking)
        kind, key = rng.choice(KINDS), wording.key(rng)
        asked = {"role": "user", "content": wording.question(kind, key, rng.randrange(len(wording.QUESTIONS)))}
        yield Case("tool call", "", 0, None, thinking, (asked,), key, (GIVEN_TOOL,))
        value = wording.value(kind, rng)
        call = {
            "id": "call00001",
            "type": "function",
            "function": {"name": "lookup", "arguments": f'{{"key": "{key}"}}'},
        }
        called = {"role": "assistant", "content": "", "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": "call00001", "content": value}
        yield Case("tool answer", "", 0, None, thinking, (asked, called, result), value, (GIVEN_TOOL,))
        prompts, answer = rng.choice(wording.CHAT)
        yield Case("chat", "", 0, None, thinking, ({"role": "user", "content": rng.choice(prompts)},), answer)


def _multi_turn(rng: Random, thinking: bool) -> Case:
    facts = [(kind := rng.choice(KINDS), wording.key(rng), wording.value(kind, rng)) for _ in range(4)]
    lines = [wording.prose(rng) for _ in range(12)]
    for fact in facts:
        lines.insert(rng.randint(0, len(lines)), wording.needle(*fact))
    messages: list[dict[str, Any]] = []
    for kind, key, value in facts:
        messages.append({"role": "user", "content": wording.question(kind, key)})
        messages.append({"role": "assistant", "content": value})
    messages[0]["content"] = f"{' '.join(lines)}\n\n{messages[0]['content']}"
    return Case("multi-turn", "", 0, None, thinking, tuple(messages[:-1]), facts[-1][2])


def _ask(text: str, question: str) -> tuple[dict[str, Any], ...]:
    return ({"role": "user", "content": f"{text}\n\n{question}"},)


def _text(
    rng: Random, flavour: Text, facts: dict[str, tuple[Kind, str]], length: int, tokens: Callable[[str], int]
) -> tuple[str, dict[str, float]]:
    """The haystack with a needle for each fact, and the depth of each needle by token."""
    needles = {key: wording.needle(kind, key, value) for key, (kind, value) in facts.items()}
    question = max(tokens(wording.question(kind, key)) for key, (kind, _) in facts.items())
    budget = length - TEMPLATE_TOKENS - question - sum(tokens(" " + needle) for needle in needles.values())
    lines, sizes = list[str](), list[int]()
    while True:
        line = _line(rng, flavour, len(lines), facts)
        size = tokens(" " + line)
        if budget - size < 0:
            break
        budget -= size
        lines.append(line)
        sizes.append(size)
    total, done, at = max(1, sum(sizes)), 0, 0
    order = list(needles)
    rng.shuffle(order)
    depths, parts = dict[str, float](), list[str]()
    for number, key in enumerate(order):
        goal = (number + rng.random()) / len(order)
        while at < len(lines) and done / total < goal:
            parts.append(lines[at])
            done += sizes[at]
            at += 1
        parts.append(needles[key])
        depths[key] = round(done / total, 4)
    return " ".join(parts + lines[at:]), depths


def _line(rng: Random, flavour: Text, index: int, facts: dict[str, tuple[Kind, str]]) -> str:
    if flavour == "noise":
        return wording.noise(index)
    if flavour == "prose":
        return wording.prose(rng)
    kind = rng.choice(KINDS)
    key = wording.key(rng)
    while key in facts:
        key = wording.key(rng)
    return wording.needle(kind, key, wording.value(kind, rng))
