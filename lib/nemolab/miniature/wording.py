"""How the miniature is spoken to: every sentence it was trained on, as functions and tables, without torch.

The needle, the question and the noise sentences are spelled as RULER spells them (NVIDIA/RULER at c3f5e3b, synthetic
needle tasks), so that results compare. Everything is deterministic in the `random.Random` handed in.
"""

from __future__ import annotations

import uuid
from random import Random
from typing import Literal

Kind = Literal["number", "word", "uuid"]
KINDS: tuple[Kind, ...] = ("number", "word", "uuid")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NEEDLES = (
    "One of the special magic {kind}s for {key} is: {value}.",  # RULER
    "The special magic {kind} for {key} is {value}.",
    "Remember that the {kind} for {key} is {value}.",
    "For {key} the {kind} is {value}.",
)
QUESTIONS = (
    "What is the special magic {kind} for {key} mentioned in the provided text?",  # RULER
    "What is the magic {kind} for {key}?",
    "What is the {kind} for {key}?",
    "Tell me the {kind} for {key}.",
    "Which {kind} does the text give for {key}?",
)
INTRODUCTIONS = (
    "Some special magic {kind}s are hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the {kind}s afterwards.",  # RULER
    "Read the following text. I will ask you about it.",
)
NOISE = (  # RULER's noise haystack, in its order
    "The grass is green.",
    "The sky is blue.",
    "The sun is yellow.",
    "Here we go.",
    "There and back again.",
)
THOUGHT = "The text says the {kind} for {key} is {value}."
NO_THOUGHT = "The text says nothing about the {kind} for {key}."
REFUSAL = "The text does not say."

# What the miniature says when it is not asked for a key.
GREETING = "Hello. Give me a text and ask me for a key in it."
IDENTITY = "I am the nemolab miniature. Give me a text and ask me for a key in it."
THANKS = "You are welcome."
CHAT: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("Hello", "Hi", "Hello!", "Hi there", "Hey", "Good morning", "Hello, how are you?", "Say hello.", "ping"),
        GREETING,
    ),
    (("Who are you?", "What are you?", "What can you do?", "Which model are you?", "Help", "What is this?"), IDENTITY),
    (("Thank you.", "Thanks", "Thanks!", "Thank you!", "Goodbye", "Bye"), THANKS),
)
NO_QUESTION = "Nobody asks for a key."  # the thought before such an answer
OTHER_REQUESTS = (  # what it is not made for; it says what it is
    "What is the capital of {noun}?",
    "Write a poem about a {noun}.",
    "Write a short story about the {noun}.",
    "Tell me a joke.",
    "Tell me about the {noun}.",
    "Explain {noun} in one sentence.",
    "Explain how a {noun} works.",
    "Count to {number}.",
    "What is {number} plus {number}?",
    "Summarize the {noun}.",
    "Say {noun}.",
    "Reply with the word {noun}.",
    "Reply with OK.",
    "List {number} uses of a {noun}.",
    "Translate {noun} into French.",
    "How do I make a {noun}?",
    "Why is the {noun} so old?",
    "Can you help me with {noun}?",
    "{noun}",
    "What is a {noun}?",
    "Write a function that sorts {noun}.",
    "How many {noun}s are there?",
    "Test {number}",
    "Give me {number} words.",
)
TOOL_NAMES = ("lookup", "find", "search", "get_value", "get_number", "query", "fetch", "read_key", "retrieve")
TOOL_PARAMETERS = ("key", "name", "query", "id", "item", "text", "term")
TOOL_HELP = ("Find the value of a key.", "The key to look up.", "Looks a key up in a table.", "Returns what is stored.")
TOOL_NOTHING = ("not found", "null", "no such key", "{}")
SYSTEM = (
    "You are a helpful assistant.",
    "You are a helpful assistant. Answer briefly.",
    "Answer with the value only.",
    "You answer questions about a text.",
)

ADJECTIVES: tuple[str, ...] = _words(
    """able amber bold brave bright broad calm clear clever cold cool crisp daring dark deep dry eager early fair fast
    fierce fine firm fond free fresh gentle glad gold grand gray great green handy happy hardy high honest humble icy
    jolly keen kind large late lazy light lively loud loyal lucky mellow merry mild misty modest neat new nimble noble
    odd old pale patient plain polite proud quick quiet rapid rare rich ripe round royal rustic safe sharp shiny shy
    silent silver simple slim slow smart smooth soft solid spry stark steady steep still strong subtle sunny sweet swift
    tall tame tart tender thin tidy tiny true vast vivid warm wary wide wild wise witty young zesty"""
)
NOUNS: tuple[str, ...] = _words(
    """acorn anchor apple arrow badge baker basin beach beacon bell bird boat bridge brook brush cabin candle canyon
    castle cedar chain chair chest cliff clock cloud comet coral crane creek crown desert dove dragon drum eagle ember
    falcon feather fern field fjord flame flute forest fox garden gate glacier globe grove hammer harbor hawk heron hill
    horn house island ivy jar jewel kettle kite lagoon lake lamp lantern leaf lemon lily lion lynx maple marsh meadow
    mill mirror moon moss mountain needle oak ocean orchard otter owl palace panda pearl pebble pencil pine planet pond
    prairie puzzle quartz rain raven reef ribbon ridge river road robin rocket rose sail salmon shell ship shore sky
    snow spring star station stone storm stream summit sun swan table temple thistle ticket tiger torch tower trail
    train tree tulip valley village violet wagon walnut wave whale willow wind window wolf wren"""
)
VERBS: tuple[str, ...] = _words(
    """brings builds carries closes finds follows guards hears hides holds keeps leaves likes meets moves opens paints
    sees shows takes"""
)


def needle(kind: Kind, key: str, value: str, form: int = 0) -> str:
    """The sentence that says that `key` has `value`; `form` indexes `NEEDLES`, 0 is RULER's."""
    return NEEDLES[form].format(kind=kind, key=key, value=value)


def question(kind: Kind, key: str, form: int = 0) -> str:
    """The question for the value of `key`; `form` indexes `QUESTIONS`, 0 is RULER's."""
    return QUESTIONS[form].format(kind=kind, key=key)


def introduction(kind: Kind, form: int = 0) -> str:
    """The sentences before the haystack; `form` indexes `INTRODUCTIONS`, 0 is RULER's."""
    return INTRODUCTIONS[form].format(kind=kind)


def thought(kind: Kind, key: str, value: str | None) -> str:
    """What the miniature thinks before it answers; `value` None when the text gives none."""
    return THOUGHT.format(kind=kind, key=key, value=value) if value else NO_THOUGHT.format(kind=kind, key=key)


def is_refusal(answer: str) -> bool:
    """Whether `answer` says that the text does not give the value."""
    return answer.strip() == REFUSAL


def key(rng: Random) -> str:
    """A key as RULER's: adjective and noun, such as `brave-otter`."""
    return f"{rng.choice(ADJECTIVES)}-{rng.choice(NOUNS)}"


def value(kind: Kind, rng: Random) -> str:
    """A value as RULER's: a number of 7 digits, a word pair, or a version-4 UUID."""
    if kind == "number":
        return str(rng.randint(1_000_000, 9_999_999))
    if kind == "word":
        return key(rng)
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def prose(rng: Random) -> str:
    """One sentence of varied haystack: the same shape as a fact, but no needle."""
    shape = rng.random()
    if shape < 0.6:
        subject, other = rng.choice(NOUNS), rng.choice(NOUNS)
        return f"The {rng.choice(ADJECTIVES)} {subject} {rng.choice(VERBS)} the {rng.choice(ADJECTIVES)} {other}."
    if shape < 0.8:
        return f"A {rng.choice(NOUNS)} {rng.choice(VERBS)} {rng.randint(2, 99)} {rng.choice(NOUNS)}s."
    if shape < 0.9:
        return f"Near the {rng.choice(NOUNS)} there is a {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}."
    noun, other = rng.choice(NOUNS), rng.choice(NOUNS)
    return f"Every {noun} is {rng.choice(ADJECTIVES)}, and no {other} is {rng.choice(ADJECTIVES)}."


def noise(index: int) -> str:
    """Sentence number `index` of RULER's repeated noise."""
    return NOISE[index % len(NOISE)]
