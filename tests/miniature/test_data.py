"""The training conversations: deterministic, and right."""

from __future__ import annotations

import hashlib
import json
from random import Random

import pytest

from nemolab.miniature import data, wording
from nemolab.miniature.data import Conversation


def letters(text: str) -> int:
    return len(text) // 3


def talks(length: int, count: int) -> list[Conversation]:
    return [data.conversation(Random(f"test/{number}"), length, letters) for number in range(count)]


def test_the_same_seed_gives_the_same_conversation() -> None:
    first, second = talks(800, 40), talks(800, 40)
    assert first == second
    text = json.dumps([talk.messages for talk in first])
    assert hashlib.sha256(text.encode()).hexdigest() != hashlib.sha256(json.dumps([]).encode()).hexdigest()
    assert data.conversation(Random("other"), 800, letters) != first[0]


@pytest.mark.parametrize("length", [384, 2048])
def test_every_answer_follows_from_the_text(length: int) -> None:
    """A value is given in the text or by the tool; a refusal is given only where neither holds it."""
    seen = {"value": 0, "refusal": 0}
    for talk in talks(length, 150):
        given, question = "", ""
        for message in talk.messages:
            content = str(message["content"])
            if message["role"] != "assistant":
                given += content + "\n"
            if message["role"] == "user":
                question = content.rstrip("?.").split("\n")[-1]
            if message["role"] != "assistant" or message.get("tool_calls"):
                continue
            if content == wording.REFUSAL:
                seen["refusal"] += 1
                assert " for " in question
            elif content not in (wording.GREETING, wording.IDENTITY, wording.THANKS):
                seen["value"] += 1
                assert content in given
    assert seen["value"] > 100
    assert seen["refusal"] > 10


def test_absent_means_that_no_needle_states_it() -> None:
    for number in range(300):
        rng = Random(number)
        facts = data._facts(rng, 6)
        missing = data._absent(rng, facts)
        assert (missing.key, missing.kind) not in {(fact.key, fact.kind) for fact in facts}


def test_keys_and_kinds_are_distinct_and_some_are_near_each_other() -> None:
    facts = data._facts(Random(1), 200)
    assert len({(fact.key, fact.kind) for fact in facts}) == 200
    assert len({fact.key for fact in facts}) < 200


def test_a_tool_call_names_the_given_tool_and_its_parameter() -> None:
    called = 0
    for talk in talks(800, 300):
        for message in talk.messages:
            for call in message.get("tool_calls", []):
                function = talk.tools[0]["function"]
                called += 1
                assert call["function"]["name"] == function["name"]
                assert list(call["function"]["arguments"]) == list(function["parameters"]["properties"])
    assert called > 10


def test_wordings_are_ruler_s() -> None:
    assert wording.needle("number", "brave-otter", "8056020") == (
        "One of the special magic numbers for brave-otter is: 8056020."
    )
    assert wording.question("uuid", "brave-otter") == (
        "What is the special magic uuid for brave-otter mentioned in the provided text?"
    )
    assert wording.is_refusal(" The text does not say.\n")
    assert not wording.is_refusal("8056020")


def test_values_have_the_shape_of_their_kind() -> None:
    import uuid

    rng = Random(0)
    for _ in range(100):
        assert 1_000_000 <= int(wording.value("number", rng)) <= 9_999_999
        assert uuid.UUID(wording.value("uuid", rng)).version == 4
        adjective, noun = wording.value("word", rng).split("-")
        assert adjective in wording.ADJECTIVES
        assert noun in wording.NOUNS
