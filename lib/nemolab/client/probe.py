"""Is a server wired right? A list of small checks against its API, each with a status, a reason and a fix."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from nemolab.client.api import Reply, call
from nemolab.client.attach import model_names, recognise
from nemolab.client.endpoint import Endpoint
from nemolab.client.session import open_session
from nemolab.client.stream import StreamResult, stream_chat
from nemolab.core import aio
from nemolab.core.finding import Finding, Severity

if TYPE_CHECKING:
    import aiohttp

# Worded as RULER words it: any model can answer, and the miniature was trained on it.
_QUESTION = (
    "The special magic number for {key} is {number}. "
    "What is the special magic number for {key} mentioned in the provided text?"
)
KEY, NUMBER = "wild-crane", "7421906"


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """One check.

    Attributes:
        name: stable id.
        title: what it asks, for people.
        detail: what came of it, one sentence.
        seconds: how long it took.
        fix: what to do, empty when passed.
        source: document or issue behind the fix.
    """

    name: str
    title: str
    status: CheckStatus
    detail: str
    seconds: float
    fix: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All checks of one server.

    Attributes:
        endpoint: with model, engine and version filled in as far as they were found.
        reasoning, content: what the model said to the first question.
        thinks, calls_tools: whether it was seen to; None if that could not be asked.
        ttft_s, tpot_s, total_s: of the streamed answer. One sample: an impression, no measurement.
    """

    endpoint: Endpoint
    checks: tuple[ProbeCheck, ...]
    reasoning: str
    content: str
    thinks: bool | None
    calls_tools: bool | None
    ttft_s: float | None
    tpot_s: float | None
    total_s: float | None

    def count(self, status: CheckStatus) -> int:
        """How many checks ended so."""
        return sum(check.status == status for check in self.checks)

    @property
    def passed(self) -> bool:
        """No check failed, and the server did answer."""
        return not self.count(CheckStatus.FAILED) and bool(self.count(CheckStatus.PASSED))

    def findings(self) -> list[Finding]:
        """Failures as errors and warnings as warnings."""
        severity = {CheckStatus.FAILED: Severity.ERROR, CheckStatus.WARNING: Severity.WARNING}
        return [
            Finding(f"P-{check.name}", severity[check.status], check.detail, check.fix, check.source, where=check.title)
            for check in self.checks
            if check.status in severity
        ]


def check_rows(report: ProbeReport) -> list[dict[str, object]]:
    """One row a check, in the order in which they were made."""
    return [
        {"check": check.title, "status": str(check.status), "what came of it": check.detail, "took": check.seconds}
        for check in report.checks
    ]


def sentence(report: ProbeReport) -> str:
    """How it ended, in one sentence."""
    parts = [f"{report.count(status)} {status}" for status in CheckStatus if report.count(status)]
    return f"{report.endpoint.model or 'The server'}: {', '.join(parts)}."


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


def probe(
    endpoint: Endpoint,
    *,
    max_tokens: int = 512,
    timeout_s: float = 60.0,
    progress: Callable[[float, float | None, str | None], None] | None = None,
) -> ProbeReport:
    """Make all checks, one after the other.

    Args:
        max_tokens: room for an answer, thoughts included.
        timeout_s: for each request.
        progress: called as `progress(done, total, title)`.
    """
    return aio.run(_probe(endpoint, max_tokens, timeout_s, progress))


async def _probe(
    endpoint: Endpoint,
    max_tokens: int,
    timeout_s: float,
    progress: Callable[[float, float | None, str | None], None] | None,
) -> ProbeReport:
    from nemolab.client.checks import CHECKS

    done: list[ProbeCheck] = []
    async with open_session(endpoint) as session:
        listed = await call(session, endpoint, endpoint.base_url + "/models", timeout_s=timeout_s)
        names = model_names(listed)
        engine, version = await recognise(session, endpoint, listed) if names else ("", "")
        endpoint = replace(
            endpoint,
            model=endpoint.model or (names[0] if names else ""),
            engine=endpoint.engine or engine,
            engine_version=endpoint.engine_version or version,
        )
        talk = Talk(session, endpoint, max_tokens, timeout_s)
        for check in CHECKS:
            if progress:
                progress(len(done), len(CHECKS), check.title)
            began = time.perf_counter()
            status, fix, source = CheckStatus.PASSED, "", ""
            try:
                if not talk.reachable:
                    raise skipped("the server does not answer")
                detail = await check.run(talk)
            except Verdict as verdict:
                status, detail, fix, source = verdict.status, verdict.detail, verdict.fix, verdict.source
            seconds = round(time.perf_counter() - began, 3)
            done.append(ProbeCheck(check.name, check.title, status, detail, seconds, fix, source))
        if progress:
            progress(len(CHECKS), len(CHECKS), "")
    answer, streamed = talk.answer or {}, talk.streamed
    return ProbeReport(
        endpoint=endpoint,
        checks=tuple(done),
        reasoning=reasoning_of(answer),
        content=str(answer.get("content") or ""),
        thinks=talk.thinks,
        calls_tools=talk.calls_tools,
        ttft_s=streamed.ttft_s if streamed else None,
        tpot_s=streamed.tpot_s if streamed else None,
        total_s=streamed.total_s if streamed else None,
    )
