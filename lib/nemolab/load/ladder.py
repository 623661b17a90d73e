"""The ladder itself: stages of closed or open load against an endpoint, one event loop, raw rows out."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nemolab.client.endpoint import Endpoint
from nemolab.client.session import open_session
from nemolab.client.stream import ErrorClass, StreamResult, stream_chat
from nemolab.core import aio
from nemolab.core.errors import NemolabError
from nemolab.load import prompts
from nemolab.load.plan import Plan, Stage
from nemolab.load.rows import LadderResult, Request, StageRun

if TYPE_CHECKING:
    import aiohttp

Progress = Callable[[int, int, str], None]  # requests done, requests in all, what is running
Snapshot = Callable[[], "dict[str, float]"]  # the server's counters now

_CALIBRATION_WORDS = (8, 64)
_BEFORE_STOPPING = 5  # requests that must have ended before a share of errors means anything


def run_ladder(
    endpoint: Endpoint, plan: Plan, *, progress: Progress | None = None, counters: Snapshot | None = None
) -> LadderResult:
    """Climb the ladder.

    Args:
        endpoint: where to send.
        plan: what to send.
        progress: called after every request, from the load's own thread.
        counters: reads the server's counters; called before and after every stage.

    Raises:
        NemolabError: the server does not answer even one small request.
    """
    return aio.run(_ladder(endpoint, plan, progress or (lambda *_: None), counters or dict))


async def _ladder(endpoint: Endpoint, plan: Plan, progress: Progress, counters: Snapshot) -> LadderResult:
    total = sum(stage.requests for stage in plan.stages)
    runs: list[StageRun] = []
    notes: list[str] = []
    async with open_session(endpoint) as session:
        ruler, ignore_eos = await _calibrate(session, endpoint, plan)
        if not ignore_eos:
            notes.append("The server refused ignore_eos, so outputs end where the model ends them.")
        climb = _Climb(session, endpoint, plan, ruler, ignore_eos)
        await climb.warm_up()
        for number, stage in enumerate(plan.stages):
            before = counters()
            ended = partial(_tell, progress, sum(len(run.requests) for run in runs), total, str(stage))
            run = await climb.stage(number, stage, ended)
            runs.append(_with_counters(run, before, counters()))
            if run.stopped:
                notes.append(f"The ladder ended at {stage}: {run.stopped}.")
                break
    return LadderResult(plan, tuple(runs), ignore_eos, tuple(notes))


def _tell(progress: Progress, before: int, total: int, what: str, done: int) -> None:
    progress(before + done, total, what)


async def _calibrate(session: aiohttp.ClientSession, endpoint: Endpoint, plan: Plan) -> tuple[prompts.Ruler, bool]:
    """Tokens a word on this server, and whether it takes `ignore_eos` (strict OpenAI servers answer 400)."""
    ignore_eos = True
    tokens: list[int | None] = []
    for number, words in enumerate(_CALIBRATION_WORDS):
        text = prompts.prompt(words, f"{plan.seed} calibration {number}")
        got = await _send(session, endpoint, plan, text, ignore_eos, tokens=2)
        if got.error_class is ErrorClass.HTTP_4XX and ignore_eos:
            ignore_eos = False
            got = await _send(session, endpoint, plan, text, ignore_eos, tokens=2)
        if not got.ok:
            raise NemolabError(
                f"the server does not answer a small request: {got.error_class}: {got.error}",
                where=endpoint.base_url,
                fix="run 30_probe_api on it first",
            )
        tokens.append(got.prompt_tokens)
    return prompts.ruler(_CALIBRATION_WORDS, (tokens[0], tokens[1])), ignore_eos


async def _send(
    session: aiohttp.ClientSession, endpoint: Endpoint, plan: Plan, text: str, ignore_eos: bool, tokens: int
) -> StreamResult:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "temperature": 0,
    }
    if ignore_eos:
        body["ignore_eos"] = True  # vLLM, SGLang and llama.cpp know it; TensorRT-LLM too
    return await stream_chat(session, endpoint, body | plan.extra_body, stall_s=plan.stall_s, total_s=plan.total_s)


class _Climb:
    """One climb's fixed parts, so that a stage is only its load."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        endpoint: Endpoint,
        plan: Plan,
        ruler: prompts.Ruler,
        ignore_eos: bool,
    ) -> None:
        self._session, self._endpoint, self._plan = session, endpoint, plan
        self._ignore_eos = ignore_eos
        self._words = ruler.words(plan.prompt_tokens)
        self._shared = ruler.words(round(plan.prompt_tokens * plan.shared_prefix)) if plan.shared_prefix else 0

    async def warm_up(self) -> None:
        """Fill caches and compile kernels at the real size; what comes back is thrown away."""
        for number in range(self._plan.warmup):
            await self._request(f"warm-up {number}", 0.0, 0.0)

    async def stage(self, number: int, stage: Stage, ended: Callable[[int], None]) -> StageRun:
        """Run one stage until its requests are done or too many of them failed."""
        rows: list[Request] = []
        started, cpu = time.perf_counter(), time.process_time()
        stop = asyncio.Event()

        async def one(index: int, due_s: float) -> None:
            rows.append(await self._request(f"{number}.{index}", started, due_s))
            ended(len(rows))
            if _too_many_errors(rows, stage, self._plan.max_error_share):
                stop.set()

        if stage.mode == "closed":
            await self._closed(stage, started, one, stop)
        else:
            await self._open(number, stage, started, one, stop)
        wall = time.perf_counter() - started
        errors = sum(not row.ok for row in rows)
        return StageRun(
            stage,
            tuple(sorted(rows, key=lambda row: (row.sent_s, row.total_s))),
            wall,
            (time.process_time() - cpu) / wall,
            stopped=f"{errors} of {len(rows)} requests failed" if stop.is_set() else "",
        )

    async def _closed(self, stage: Stage, started: float, one: Any, stop: asyncio.Event) -> None:
        queue = iter(range(stage.requests))

        async def stream() -> None:
            for index in queue:
                if stop.is_set():
                    return
                await one(index, time.perf_counter() - started)

        await asyncio.gather(*(stream() for _ in range(int(stage.level))))

    async def _open(self, number: int, stage: Stage, started: float, one: Any, stop: asyncio.Event) -> None:
        rng = random.Random(f"{self._plan.seed} arrivals {number}")
        due = 0.0
        async with asyncio.TaskGroup() as group:
            for index in range(stage.requests):
                await asyncio.sleep(max(0.0, due - (time.perf_counter() - started)))
                if stop.is_set():
                    return
                group.create_task(one(index, due))
                due += rng.expovariate(stage.level) if self._plan.poisson else 1 / stage.level

    async def _request(self, name: str, started: float, due_s: float) -> Request:
        text = prompts.prompt(self._words, f"{self._plan.seed} {name}", self._shared)
        sent_s = time.perf_counter() - started
        got = await _send(self._session, self._endpoint, self._plan, text, self._ignore_eos, self._plan.output_tokens)
        return Request(
            due_s=due_s,
            sent_s=sent_s,
            ok=got.ok,
            total_s=got.total_s,
            ttft_s=got.ttft_s,
            tpot_s=got.tpot_s,
            gap_s=max(got.chunk_gaps_s, default=None),
            lag_s=got.lag_s,
            prompt_tokens=got.prompt_tokens,
            cached_tokens=got.cached_tokens,
            completion_tokens=got.completion_tokens,
            chunks=got.chunks,
            finish_reason=got.finish_reason,
            error_class=got.error_class,
            error=got.error or None,
        )


def _too_many_errors(rows: list[Request], stage: Stage, limit: float) -> bool:
    errors = sum(not row.ok for row in rows)
    return len(rows) >= min(_BEFORE_STOPPING, stage.requests) and errors > limit * stage.requests


def _with_counters(run: StageRun, before: dict[str, float], after: dict[str, float]) -> StageRun:
    moved = {name: after[name] - value for name, value in before.items() if name in after and after[name] != value}
    return replace(run, server=moved)
