"""One request of a suite: sent once, watched, scored and classed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nemolab.client.endpoint import Endpoint
from nemolab.client.prometheus import scrape
from nemolab.client.stream import StreamResult, stream_chat
from nemolab.core.errors import NemolabError
from nemolab.longctx.build import Prompt
from nemolab.longctx.failures import SUSPECT, TRANSPORT, Outcome, Seen, Verdict, classify
from nemolab.longctx.ids import Frame
from nemolab.longctx.rows import Row, Suite
from nemolab.longctx.sample import Question
from nemolab.longctx.scoring import score
from nemolab.longctx.timeouts import Prefill

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True, slots=True)
class Ask:
    """One prompt to send; fields as in `Row`."""

    id: str
    task: str
    length: int
    seed: int
    number: int
    prompt: Prompt
    question: Question
    warm: bool


class Asker:
    """Sends prompts to one server and learns how long they take.

    Args:
        overhead: tokens that the server's template adds.
        extra: merged into every request.
        frame: makes ids of prompts where the suite sends ids; None where it sends text.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        endpoint: Endpoint,
        suite: Suite,
        overhead: int,
        extra: dict[str, Any],
        frame: Frame | None = None,
    ) -> None:
        self._session, self._endpoint, self._suite = session, endpoint, suite
        self._overhead, self._extra, self._frame = overhead, extra, frame
        self._prefill = Prefill()
        self._counts = suite.together == 1  # side by side, the server's count cannot be told apart

    async def row(self, ask: Ask, *, recheck: bool) -> tuple[Row, bool]:
        """Ask, and say whether it was asked a second time.

        Args:
            recheck: ask a wrong answer's prompt again without the cache: if that is right, the cache is suspect. The
                first answer is the one that counts.
        """
        before = await self._prompt_tokens()
        got = await self._send(ask, cold(ask.id) if self._suite.cold else {})
        after = await self._prompt_tokens() if before is not None else None
        if got.ok and got.ttft_s and not ask.warm:
            self._prefill.saw(ask.prompt.tokens, got.ttft_s)
        seen = Seen(
            got,
            ask.question,
            score(ask.question, got.content) if got.ok else None,
            ask.prompt.tokens + self._overhead,
            ask.prompt.text if ask.question.control != "no context" else "",
            alive=None if got.ok else await alive(self._session, self._endpoint),
            prefills=_prefills(before, after, got.prompt_tokens),
        )
        verdict = classify(seen)
        doubtful = not ask.question.control and verdict.outcome not in TRANSPORT | SUSPECT | {Outcome.CORRECT}
        if recheck and doubtful:
            again = await self._send(ask, cold(f"again {ask.id}"))
            verdict = classify(replace(seen, cold=again.ok and score(ask.question, again.content).correct))
        return _row(ask, seen, verdict, by_ids=self._frame is not None), recheck and doubtful

    async def _send(self, ask: Ask, extra: dict[str, Any]) -> StreamResult:
        text, frame = ask.prompt.text, self._frame
        if frame is None:
            prompt = {"messages": [{"role": "user", "content": text}]} | self._extra
        else:  # a million tokens take seconds, during which other answers may be streaming in
            prompt = await asyncio.to_thread(frame.body, text, self._extra)
        body = {"max_tokens": ask.question.max_tokens + self._suite.thinking_tokens, "temperature": 0}
        got = await stream_chat(
            self._session,
            self._endpoint,
            body | prompt | extra,
            stall_s=self._suite.stall_s,
            total_s=self._prefill.limit_s(ask.prompt.tokens),
        )
        return got if frame is None else frame.read(got)

    async def _prompt_tokens(self) -> float | None:
        """The server's count of prompt tokens so far; None, from then on without asking, where it has none."""
        if self._counts:
            try:
                metrics = await asyncio.to_thread(scrape, self._endpoint)
            except NemolabError:
                metrics = None
            if metrics is not None and metrics.prompt_tokens is not None:
                return metrics.prompt_tokens
            self._counts = False
        return None


async def alive(session: aiohttp.ClientSession, endpoint: Endpoint) -> bool:
    """Whether anything answers at the server's address."""
    import aiohttp

    url, wait = endpoint.root + "/health", aiohttp.ClientTimeout(total=10)
    try:
        async with session.get(url, headers=endpoint.headers(), timeout=wait) as response:
            return response.status < 500 or response.status == 503
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def cold(salt: str) -> dict[str, Any]:
    """Options that keep a request from the prefix cache: llama.cpp knows the first, vLLM and SGLang the second, and
    each passes over the other's."""
    return {"cache_prompt": False, "cache_salt": salt}


def _prefills(before: float | None, after: float | None, counted: int | None) -> int | None:
    """How often the server took in a prompt of `counted` tokens; None where other requests are in its count."""
    if before is None or after is None or not counted:
        return None
    times = (after - before) / counted
    return round(times) if abs(times - round(times)) < 0.01 else None


def _row(ask: Ask, seen: Seen, verdict: Verdict, *, by_ids: bool) -> Row:
    got, found = seen.result, seen.score
    depth, offset = _place(ask)
    return Row(
        id=ask.id,
        task=ask.task,
        length=ask.length,
        seed=ask.seed,
        question=ask.number,
        control=ask.question.control,
        built=seen.built,
        counted=got.prompt_tokens,
        cached=got.cached_tokens,
        warm=ask.warm,
        depth=depth,
        offset=offset,
        sha256=ask.prompt.sha256,
        expected=ask.question.expected,
        given=found.given if found else (),
        answer=got.content[:500],
        outcome=verdict.outcome,
        why=verdict.why[:300],
        correct=verdict.outcome is Outcome.CORRECT,
        precision=found.precision if found else 0.0,
        recall=found.recall if found else 0.0,
        ruler=found.ruler if found else 0.0,
        finish_reason=got.finish_reason,
        ttft_s=got.ttft_s,
        total_s=got.total_s,
        thought_chars=len(got.reasoning),
        completion_tokens=got.completion_tokens,
        lag_s=got.lag_s,
        by_ids=by_ids,
    )


def _place(ask: Ask) -> tuple[float | None, int | None]:
    """Depth and offset of the needle that the question asks for."""
    wanted = ask.question.depth
    if wanted is None:
        return None, None
    near = min(ask.prompt.needles, key=lambda needle: abs(needle.wanted - wanted))
    return near.depth, near.offset
