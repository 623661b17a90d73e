"""What a streamed completion adds up to: events in, a result out. No I/O; the caller brings the times."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from nemolab.client.sse import DONE


class ErrorClass(StrEnum):
    """Why a request did not end well."""

    CONNECT = "connect"  # no connection: refused, reset before an answer, name unknown
    HTTP_4XX = "http 4xx"
    HTTP_5XX = "http 5xx"
    HTTP_OTHER = "http other"  # a redirect, or 200 with something that is no event stream
    STREAM_ERROR = "error in stream"  # an error object inside a 200 stream
    EMPTY = "empty"  # 200 and an end without one event (mlx-vlm#1068)
    CUT = "cut"  # ended before finish_reason and [DONE]
    STALL = "stall"  # tokens stopped coming
    TIMEOUT = "timeout"  # the whole request took too long
    MALFORMED = "malformed"  # an event that is not JSON of the expected shape


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token, where the request asked for `logprobs`.

    Attributes:
        logprob: None where the server sent no number, as for NaN.
        top: the likeliest tokens at this place with their logprobs, for `top_logprobs`.
    """

    text: str
    logprob: float | None
    top: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What came of one streamed request. Times are seconds from just before the request was sent.

    Attributes:
        ok: the stream ended as it should; only then are the counts and `tpot_s` to be used.
        error_class, error: why not; the text is the server's or the transport's, cut to 500 characters.
        status: HTTP status, None without an answer.
        first_byte_s: first byte of the body, be it a role chunk or a keep-alive comment.
        ttft_s: first token of any kind: reasoning, content or tool call. An empty role chunk is none.
        first_reasoning_s, first_content_s: first token of each kind.
        last_s: last token.
        total_s: end of the stream.
        prompt_tokens, cached_tokens, completion_tokens: the server's `usage`; None when it sent none.
        chunks: events that carried text. Engines put several tokens in one, so this is no token count.
        tpot_s: `(last_s - ttft_s) / (completion_tokens - 1)`; None below two tokens or without usage. Never from
            chunk gaps: vLLM 0.22.0 sent 64 tokens in 2 chunks after a 1M prompt.
        chunk_gaps_s: time between chunks that carried text.
        reasoning: `reasoning_content` (llama.cpp, SGLang, TensorRT-LLM) or `reasoning` (vLLM), joined.
        content, tool_calls, finish_reason: as in a chat completion that is not streamed.
        lag_s: largest lateness of the client's event loop meanwhile; times are no better than this.
        tokens: what `logprobs` asked for; with them, a chunk of tokens without text counts as tokens too.
    """

    ok: bool
    error_class: ErrorClass | None = None
    error: str = ""
    status: int | None = None
    first_byte_s: float | None = None
    ttft_s: float | None = None
    first_reasoning_s: float | None = None
    first_content_s: float | None = None
    last_s: float | None = None
    total_s: float = 0.0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    chunks: int = 0
    tpot_s: float | None = None
    chunk_gaps_s: tuple[float, ...] = ()
    reasoning: str = ""
    content: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str | None = None
    lag_s: float = 0.0
    tokens: tuple[Token, ...] = ()


class Failed(Exception):
    """A stream that did not end well."""

    def __init__(self, kind: ErrorClass, text: str) -> None:
        self.kind = kind
        self.text = text
        super().__init__(text)


@dataclass(slots=True)
class Collected:
    """What has come so far. `add` takes one event's payload and the time since the start."""

    started: float
    status: int | None = None
    first_byte: float | None = None
    first_reasoning: float | None = None
    first_content: float | None = None
    times: list[float] = field(default_factory=list)  # of chunks that carried text
    reasoning: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    tool_calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    events: int = 0
    done: bool = False

    def add(self, payload: bytes, now: float) -> None:
        """Take one event."""
        import orjson

        self.events += 1
        if payload == DONE:
            self.done = True
            return
        try:
            event = orjson.loads(payload)
            if error := event.get("error"):
                raise Failed(ErrorClass.STREAM_ERROR, error_text({"error": error}))
            self.usage = event.get("usage") or self.usage
            for choice in (event.get("choices") or ())[:1]:
                self.finish_reason = choice.get("finish_reason") or self.finish_reason
                tokens = _tokens(choice.get("logprobs"))
                self.tokens += tokens
                self._delta(choice.get("delta") or {"content": choice.get("text")}, now, bool(tokens))
        except (ValueError, TypeError, AttributeError):
            raise Failed(ErrorClass.MALFORMED, f"not a chat completion chunk: {payload[:200]!r}") from None

    def _delta(self, delta: dict[str, Any], now: float, tokens: bool) -> None:
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        content, calls = delta.get("content"), delta.get("tool_calls")
        if reasoning:
            self.reasoning.append(reasoning)
            self.first_reasoning = self.first_reasoning or now
        if content:
            self.content.append(content)
            self.first_content = self.first_content or now
        for part in calls or ():
            _merge_tool_call(self.tool_calls, part)
        if reasoning or content or calls or tokens:
            self.times.append(now)

    @property
    def complete(self) -> bool:
        return self.done or (self.finish_reason is not None and self.usage is not None)

    def result(self, failure: Failed | None, lag_s: float) -> StreamResult:
        usage = self.usage or {}
        completion = usage.get("completion_tokens")
        times = self.times
        return StreamResult(
            ok=failure is None,
            error_class=failure.kind if failure else None,
            error=failure.text[:500] if failure else "",
            status=self.status,
            first_byte_s=self.first_byte,
            ttft_s=times[0] if times else None,
            first_reasoning_s=self.first_reasoning,
            first_content_s=self.first_content,
            last_s=times[-1] if times else None,
            total_s=time.perf_counter() - self.started,
            prompt_tokens=usage.get("prompt_tokens"),
            cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
            completion_tokens=completion,
            chunks=len(times),
            tpot_s=(times[-1] - times[0]) / (completion - 1) if times and completion and completion > 1 else None,
            chunk_gaps_s=tuple(b - a for a, b in pairwise(times)),
            reasoning="".join(self.reasoning),
            content="".join(self.content),
            tool_calls=tuple(self.tool_calls[i] for i in sorted(self.tool_calls)),
            finish_reason=self.finish_reason,
            lag_s=lag_s,
            tokens=tuple(self.tokens),
        )


def error_text(document: Any) -> str:
    """The message of an error body, whichever of the usual shapes it has."""
    error = document.get("error", document) if isinstance(document, dict) else document
    if isinstance(error, dict):
        return str(error.get("message") or error)
    return str(error)


def _tokens(logprobs: dict[str, Any] | None) -> list[Token]:
    """Tokens of a chat completion's chunk; those of plain completions have another shape and are passed over."""
    content = (logprobs or {}).get("content")
    if not isinstance(content, list):
        return []
    return [
        Token(
            str(part.get("token", "")),
            part.get("logprob"),
            tuple((str(other.get("token", "")), other.get("logprob")) for other in part.get("top_logprobs") or ()),
        )
        for part in content
    ]


def _merge_tool_call(calls: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    call = calls.setdefault(
        part.get("index") or 0, {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = part.get("id") or call["id"]
    function = part.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
