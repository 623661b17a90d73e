"""The first live request of a newcomer: hide a number in a text, ask the miniature for it, stop the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Annotated

from pydantic import Field

from nemolab.client.api import openai_client
from nemolab.core.contract import Params, Results, Unit
from nemolab.engines.llamacpp import Options, serve
from nemolab.engines.process import Progress, Server, stop
from nemolab.miniature import wording


class FirstParams(Params):
    """Parameters of `00_start_here`."""

    run: str = Field("quickstart", description="run to look at: how its name begins in reports/examples")
    hidden_number: int = Field(4815162, ge=1_000_000, le=9_999_999, description="change me: the number to hide")
    place: float = Field(0.5, ge=0, le=1, description="where to hide it: 0 at the start of the text, 1 at its end")
    sentences: int = Field(80, ge=1, le=3000, description="length of the text around it")
    thinking: bool = Field(True, description="let the model think before it answers")


class FirstResults(Results):
    """Results of `00_start_here`."""

    found: bool = Field(description="the answer is the hidden number")
    answer: str = Field(description="what the model answered")
    prompt_tokens: Annotated[int, Unit("tokens")] = Field(description="length of the question with its text")
    ready: Annotated[float, Unit("s", "lower", 0.5)] = Field(description="from nothing to a server that answers")
    answered: Annotated[float, Unit("s", "lower", 0.5)] = Field(description="from question to whole answer")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, and how long it took in seconds."""

    engine: str
    reasoning: str
    content: str
    prompt_tokens: int
    completion_tokens: int
    ready_s: float
    seconds: float


def text_around(number: int, place: float, sentences: int) -> tuple[str, str]:
    """A text with the number hidden in it, and the question for it.

    Args:
        number: to hide, 7 digits.
        place: 0 at the start, 1 at the end.
        sentences: of prose around it; the same number gives the same text.
    """
    rng = Random(number)
    key = wording.key(rng)
    parts = [wording.prose(rng) for _ in range(sentences)]
    parts.insert(round(place * sentences), wording.needle("number", key, str(number)))
    return " ".join(parts), wording.question("number", key)


def ask(text: str, question: str, thinking: bool, progress: Callable[[Progress], None] | None = None) -> Answer:
    """Serve the miniature, ask it `question` about `text`, stop it. Takes seconds; leaves nothing running."""
    server = serve(Options(ctx=65536, parallel=1), progress=progress)
    try:
        return _answer(server, f"{text}\n\n{question}", thinking)
    finally:
        stop(server)


def _answer(server: Server, prompt: str, thinking: bool) -> Answer:
    began = time.monotonic()
    reply = openai_client(server.endpoint).chat.completions.create(
        model=server.model,
        messages=[{"role": "user", "content": prompt}],
        temperature=0.0,
        max_tokens=256,
        extra_body={"chat_template_kwargs": {"enable_thinking": thinking}},
    )
    seconds = time.monotonic() - began
    message, usage = reply.choices[0].message, reply.usage
    return Answer(
        engine=f"{server.engine} {server.report.version}",
        reasoning=getattr(message, "reasoning_content", None) or "",
        content=message.content or "",
        prompt_tokens=usage.prompt_tokens if usage else 0,
        completion_tokens=usage.completion_tokens if usage else 0,
        ready_s=round(server.ready_s, 2),
        seconds=round(seconds, 2),
    )


def results_of(answer: Answer, number: int) -> FirstResults:
    """The results that the notebook publishes."""
    return FirstResults(
        found=str(number) in answer.content,
        answer=answer.content,
        prompt_tokens=answer.prompt_tokens,
        ready=answer.ready_s,
        answered=answer.seconds,
    )
