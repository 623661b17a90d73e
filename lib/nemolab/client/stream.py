"""One streamed chat completion, timed exactly and classified honestly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nemolab.client.collect import Collected, ErrorClass, Failed, StreamResult, error_text
from nemolab.client.endpoint import Endpoint
from nemolab.client.lag import watch
from nemolab.client.sse import Events

if TYPE_CHECKING:
    import aiohttp

__all__ = ["ErrorClass", "StreamResult", "error_text", "stream_chat"]


async def stream_chat(
    session: aiohttp.ClientSession, endpoint: Endpoint, body: dict[str, Any], *, stall_s: float, total_s: float
) -> StreamResult:
    """Send one chat completion with streaming and time what comes back. Never raises for what the server does.

    Args:
        session: shared by all requests of a load; its own time-outs are not used.
        body: as for `/v1/chat/completions`, with one choice; `model`, `stream` and `stream_options` are set here.
            A body with `prompt` (text or token ids) goes to `/v1/completions`.
        stall_s: longest silence between two events once the first token has come. Keep-alive comments do not end a
            silence. Before the first token only `total_s` counts: queueing and a long prefill are silent by nature.
        total_s: longest time for the whole request.

    Returns:
        The result; `ok` is false for refused connections, HTTP errors, an error object inside a 200 stream, cut,
        stalled, empty or malformed streams.

    Raises:
        asyncio.CancelledError: the caller cancelled; the connection is closed, so the server frees its slot.
        UsageError: the key that the endpoint names is not set.
    """
    path = "/completions" if "prompt" in body else "/chat/completions"
    send = {"model": endpoint.model} | body | {"stream": True, "stream_options": {"include_usage": True}}
    headers = endpoint.headers()
    with watch() as lag:
        got = Collected(started=time.perf_counter())
        failure: Failed | None = None
        try:
            await _run(session, endpoint.base_url + path, send, headers, got, stall_s, total_s)
        except Failed as error:
            failure = error
    return got.result(failure, lag.max_s)


async def _run(
    session: aiohttp.ClientSession,
    url: str,
    body: dict[str, Any],
    headers: dict[str, str],
    got: Collected,
    stall_s: float,
    total_s: float,
) -> None:
    import aiohttp
    import orjson

    loop = asyncio.get_running_loop()
    deadline = loop.time() + total_s
    try:
        async with asyncio.timeout_at(deadline) as limit:
            async with session.post(
                url,
                data=orjson.dumps(body),
                headers=headers | {"Content-Type": "application/json", "Accept": "text/event-stream"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(30.0, total_s)),
                allow_redirects=False,
            ) as response:
                got.status = response.status
                if response.status != 200:
                    await _refuse(response)
                await _read(response, got, lambda: limit.reschedule(min(deadline, loop.time() + stall_s)))
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise Failed(ErrorClass.CONNECT, str(error)) from None
    except TimeoutError:
        if loop.time() >= deadline:
            raise Failed(ErrorClass.TIMEOUT, f"not finished after {total_s:g} s") from None
        raise Failed(ErrorClass.STALL, f"no token for {stall_s:g} s after {len(got.times)} chunks") from None
    except (aiohttp.ClientError, ConnectionError) as error:
        kind = ErrorClass.CONNECT if got.status is None else ErrorClass.CUT
        raise Failed(kind, f"{type(error).__name__}: {error}") from None


async def _refuse(response: aiohttp.ClientResponse) -> None:
    import orjson

    raw = await response.content.read(65536)
    try:
        text = error_text(orjson.loads(raw))
    except orjson.JSONDecodeError:
        text = raw.decode(errors="replace")
    family = {4: ErrorClass.HTTP_4XX, 5: ErrorClass.HTTP_5XX}.get(response.status // 100, ErrorClass.HTTP_OTHER)
    raise Failed(family, f"HTTP {response.status}: {text}")


async def _read(response: aiohttp.ClientResponse, got: Collected, alive: Callable[[], None]) -> None:
    events = Events()
    closed = False
    while not (got.done or closed):
        piece = await response.content.readany()
        now = time.perf_counter() - got.started
        closed = not piece
        if piece and got.first_byte is None:
            got.first_byte = now
        for payload in events.close() if closed else events.feed(piece):
            got.add(payload, now)
            if got.times:
                alive()
    if not got.events:
        raise Failed(ErrorClass.EMPTY, f"HTTP 200 without an event ({response.content_type})")
    if not got.complete:
        raise Failed(ErrorClass.CUT, f"the stream ended after {len(got.times)} chunks without [DONE]")
