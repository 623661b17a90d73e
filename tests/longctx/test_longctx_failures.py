"""Every class from what was seen, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from nemolab.client.stream import ErrorClass, StreamResult
from nemolab.longctx.failures import FORM, MODEL, SUSPECT, TRANSPORT, Outcome, Seen, classify
from nemolab.longctx.sample import Question
from nemolab.longctx.scoring import score

ASK = Question("What is the number for brave-otter?", ("1234567",), "number")
TWO = Question("What are the numbers?", ("1234567", "2345678"), "number")
CONTEXT = "The number for brave-otter is 1234567. The number for calm-lake is 7654321. 2345678"


def seen(content: str = "", question: Question = ASK, **more: Any) -> Seen:
    """What was seen of an answer, with anything else changed."""
    own = {name: more.pop(name) for name in ("alive", "prefills", "cold", "built") if name in more}
    base: dict[str, Any] = {"ok": True, "prompt_tokens": 1000, "finish_reason": "stop", "content": content}
    result = StreamResult(**(base | more))
    return Seen(result, question, score(question, content), **({"built": 1000, "context": CONTEXT} | own))


def failed(kind: ErrorClass, error: str = "", **more: Any) -> Seen:
    """A request without an answer."""
    own = {"alive": True} | {name: more.pop(name) for name in ("alive",) if name in more}
    return Seen(StreamResult(ok=False, error_class=kind, error=error, **more), ASK, None, 1000, CONTEXT, **own)


CASES: list[tuple[Seen, Outcome]] = [
    (seen("1234567"), Outcome.CORRECT),
    (failed(ErrorClass.HTTP_4XX, "HTTP 413: too big", status=413), Outcome.NOT_SENT),
    (failed(ErrorClass.HTTP_4XX, "HTTP 400: request entity too large", status=400), Outcome.NOT_SENT),
    (failed(ErrorClass.CONNECT, "Connection reset", total_s=0.1), Outcome.NOT_SENT),
    (failed(ErrorClass.CONNECT, "Server disconnected", total_s=20.0), Outcome.IDLE_CUT),
    (failed(ErrorClass.CUT, "no more", total_s=20.0), Outcome.IDLE_CUT),
    (failed(ErrorClass.CUT, "no more", total_s=20.0, ttft_s=19.0), Outcome.CUT_ANSWER),
    (failed(ErrorClass.TIMEOUT, "not finished"), Outcome.CLIENT_TIMEOUT),
    (failed(ErrorClass.STALL, "no token"), Outcome.CLIENT_TIMEOUT),
    (failed(ErrorClass.EMPTY, "no event"), Outcome.EMPTY_200),
    (failed(ErrorClass.HTTP_5XX, "HTTP 502: bad gateway", status=502), Outcome.SERVER_ERROR),
    (failed(ErrorClass.STREAM_ERROR, "CUDA error"), Outcome.SERVER_ERROR),
    (failed(ErrorClass.CONNECT, "refused", alive=False), Outcome.ENGINE_DIED),
    (seen("1234567", prefills=2), Outcome.RETRIED),
    (seen("1234567", prompt_tokens=500), Outcome.TRUNCATED),
    (seen("1234567", prompt_tokens=999), Outcome.LENGTH_MISMATCH),
    (seen("1234567", prompt_tokens=1200), Outcome.LENGTH_MISMATCH),
    (seen("", finish_reason="length", reasoning="so", completion_tokens=64), Outcome.THINKING_ATE_BUDGET),
    (seen("<think>so it", finish_reason="length", completion_tokens=64), Outcome.THINKING_ATE_BUDGET),
    (seen("The special magic", finish_reason="length"), Outcome.CUT_ANSWER),
    (seen("1234567", TWO, finish_reason="length"), Outcome.CUT_ANSWER),
    (seen("The text does not say."), Outcome.REFUSAL),
    (seen("Blue."), Outcome.FORMAT),
    (seen("!!!!!!!!!!!!!!!!!!!!"), Outcome.GARBAGE),
    (seen("7654321"), Outcome.WRONG_IN_CONTEXT),
    (seen("9999999"), Outcome.WRONG_NOT_IN_CONTEXT),
    (seen("1234567 and 7654321"), Outcome.OVER_LISTING),
    (seen("1234567", TWO), Outcome.INCOMPLETE),
    (seen("7654321", cold=True), Outcome.CACHE_SUSPECT),
    (seen("7654321", cold=False), Outcome.WRONG_IN_CONTEXT),
    (seen("1234567", cold=True), Outcome.CORRECT),
    (seen(""), Outcome.EMPTY_200),
    (seen("1234567", Question(ASK.text, ASK.expected, "number", control="no context")), Outcome.LEAK),
    (seen("7654321", Question(ASK.text, ASK.expected, "number", control="no context")), Outcome.CORRECT),
    (seen("The text does not say.", Question(ASK.text, (), "number", control="wrong key")), Outcome.CORRECT),
    (seen("7654321", Question(ASK.text, (), "number", control="wrong key")), Outcome.WRONG_IN_CONTEXT),
]


@pytest.mark.parametrize(("what", "outcome"), CASES, ids=[f"{i}-{case[1]}" for i, case in enumerate(CASES)])
def test_one_class_each(what: Seen, outcome: Outcome) -> None:
    assert classify(what).outcome is outcome


@pytest.mark.parametrize(
    "error",
    [
        "This model's maximum context length is 262144 tokens. However, you requested 300000 tokens",  # vLLM
        "The decoder prompt (length 300000) is longer than the maximum model length of 262144",  # vLLM
        "Input length (300000 tokens) exceeds the maximum allowed length (262143 tokens)",  # SGLang
        "the request exceeds the available context size, try increasing it",  # llama.cpp
        "The sum of prompt length (300.0) and query length (0) should not exceed max_num_tokens (200)",  # TensorRT-LLM
    ],
)
def test_refused_for_length_in_the_words_of_each_engine(error: str) -> None:
    assert classify(failed(ErrorClass.HTTP_4XX, f"HTTP 400: {error}", status=400)).outcome is Outcome.REFUSED_LENGTH


def test_a_4xx_of_another_reason_is_the_servers() -> None:
    what = failed(ErrorClass.HTTP_4XX, "HTTP 400: temperature must be positive", status=400)
    assert classify(what).outcome is Outcome.SERVER_ERROR


def test_every_class_is_reached_and_in_one_group() -> None:
    reached = {classify(what).outcome for what, _ in CASES} | {Outcome.REFUSED_LENGTH}
    assert reached == set(Outcome)
    groups = [TRANSPORT, SUSPECT, FORM, MODEL, {Outcome.CORRECT, Outcome.LEAK}]
    assert sum(map(len, groups)) == len(Outcome)
    assert frozenset().union(*groups) == set(Outcome)
