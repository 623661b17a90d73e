"""Asking one server what a price needs: at each length first token cold and again, decode steps, and the answers.

Four requests a length, one needle prompt:

- cold: nothing of it in a cache; its first tokens with their logprobs.
- again: the same prompt with `decode_tokens` tokens to come, end of text ignored and no logprobs, which cost time.
- warm: the same once more with logprobs, where the second came from a cache.
- beside: the same, computed anew while another request of another text runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nemolab.client.collect import StreamResult
from nemolab.client.endpoint import Endpoint
from nemolab.client.prometheus import Metrics, scrape
from nemolab.client.session import open_session
from nemolab.client.stream import stream_chat
from nemolab.core.errors import NemolabError
from nemolab.longctx.arms_clock import first_token, hits, spent
from nemolab.longctx.arms_rows import CACHED, Asked, Clock, How, Point, Questions, Said
from nemolab.longctx.build import Builder, Prompt
from nemolab.longctx.calibrate import calibrate
from nemolab.longctx.request import alive, cold
from nemolab.longctx.rows import Suite
from nemolab.longctx.suite import sample
from nemolab.longctx.timeouts import Prefill

if TYPE_CHECKING:
    import aiohttp

Tell = Callable[[float, str], None]
TASK = "niah_single_2"
PROBE_TOKENS = 8  # compared between arms
WARM_UP = 2048  # tokens; kernels are compiled for the first requests of an engine
_SHORT = 65_536  # the shortest length is asked once before it is timed, if it is no longer than this
_TOP = 5  # logprobs at each place
_START_S = 900.0  # for a first request, which waits for kernels to be compiled
_STALL_S = 300.0
_COMPANY = 8192  # tokens that the other request may generate meanwhile
_AHEAD_S = 0.1  # that it is sent before
_SCRAPE_S = 30.0  # a server is slow to answer while it cuts a long text into tokens
_EXTRA = {"chat_template_kwargs": {"enable_thinking": False}}


async def ask(endpoint: Endpoint, builder: Builder, questions: Questions, tell: Tell) -> Asked:
    """Ask every length that fits the time.

    Raises:
        UsageError: a length too short for a needle.
        NemolabError: the server does not answer, or counts other tokens than the builder.
    """
    async with open_session(endpoint) as session:
        overhead = await calibrate(session, endpoint, builder.counter, _EXTRA, _START_S)
        return await _Round(session, endpoint, builder, questions, overhead, tell).all()


class _Failed(Exception):
    """A request without an answer, in words."""


@dataclass
class _Round:
    session: aiohttp.ClientSession
    endpoint: Endpoint
    builder: Builder
    questions: Questions
    overhead: int
    tell: Tell
    _prefill: Prefill = field(default_factory=Prefill)
    _last: tuple[int, float] | None = None
    _began: float = 0.0
    _notes: list[str] = field(default_factory=list)

    async def all(self) -> Asked:
        points: list[Point] = []
        failure = ""
        try:
            await self._warm_up()
            self._began = time.monotonic()
            for number, tokens in enumerate(self.questions.lengths):
                self.tell(number, f"{tokens:,} tokens")
                if points and not self._fits(self._expected(tokens), f"{tokens:,} tokens"):
                    break
                points.append(Point(tokens))
                async for point in self._length(tokens):
                    points[-1] = point
        except _Failed as error:
            failure = str(error)
            points = [point for point in points if point.cold_s is not None]
        self.tell(len(self.questions.lengths), "done")
        return Asked(self.overhead, tuple(points), tuple(self._notes), failure)

    async def _warm_up(self) -> None:
        """Other texts, before the clock starts: kernels are compiled for the first requests."""
        shortest = self.questions.lengths[0]
        lengths = sorted({min(WARM_UP, shortest), shortest} if shortest <= _SHORT else {WARM_UP})
        for tokens in lengths:
            self.tell(0, f"warm-up, {tokens:,} tokens")
            prompt = self._prompt(tokens, "warm-up")
            await self._send(prompt, self._logprobs(), _START_S)
            await self._send(prompt, self._decode(), _START_S)
        sizes = " and ".join(f"{tokens:,}" for tokens in lengths)
        self._notes.append(
            f"Warm-up requests of {sizes} tokens came first: kernels compiled there are not in the times."
        )

    async def _length(self, tokens: int) -> AsyncIterator[Point]:
        """The point of one length, again after each request that adds to it."""
        prompt = self._prompt(tokens, "asked")
        salt = {} if self.questions.fresh else cold(f"cold {time.time_ns()}")
        again = {name: value for name, value in salt.items() if name != "cache_prompt"}
        before = await self._metrics()
        got = await self._send(prompt, self._logprobs() | salt)
        engine = spent(before, await self._metrics(), "prefill")
        seconds = first_token(got)
        self._prefill.saw(tokens, seconds)
        self._last = (tokens, seconds)
        point = Point(tokens, got.prompt_tokens, seconds, engine, said=(_said("cold", got),))
        if got.prompt_tokens != tokens:
            self._notes.append(f"{tokens:,} tokens were built, the server counted {got.prompt_tokens}.")
        if got.cached_tokens and got.cached_tokens > CACHED * tokens:
            self._notes.append(f"{tokens:,} tokens: {got.cached_tokens:,} were cached already: its cold time is none.")
        yield point
        if not self._fits(seconds, f"{tokens:,} tokens, asked again"):
            return
        point = await self._again(prompt, point, again)
        yield point
        if not self.questions.probe:
            return
        if point.warm:
            got = await self._send(prompt, self._logprobs() | again)
            point = replace(point, said=(*point.said, _said("warm", got)))
            yield point
        if self._fits(point.cold_s or 0.0, f"{tokens:,} tokens beside another"):
            yield await self._beside(prompt, point)

    async def _again(self, prompt: Prompt, point: Point, salt: dict[str, Any]) -> Point:
        """The same prompt, and a row of decode steps."""
        before = await self._metrics()
        got = await self._send(prompt, self._decode() | salt)
        after = await self._metrics()
        decode = spent(before, after, "decode")
        steps = (got.completion_tokens or 0) - 1
        step = decode / steps if decode and steps > 0 else got.tpot_s or None  # a starved client reads all at once: 0
        by: Clock = "" if step is None else "engine" if decode and steps > 0 else "client"
        text = got.reasoning + got.content
        return replace(
            point,
            again_s=first_token(got),
            cached=got.cached_tokens if got.cached_tokens is not None else hits(before, after),
            decode_ms=None if step is None else step * 1000,
            decode_by=by,
            found=all(value in text for value in prompt.question.expected),
        )

    async def _beside(self, prompt: Prompt, point: Point) -> Point:
        """The prompt computed anew, while another request is decoded in the same steps, from first to last."""
        salt = f"{point.tokens} {time.time_ns()}"
        short = min(WARM_UP, point.tokens)
        other = self._prompt(short, "other")
        room = self.questions.context - short - 1 if self.questions.context else _COMPANY
        going_on = {"max_tokens": max(1, min(_COMPANY, room)), "ignore_eos": True}
        limit = self._prefill.limit_s(prompt.tokens)
        company = asyncio.ensure_future(self._send(other, going_on | cold(f"other {salt}"), limit))
        try:
            await asyncio.sleep(_AHEAD_S)
            got = await self._send(prompt, self._logprobs() | cold(f"beside {salt}"))
        finally:
            ended = company.done()
            company.cancel()
            with contextlib.suppress(asyncio.CancelledError, _Failed):
                await company
        if ended:
            self._notes.append(f"{point.tokens:,} tokens beside another: the other request ended before.")
        return replace(point, beside_s=first_token(got), said=(*point.said, _said("beside another", got)))

    async def _send(self, prompt: Prompt, extra: dict[str, Any], total_s: float | None = None) -> StreamResult:
        body = {"messages": [{"role": "user", "content": prompt.text}], "temperature": 0} | _EXTRA | extra
        limit = total_s or self._prefill.limit_s(prompt.tokens)
        got = await stream_chat(self.session, self.endpoint, body, stall_s=_STALL_S, total_s=limit)
        if not got.ok:
            gone = "" if await alive(self.session, self.endpoint) else "; the server does not answer any more"
            raise _Failed(f"{prompt.tokens + self.overhead:,} tokens: {got.error_class}: {got.error}{gone}")
        if got.ttft_s is None and got.first_byte_s is None:
            raise _Failed(f"{prompt.tokens + self.overhead:,} tokens: an answer without a token")
        return got

    def _prompt(self, tokens: int, which: str) -> Prompt:
        """A needle prompt of `tokens` with the template; another text for every use and length."""
        seed = self.questions.seed * 3 + ("asked", "warm-up", "other").index(which)
        suite = Suite((TASK,), (tokens,), haystacks=1, questions=1, seed=seed, controls=False)
        return self.builder.build(sample(suite, TASK, tokens, 0), tokens - self.overhead)[0]

    def _logprobs(self) -> dict[str, Any]:
        return {"max_tokens": PROBE_TOKENS, "logprobs": True, "top_logprobs": _TOP}

    def _decode(self) -> dict[str, Any]:
        return {"max_tokens": self.questions.decode_tokens, "ignore_eos": True}

    def _expected(self, tokens: int) -> float:
        """Seconds to the first token of a longer prompt, from the last one and the roofline's growth."""
        if self._last is None:
            return 0.0
        known, seconds = self._last
        at = {bound.tokens: bound.bound_s for bound in self.questions.bounds}
        if tokens in at and known in at:
            return seconds * at[tokens] / at[known]
        return seconds * math.pow(tokens / known, 1.5)

    def _fits(self, seconds: float, what: str) -> bool:
        """Whether that long a request fits the time that is left; says so where it does not."""
        left = self.questions.max_s - (time.monotonic() - self._began)
        if not self.questions.max_s or seconds <= left:
            return True
        self._notes.append(
            f"{what}: not asked, it would take about {seconds:.0f} s and {max(0.0, left):.0f} s were left."
        )
        return False

    async def _metrics(self) -> Metrics | None:
        try:
            return await asyncio.to_thread(scrape, self.endpoint, timeout_s=_SCRAPE_S)
        except NemolabError:
            return None


def _said(how: How, got: StreamResult) -> Said:
    return Said(how, got.reasoning + got.content, got.tokens[:PROBE_TOKENS])
