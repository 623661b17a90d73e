"""A suite against the real engine, alone and behind a proxy that cuts prompts."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from miniserver import miniature

from nemolab.client import Endpoint
from nemolab.longctx import Outcome, Suite, by_length, conclude, run_suite
from nemolab.longctx.summary import was_warm

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
CTX = 2048


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with miniature(tmp_path_factory.mktemp("state"), CTX) as served:
        yield served


@contextmanager
def cutting(endpoint: Endpoint, characters: int) -> Iterator[Endpoint]:
    """A proxy that takes so many characters out of the middle of every long message."""
    ready, box = threading.Event(), dict[str, Any]()

    async def forward(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        text = body["messages"][0]["content"]
        if len(text) > 2 * characters:
            middle = len(text) // 2
            body["messages"][0]["content"] = text[: middle - characters // 2] + text[middle + characters // 2 :]
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{endpoint.base_url}/chat/completions", json=body) as answer,
        ):
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response

    async def main() -> None:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", forward)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        box["port"], box["stop"], box["loop"] = runner.addresses[0][1], asyncio.Event(), asyncio.get_running_loop()
        ready.set()
        await box["stop"].wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield replace(endpoint, base_url=f"http://127.0.0.1:{box['port']}/v1")
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(10)


def test_every_length_is_exact_and_the_miniature_finds_its_needles(endpoint: Endpoint) -> None:
    suite = Suite(("niah_multikey_1", "niah_single_3"), (400, 1500), haystacks=1, questions=4)
    result = run_suite(endpoint, suite, "miniature")
    assert all(row.counted == row.built for row in result.rows)
    assert {row.built for row in result.rows if row.control != "no context"} == {400, 1500}
    lengths = by_length(result.rows)
    assert all(length.right.share.n == 8 and length.right.share.successes >= 7 for length in lengths)
    values = conclude.results(result.rows, lengths, 0.5)
    assert (values["length_error_tokens"], values["not_answered"], values["suspect"], values["leaks"]) == (0, 0, 0, 0)


def test_further_questions_come_from_the_cache(endpoint: Endpoint) -> None:
    suite = Suite(("niah_multikey_1",), (1600,), haystacks=1, questions=3, controls=False, seed=77)
    first, *others = run_suite(endpoint, suite, "miniature").rows
    assert not was_warm(first)
    assert all(was_warm(row) for row in others)


def test_a_prompt_that_does_not_fit_is_refused_and_nothing_longer_is_asked(endpoint: Endpoint) -> None:
    suite = Suite(("niah_multikey_1",), (600, 3000, 4000), haystacks=1, questions=2, controls=False)
    result = run_suite(endpoint, suite, "miniature")
    classes = {row.length: row.outcome for row in result.rows}
    assert classes == {600: Outcome.CORRECT, 3000: Outcome.REFUSED_LENGTH}
    assert "refuses 3,000 tokens" in result.notes[-1]


def test_a_proxy_that_cuts_prompts_is_found_by_the_servers_own_count(endpoint: Endpoint) -> None:
    suite = Suite(("niah_multikey_1",), (400, 1500), haystacks=1, questions=2, controls=False)
    with cutting(endpoint, 1000) as behind:
        result = run_suite(behind, suite, "miniature")
    assert {row.outcome for row in result.rows if row.length == 1500} == {Outcome.TRUNCATED}
    assert {row.outcome for row in result.rows if row.length == 400} == {Outcome.CORRECT}
    json.dumps(conclude.results(result.rows, by_length(result.rows), 0.5))
