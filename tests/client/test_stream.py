"""Streams against a small real HTTP server: what a request is counted as, and what its times mean."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from nemolab.client import Endpoint
from nemolab.client.stream import ErrorClass, StreamResult, stream_chat

Send = Callable[[web.StreamResponse], Awaitable[None]]


def delta(finish: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def usage(completion: int, prompt: int = 7) -> bytes:
    body = {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


ROLE = delta(role="assistant", content=None)
DONE = b"data: [DONE]\n\n"


@contextlib.asynccontextmanager
async def serving(send: Send, seen: list[dict[str, Any]] | None = None) -> AsyncIterator[Endpoint]:
    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if seen is not None:
            seen.append({"path": request.path, "body": body, "headers": dict(request.headers)})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await send(response)
        return response

    app = web.Application()
    app.router.add_post("/v1/{tail:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield Endpoint(base_url=f"http://127.0.0.1:{port}/v1", model="m")
    finally:
        await runner.cleanup()


def stream(
    send: Send,
    body: dict[str, Any] | None = None,
    seen: list[dict[str, Any]] | None = None,
    stall_s: float = 5,
    total_s: float = 20,
) -> StreamResult:
    async def go() -> StreamResult:
        async with serving(send, seen) as endpoint, aiohttp.ClientSession() as session:
            return await stream_chat(session, endpoint, body or {"messages": []}, stall_s=stall_s, total_s=total_s)

    return asyncio.run(go())


async def pieces(response: web.StreamResponse, *parts: bytes, pause: float = 0.0) -> None:
    for part in parts:
        await response.write(part)
        await asyncio.sleep(pause)


def test_times_of_each_kind_of_token() -> None:
    async def send(response: web.StreamResponse) -> None:
        await pieces(response, ROLE, pause=0.05)
        await pieces(response, delta(reasoning_content="so "), delta(reasoning="it is"), pause=0.05)
        await pieces(response, delta(content="forty"), delta(content="-two"), pause=0.05)
        await pieces(response, delta(finish="stop"), usage(4), DONE)

    got = stream(send)
    assert got.ok
    assert (got.reasoning, got.content, got.finish_reason) == ("so it is", "forty-two", "stop")
    assert (got.prompt_tokens, got.completion_tokens, got.chunks) == (7, 4, 4)
    assert got.first_byte_s is not None
    assert got.ttft_s is not None
    assert got.first_content_s is not None
    assert got.last_s is not None
    assert got.first_byte_s < got.ttft_s, "the empty role chunk is no token"
    assert got.ttft_s == got.first_reasoning_s < got.first_content_s < got.last_s <= got.total_s
    assert got.tpot_s == pytest.approx((got.last_s - got.ttft_s) / 3)
    assert len(got.chunk_gaps_s) == 3


def test_four_tokens_a_chunk_leave_tpot_to_usage() -> None:
    async def send(response: web.StreamResponse) -> None:
        await pieces(response, ROLE, *[delta(content="a b c d ")] * 4, pause=0.04)
        await pieces(response, delta(finish="length"), usage(16), DONE)

    got = stream(send)
    assert got.ok
    assert (got.chunks, got.completion_tokens) == (4, 16)
    assert got.tpot_s is not None
    assert got.tpot_s < min(got.chunk_gaps_s) / 2, "15 intervals, not 3"


def test_error_object_inside_a_200_stream_is_an_error() -> None:
    async def send(response: web.StreamResponse) -> None:
        await pieces(response, ROLE, delta(content="x"), b'data: {"error": {"message": "out of blocks"}}\n\n', DONE)

    got = stream(send)
    assert (got.ok, got.error_class, got.status) == (False, ErrorClass.STREAM_ERROR, 200)
    assert got.error == "out of blocks"


def test_error_event_of_llama_cpp_is_an_error() -> None:
    async def send(response: web.StreamResponse) -> None:
        await pieces(response, b'error: {"code": 500}\n\ndata: {"error": {"code": 500, "message": "slot lost"}}\n\n')

    assert stream(send).error == "slot lost"


@pytest.mark.parametrize("abort", [True, False], ids=["connection reset", "closed without [DONE]"])
def test_cut_stream_is_an_error(abort: bool) -> None:
    async def send(response: web.StreamResponse) -> None:
        await pieces(response, ROLE, delta(content="x"), pause=0.02)
        if abort:
            assert response._req is not None
            assert response._req.transport is not None
            response._req.transport.abort()

    got = stream(send)
    assert (got.ok, got.error_class, got.content) == (False, ErrorClass.CUT, "x")


def test_stall_ends_although_keep_alives_come() -> None:
    async def send(response: web.StreamResponse) -> None:
        await pieces(response, ROLE, delta(content="x"))
        with contextlib.suppress(ConnectionError):
            await pieces(response, *[b": ping\n\n"] * 100, pause=0.05)

    got = stream(send, stall_s=0.3, total_s=30)
    assert (got.ok, got.error_class) == (False, ErrorClass.STALL)
    assert got.total_s < 3


def test_long_prefill_is_no_stall_but_has_a_limit() -> None:
    async def late(response: web.StreamResponse) -> None:
        await pieces(response, ROLE)
        await asyncio.sleep(0.5)
        await pieces(response, delta(content="x", finish="stop"), usage(1), DONE)

    assert stream(late, stall_s=0.1).ok
    got = stream(late, stall_s=0.1, total_s=0.2)
    assert (got.ok, got.error_class) == (False, ErrorClass.TIMEOUT)


def test_empty_200_is_an_error() -> None:
    async def send(response: web.StreamResponse) -> None:
        return None

    assert stream(send).error_class == ErrorClass.EMPTY


@pytest.mark.parametrize(
    "payload", [b"{", b"[1]", b'{"choices": [7]}', b'{"choices": 7}', b'{"choices": [{"delta": 7}]}']
)
def test_malformed_event_is_an_error(payload: bytes) -> None:
    async def send(response: web.StreamResponse) -> None:
        await pieces(response, b"data: " + payload + b"\n\n", DONE)

    assert stream(send).error_class == ErrorClass.MALFORMED


def test_http_errors_and_refused_connections() -> None:
    async def go() -> list[StreamResult]:
        app = web.Application()

        async def refuse(request: web.Request) -> web.Response:
            status = int(request.match_info["status"])
            return web.json_response({"error": {"message": f"no {status}"}}, status=status)

        app.router.add_post("/{status}/v1/chat/completions", refuse)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        root = f"http://127.0.0.1:{runner.addresses[0][1]}"
        results = []
        async with aiohttp.ClientSession() as session:
            for status in (400, 503, 302):
                end = Endpoint(base_url=f"{root}/{status}/v1", model="m")
                results.append(await stream_chat(session, end, {}, stall_s=1, total_s=5))
            await runner.cleanup()
            results.append(await stream_chat(session, end, {}, stall_s=1, total_s=5))
        return results

    bad, busy, moved, refused = asyncio.run(go())
    assert (bad.error_class, bad.error) == (ErrorClass.HTTP_4XX, "HTTP 400: no 400")
    assert (busy.error_class, busy.status) == (ErrorClass.HTTP_5XX, 503)
    assert moved.error_class == ErrorClass.HTTP_OTHER
    assert (refused.error_class, refused.status) == (ErrorClass.CONNECT, None)


def test_tool_call_comes_in_parts() -> None:
    async def send(response: web.StreamResponse) -> None:
        first = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}}
        await pieces(
            response, delta(tool_calls=[first]), delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}])
        )
        await pieces(response, delta(tool_calls=[{"index": 0, "function": {"arguments": "}"}}]))
        await pieces(response, delta(finish="tool_calls"), usage(5), DONE)

    got = stream(send)
    assert got.tool_calls == ({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},)
    assert got.ttft_s is not None


def test_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    async def send(response: web.StreamResponse) -> None:
        await pieces(response, b'data: {"choices": [{"text": "x", "finish_reason": "stop"}]}\n\n', usage(1), DONE)

    assert stream(send, {"prompt": [1, 2]}, seen).content == "x"
    assert seen[0]["path"] == "/v1/completions"
    assert seen[0]["body"] == {
        "model": "m", "prompt": [1, 2], "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    assert "Authorization" not in seen[0]["headers"]
    monkeypatch.setenv("SOME_KEY", "k")
    assert Endpoint("http://h/v1", "m", api_key_env="SOME_KEY").headers() == {"Authorization": "Bearer k"}


def test_lag_of_the_client_is_seen() -> None:
    async def send(response: web.StreamResponse) -> None:
        import time

        await pieces(response, ROLE, delta(content="x"), pause=0.03)
        time.sleep(0.25)  # the server shares the client's loop here, so this blocks both
        await pieces(response, delta(content="y", finish="stop"), usage(2), DONE)

    assert stream(send).lag_s > 0.2
