"""Is a server wired right? A list of small checks against its API, each with a status, a reason and a fix."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from nemolab.client.api import call
from nemolab.client.attach import model_names, recognise
from nemolab.client.checks import CHECKS
from nemolab.client.endpoint import Endpoint
from nemolab.client.outcome import CheckStatus, ProbeCheck, ProbeReport
from nemolab.client.session import open_session
from nemolab.client.talk import Talk, Verdict, reasoning_of, skipped
from nemolab.core import aio


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
