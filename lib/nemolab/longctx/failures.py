"""What came of a request: exactly one class each, from what was seen of it.

The order is that of cause: a prompt that never arrived whole says nothing about the model, and an answer is judged
only when the request, the prompt and the form of the answer are beyond doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from nemolab.client.stream import ErrorClass, StreamResult
from nemolab.longctx import answers
from nemolab.longctx.sample import Question
from nemolab.longctx.scoring import Score


class Outcome(StrEnum):
    """Class of a request."""

    CORRECT = "correct"
    # not answered
    NOT_SENT = "not sent"  # refused for its size in bytes, or the connection broke while it was sent
    REFUSED_LENGTH = "refused for length"
    CLIENT_TIMEOUT = "client timeout"
    IDLE_CUT = "idle cut"  # something closed the connection while nothing flowed
    EMPTY_200 = "empty 200"
    SERVER_ERROR = "server error"
    ENGINE_DIED = "engine died"
    # another test than the one meant
    RETRIED = "retried"  # the prompt was prefilled more than once
    TRUNCATED = "truncated"
    LENGTH_MISMATCH = "length mismatch"
    # form
    THINKING_ATE_BUDGET = "thinking ate the budget"
    CUT_ANSWER = "cut answer"
    REFUSAL = "refusal"
    FORMAT = "format"
    GARBAGE = "garbage"
    # content
    WRONG_IN_CONTEXT = "wrong value from context"
    WRONG_NOT_IN_CONTEXT = "wrong value not in context"
    OVER_LISTING = "over-listing"
    INCOMPLETE = "incomplete"
    # controls
    LEAK = "known without the text"  # the answer to a question whose text was not there
    # suspicious
    CACHE_SUSPECT = "cache suspect"


TRANSPORT = frozenset(
    (
        Outcome.NOT_SENT,
        Outcome.REFUSED_LENGTH,
        Outcome.CLIENT_TIMEOUT,
        Outcome.IDLE_CUT,
        Outcome.EMPTY_200,
        Outcome.SERVER_ERROR,
        Outcome.ENGINE_DIED,
    )
)
SUSPECT = frozenset((Outcome.RETRIED, Outcome.TRUNCATED, Outcome.LENGTH_MISMATCH, Outcome.CACHE_SUSPECT))
FORM = frozenset((Outcome.THINKING_ATE_BUDGET, Outcome.CUT_ANSWER, Outcome.REFUSAL, Outcome.FORMAT, Outcome.GARBAGE))
MODEL = frozenset((Outcome.WRONG_IN_CONTEXT, Outcome.WRONG_NOT_IN_CONTEXT, Outcome.OVER_LISTING, Outcome.INCOMPLETE))

# How engines say that a prompt is too long: vLLM, SGLang, TensorRT-LLM, llama.cpp, OpenAI.
_TOO_LONG = re.compile(
    r"maximum context length|context[ _]length|context[ _]size|context window|longer than the m|max_model_len"
    r"|max_num_tokens|max_seq_len|max_input_len|(?:input|prompt) (?:is )?too long|(?:input|prompt) length"
    r"|exceeds? the (?:maximum|limit)|too many tokens",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(r"entity too large|payload too large|body (?:is )?too large|content too large", re.IGNORECASE)
_TEMPLATE_TOKENS = 64  # a difference up to this is a template or a BOS token, beyond it text is gone
_IDLE_S = 2.0  # a connection that closes sooner was not idle


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one request.

    Attributes:
        result: what the client saw.
        question: what was asked.
        score: of the answer; None where there is none.
        built: tokens that the prompt has, template included.
        context: the prompt, to tell a distractor from an invention.
        alive: whether the server answered afterwards; None if nobody asked.
        prefills: times that the server computed this prompt; None if unknown.
        cold: whether the same prompt without the cache was answered correctly; None if it was not asked again.
    """

    result: StreamResult
    question: Question
    score: Score | None
    built: int
    context: str = ""
    alive: bool | None = None
    prefills: int | None = None
    cold: bool | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The class, and the observation that decided it."""

    outcome: Outcome
    why: str = ""


def classify(seen: Seen) -> Verdict:
    """The one class of a request."""
    if not seen.result.ok:
        return _unanswered(seen)
    if other := _other_test(seen):
        return other
    verdict = _answer(seen)
    if seen.cold and verdict.outcome is not Outcome.CORRECT:
        return Verdict(Outcome.CACHE_SUSPECT, f"right without the cache, with it: {verdict.outcome}")
    return verdict


def _unanswered(seen: Seen) -> Verdict:
    result = seen.result
    text = f"{result.error_class}: {result.error}"
    if seen.alive is False:
        return Verdict(Outcome.ENGINE_DIED, f"{text}; no answer to a health check afterwards")
    if result.status == 413 or _TOO_LARGE.search(result.error):
        return Verdict(Outcome.NOT_SENT, text)
    match result.error_class:
        case ErrorClass.TIMEOUT | ErrorClass.STALL:
            return Verdict(Outcome.CLIENT_TIMEOUT, text)
        case ErrorClass.EMPTY:
            return Verdict(Outcome.EMPTY_200, text)
        case ErrorClass.CONNECT:
            idle = result.total_s >= _IDLE_S
            return Verdict(Outcome.IDLE_CUT if idle else Outcome.NOT_SENT, f"{text} after {result.total_s:.1f} s")
        case ErrorClass.CUT:
            if result.ttft_s is None:
                return Verdict(Outcome.IDLE_CUT, f"{text}; closed after {result.total_s:.1f} s without a token")
            return Verdict(Outcome.CUT_ANSWER, text)
    if _TOO_LONG.search(result.error):
        return Verdict(Outcome.REFUSED_LENGTH, text)
    return Verdict(Outcome.SERVER_ERROR, text)


def _other_test(seen: Seen) -> Verdict | None:
    got = seen.result.prompt_tokens
    if got is not None and got != seen.built:
        text = f"{seen.built} tokens were built, the server counted {got} ({got - seen.built:+d})"
        short = seen.built - got > _TEMPLATE_TOKENS
        return Verdict(Outcome.TRUNCATED if short else Outcome.LENGTH_MISMATCH, text)
    if seen.prefills is not None and seen.prefills > 1:
        return Verdict(Outcome.RETRIED, f"the server computed the prompt {seen.prefills} times")
    return None


def _answer(seen: Seen) -> Verdict:
    result, score = seen.result, seen.score
    if seen.question.control == "no context":  # any answer will do but the right one
        leaked = score is not None and bool(score.given) and score.recall == 1.0
        return Verdict(Outcome.LEAK, "right without the text") if leaked else Verdict(Outcome.CORRECT)
    text = answers.final(result.content)
    if score and score.correct and text:
        return Verdict(Outcome.CORRECT)
    if not text:
        if result.finish_reason == "length":
            return Verdict(Outcome.THINKING_ATE_BUDGET, f"{result.completion_tokens} tokens and no answer")
        return Verdict(Outcome.EMPTY_200, "an answer without text")
    if answers.garbage(text):
        return Verdict(Outcome.GARBAGE, text[:80])
    if score and score.given:
        return _wrong(seen, score)
    if result.finish_reason == "length":
        return Verdict(Outcome.CUT_ANSWER, "cut before it gave a value")
    if answers.declines(text):
        return Verdict(Outcome.REFUSAL, text[:80])
    return Verdict(Outcome.FORMAT, f"no value in {text[:80]!r}")


def _wrong(seen: Seen, score: Score) -> Verdict:
    question = seen.question
    expected = {answers.normal(value, question.kind) for value in question.expected}
    wrong = [value for value in score.given if value not in expected]
    if not wrong:
        if score.recall == 1.0:
            return Verdict(Outcome.FORMAT, "the right values in another order")
        if seen.result.finish_reason == "length":
            return Verdict(Outcome.CUT_ANSWER, f"{len(score.given)} of {len(expected)} values, then cut")
        return Verdict(Outcome.INCOMPLETE, f"{len(score.given)} of {len(expected)} values")
    if score.recall == 1.0 and expected:
        return Verdict(Outcome.OVER_LISTING, f"{len(score.given)} values for {len(expected)}")
    inside = [value for value in wrong if value in seen.context or value in seen.context.lower()]
    if inside:
        return Verdict(Outcome.WRONG_IN_CONTEXT, f"{inside[0]} stands elsewhere in the text")
    return Verdict(Outcome.WRONG_NOT_IN_CONTEXT, f"{wrong[0]} is nowhere in the text")
