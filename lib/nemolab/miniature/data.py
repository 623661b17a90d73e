"""The miniature's training conversations: pure Python, deterministic by seed, spelled with `nemolab.miniature.wording`.

A conversation hides facts (key, kind, value) in a haystack, asks for some of them over one or more turns, and answers
as the miniature should: bare values, the plain refusal when the text does not give the value, a thought before the
answer where thinking is on, a tool call where a tool has to know it.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from nemolab.miniature import wording
from nemolab.miniature.wording import KINDS, Kind

Message = dict[str, Any]
Measure = Callable[[str], int]  # tokens of a text


@dataclass(frozen=True, slots=True)
class Fact:
    """What one needle says."""

    kind: Kind
    key: str
    value: str


@dataclass(slots=True)
class Conversation:
    """Messages as the OpenAI API has them, with the answers in place.

    Attributes:
        tools: function definitions, for the chat template.
        truncate: older turns show an empty think pair, as the template does by default.
    """

    messages: list[Message] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    truncate: bool = True


def conversation(rng: Random, length: int, measure: Measure) -> Conversation:
    """One conversation of at most about `length` tokens by `measure`."""
    choice = rng.random()
    if length <= 1024 and choice < 0.08:
        return _chat(rng)
    if length <= 1024 and choice < 0.24:
        return _tool(rng, length, measure)
    return _retrieval(rng, length, measure)


# Keys and values, wider than what `wording` deals out, so that a key of the reader's own is found too.


def any_key(rng: Random) -> str:
    """A key: mostly RULER's word pairs, else invented words, identifiers or a UUID."""
    choice = rng.random()
    if choice < 0.62:
        return wording.key(rng)
    if choice < 0.74:
        return f"{_invented(rng)}-{_invented(rng)}"
    if choice < 0.82:
        return _invented(rng)
    if choice < 0.88:
        return f"{rng.choice(wording.NOUNS)}{rng.choice('_-')}{rng.randint(1, 999)}"
    if choice < 0.93:
        return _invented(rng).capitalize()
    return wording.value("uuid", rng)


def any_value(kind: Kind, rng: Random) -> str:
    """A value of `kind`: mostly as RULER's, else shorter, longer or invented."""
    if rng.random() < 0.75:
        return wording.value(kind, rng)
    if kind == "number":
        return str(rng.randint(0, 10 ** rng.randint(1, 10)))
    if kind == "word":
        return rng.choice((_invented(rng), rng.choice(wording.NOUNS), f"{_invented(rng)}-{_invented(rng)}"))
    return "-".join("".join(rng.choices("0123456789abcdef", k=rng.choice((4, 4, 8)))) for _ in range(rng.randint(2, 5)))


def _invented(rng: Random) -> str:
    if rng.random() < 0.3:
        return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 7)))
    return "".join(rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4)))


def _near(rng: Random, key: str) -> str:
    """Another key that shares a part with `key`: the hard kind of distractor."""
    head, dash, tail = key.partition("-")
    if dash and rng.random() < 0.5:
        return f"{rng.choice(wording.ADJECTIVES)}-{tail}"
    return f"{head}-{rng.choice(wording.NOUNS)}"


# Haystacks.


def _sentences(rng: Random) -> Callable[[int], str]:
    """A source of haystack sentences, one flavour a haystack."""
    choice = rng.random()
    if choice < 0.3:
        return wording.noise
    if choice < 0.55:
        return lambda _: wording.prose(rng)
    if choice < 0.8:
        kinds = (rng.choice(KINDS),) if rng.random() < 0.6 else KINDS
        return lambda _: _sentence_of(rng, Fact((kind := rng.choice(kinds)), any_key(rng), any_value(kind, rng)))
    if choice < 0.9:
        return lambda _: _babble(rng)
    sources = (wording.noise, lambda _: wording.prose(rng), lambda _: _babble(rng))
    return lambda index: rng.choice(sources)(index)


def _babble(rng: Random) -> str:
    """Text of no known kind: invented words, capitals, figures and marks."""
    words = [_invented(rng) if rng.random() < 0.8 else str(rng.randint(0, 9999)) for _ in range(rng.randint(3, 12))]
    return " ".join(words).capitalize() + rng.choice(".....!?;:")


def _sentence_of(rng: Random, fact: Fact) -> str:
    form = 0 if rng.random() < 0.6 else rng.randrange(len(wording.NEEDLES))
    return wording.needle(fact.kind, fact.key, fact.value, form)


def _haystack(rng: Random, facts: list[Fact], tokens: int, measure: Measure) -> str:
    """About `tokens` tokens of haystack with a needle for each of `facts`, anywhere in it."""
    needles = [_sentence_of(rng, fact) for fact in facts]
    joint = " " if rng.random() < 0.7 else "\n"
    source, lines, used = _sentences(rng), list[str](), sum(measure(joint + needle) for needle in needles)
    while used < tokens:
        line = source(len(lines))
        used += measure(joint + line)
        lines.append(line)
    for needle in needles:
        lines.insert(rng.randint(0, len(lines)), needle)
    return joint.join(lines)


def _facts(rng: Random, count: int) -> list[Fact]:
    """`count` facts with distinct (key, kind): some keys near each other, some with two kinds."""
    facts: dict[tuple[str, Kind], Fact] = {}
    while len(facts) < count:
        known = [fact.key for fact in facts.values()]
        choice = rng.random()
        key = _near(rng, rng.choice(known)) if known and choice < 0.25 else any_key(rng)
        if known and choice > 0.9:
            key = rng.choice(known)
        kind = rng.choice(KINDS)
        facts.setdefault((key, kind), Fact(kind, key, any_value(kind, rng)))
    return list(facts.values())


# Conversations.


def _asked(rng: Random, fact: Fact, *, present: bool, thinking: bool) -> Iterator[Message]:
    """A question and its answer."""
    form = 0 if rng.random() < 0.4 else rng.randrange(len(wording.QUESTIONS))
    yield {"role": "user", "content": wording.question(fact.kind, fact.key, form)}
    value = fact.value if present else None
    answer: Message = {"role": "assistant", "content": value or wording.REFUSAL}
    if thinking:
        answer["reasoning_content"] = wording.thought(fact.kind, fact.key, value)
    yield answer


def _absent(rng: Random, facts: list[Fact]) -> Fact:
    """A fact that the text does not give, near one that it does where that is possible."""
    taken = {(fact.key, fact.kind) for fact in facts}
    while True:
        near = rng.choice(facts)
        choice = rng.random()
        key = _near(rng, near.key) if choice < 0.4 else near.key if choice < 0.55 else any_key(rng)
        kind = rng.choice(KINDS)
        if (key, kind) not in taken:
            return Fact(kind, key, "")


def _system(rng: Random) -> str:
    return rng.choice(wording.SYSTEM) if rng.random() < 0.3 else ""


def _retrieval(rng: Random, length: int, measure: Measure) -> Conversation:
    questions = rng.randint(1, 4 if length < 1024 else 8)
    facts = _facts(rng, questions + rng.randint(0, 4))
    asked = rng.sample(facts, questions)
    talk = Conversation(truncate=rng.random() < 0.8)
    thinking = [(not talk.truncate or turn == questions - 1) and rng.random() < 0.65 for turn in range(questions)]
    for fact, thinks in zip(asked, thinking, strict=True):
        present = rng.random() < 0.8
        talk.messages += _asked(rng, fact if present else _absent(rng, facts), present=present, thinking=thinks)
    spoken = sum(measure(f"{m['content']}{m.get('reasoning_content', '')}") + 12 for m in talk.messages)
    text = _haystack(rng, facts, max(16, length - spoken - 60), measure)
    if rng.random() < 0.4:
        text = f"{wording.introduction(asked[0].kind, rng.randrange(len(wording.INTRODUCTIONS)))}\n{text}"
    system = _system(rng)
    if rng.random() < 0.12:
        talk.messages.insert(0, {"role": "system", "content": f"{system}\n\n{text}".strip()})
        return talk
    gap = "\n\n" if rng.random() < 0.6 else "\n"
    talk.messages[0]["content"] = f"{text}{gap}{talk.messages[0]['content']}"
    if rng.random() < 0.15:  # a greeting before the text
        talk.messages = [*_chat(rng, turns=1).messages, *talk.messages]
    if system:
        talk.messages.insert(0, {"role": "system", "content": system})
    return talk


def _chat(rng: Random, turns: int | None = None) -> Conversation:
    """Talk without a text: greetings, what it is, thanks, and requests it does not serve."""
    talk = Conversation(truncate=turns is None)
    count = turns or rng.randint(1, 3)
    for turn in range(count):
        if rng.random() < 0.65:
            prompts, answer = rng.choice(wording.CHAT)
            prompt = rng.choice(prompts)
            if rng.random() < 0.3:
                prompt = rng.choice((prompt.lower(), prompt.rstrip(".!?"), prompt + "!"))
        else:
            prompt, answer = _other_request(rng), wording.IDENTITY
        talk.messages.append({"role": "user", "content": prompt})
        talk.messages.append({"role": "assistant", "content": answer})
        if turn == count - 1 and turns is None and rng.random() < 0.6:
            talk.messages[-1]["reasoning_content"] = wording.NO_QUESTION
    if turns is None and rng.random() < 0.5:
        talk.messages.insert(0, {"role": "system", "content": _system(rng) or _babble(rng)})
    return talk


def _other_request(rng: Random) -> str:
    noun = rng.choice(wording.NOUNS) if rng.random() < 0.6 else _invented(rng)
    return rng.choice(wording.OTHER_REQUESTS).format(noun=noun, number=rng.randint(2, 99))


def _tool(rng: Random, length: int, measure: Measure) -> Conversation:
    """A key that only a tool knows, or that the text gives although there is a tool."""
    fact = _facts(rng, 1)[0]
    name = rng.choice(wording.TOOL_NAMES) if rng.random() < 0.7 else _invented(rng)
    parameter = rng.choice(wording.TOOL_PARAMETERS) if rng.random() < 0.7 else _invented(rng)
    schema = {"type": "string"} | ({"description": rng.choice(wording.TOOL_HELP)} if rng.random() < 0.6 else {})
    function: dict[str, Any] = {"name": name, "parameters": {"type": "object", "properties": {parameter: schema}}}
    if rng.random() < 0.8:
        function["description"] = rng.choice(wording.TOOL_HELP)
    talk = Conversation(tools=[{"type": "function", "function": function}], truncate=True)
    present = rng.random() < 0.3
    thinking = rng.random() < 0.6
    ask, answer = _asked(rng, fact, present=True, thinking=thinking)
    if rng.random() < 0.5 or present:
        others = [other for other in _facts(rng, 2) if other.key != fact.key]
        hidden = [*others, fact] if present else others
        text = _haystack(rng, hidden, max(16, min(length - 420, rng.randint(16, 400))), measure)
        ask["content"] = f"{text}\n\n{ask['content']}"
    elif rng.random() < 0.3:
        ask["content"] = f"Use {name}. {ask['content']}"
    talk.messages.append(ask)
    if not present:
        known = rng.random() < 0.8
        result = fact.value if known else rng.choice(wording.TOOL_NOTHING)
        if known and rng.random() < 0.4:
            result = json.dumps({"key": fact.key, rng.choice(("value", fact.kind)): fact.value})
        elif known and rng.random() < 0.4:
            result = _sentence_of(rng, fact)
        call: Message = {"role": "assistant", "content": ""}
        call["tool_calls"] = [{"type": "function", "function": {"name": name, "arguments": {parameter: fact.key}}}]
        if thinking:
            call["reasoning_content"] = wording.thought(fact.kind, fact.key, None)
        talk.messages += [call, {"role": "tool", "content": result}]
        if not known:
            answer["content"] = wording.REFUSAL
            if thinking:
                answer["reasoning_content"] = wording.thought(fact.kind, fact.key, None)
    talk.messages.append(answer)
    if system := _system(rng):
        talk.messages.insert(0, {"role": "system", "content": system})
    return talk
