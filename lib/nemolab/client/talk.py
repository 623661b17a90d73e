"""What the checks of a probe share: a question that any model can answer, the connection, and how a check ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nemolab.client.api import Reply, call
from nemolab.client.endpoint import Endpoint
from nemolab.client.outcome import CheckStatus
from nemolab.client.stream import StreamResult, stream_chat

if TYPE_CHECKING:
    import aiohttp

# Worded as RULER words it: any model can answer, and the miniature was trained on it.
_QUESTION = (
    "The special magic number for {key} is {number}. "
    "What is the special magic number for {key} mentioned in the provided text?"
)
KEY, NUMBER = "wild-crane", "7421906"


class Verdict(Exception):
    """Raised by a check that does not pass: how it ended, why, and what to do."""

    def __init__(self, status: CheckStatus, detail: str, fix: str = "", source: str = "") -> None:
        self.status, self.detail, self.fix, self.source = status, detail, fix, source
        super().__init__(detail)


def failed(detail: str, fix: str, source: str = "") -> Verdict:
    """A check that failed."""
    return Verdict(CheckStatus.FAILED, detail, fix, source)


def warned(detail: str, fix: str, source: str = "") -> Verdict:
    """A check that gives reason to look closer."""
    return Verdict(CheckStatus.WARNING, detail, fix, source)


def skipped(detail: str) -> Verdict:
    """A check that could not be made."""
    return Verdict(CheckStatus.SKIPPED, detail)


@dataclass
class Talk:
    """What the checks share: the connection, the limits, and what earlier checks found."""

    session: aiohttp.ClientSession
    endpoint: Endpoint
    max_tokens: int
    timeout_s: float
    reachable: bool = True
    answer: dict[str, Any] | None = None  # first message, not streamed
    finish_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    streamed: StreamResult | None = None
    thinks: bool | None = None
    calls_tools: bool | None = None
    spent: int = 0  # completion tokens of all requests, for the server's counters
    generated_before: float | None = None

    def body(self, key: str = KEY, number: str = NUMBER, **more: Any) -> dict[str, Any]:
        """A request that any model can answer."""
        content = _QUESTION.format(key=key, number=number)
        return {
            "model": self.endpoint.model,
            "messages": [{"role": "user", "content": content}],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        } | more

    async def get(self, url: str, body: Any = None, *, raw: bytes | None = None) -> Reply:
        return await call(self.session, self.endpoint, url, body, raw=raw, timeout_s=self.timeout_s)

    async def chat(self, **more: Any) -> Reply:
        """One chat completion, not streamed."""
        reply = await self.get(self.endpoint.base_url + "/chat/completions", self.body(**more))
        if reply.ok and isinstance(reply.document, dict):
            self.spent += (reply.document.get("usage") or {}).get("completion_tokens") or 0
        return reply

    async def stream(self, **more: Any) -> StreamResult:
        """One chat completion, streamed."""
        result = await stream_chat(
            self.session, self.endpoint, self.body(**more), stall_s=self.timeout_s, total_s=self.timeout_s
        )
        self.spent += result.completion_tokens or 0
        return result


def choice_of(reply: Reply) -> tuple[dict[str, Any], str | None]:
    """Message and finish_reason of a chat completion.

    Raises:
        Verdict: the answer is none.
    """
    if not reply.ok:
        raise failed(reply.message, "read the server's log", "")
    try:
        choice = reply.document["choices"][0]
        return dict(choice["message"]), choice.get("finish_reason")
    except (TypeError, KeyError, IndexError):
        raise failed(f"not a chat completion: {reply.text[:200]}", "is this an OpenAI-compatible server?") from None


def reasoning_of(message: dict[str, Any]) -> str:
    """Thoughts of a message: `reasoning_content`, or `reasoning` as vLLM spells it."""
    return str(message.get("reasoning_content") or message.get("reasoning") or "")
