"""A chat server whose timing is known: what a load client reads can be held against it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from nemolab.client import Endpoint


@dataclass
class Known:
    """A server that answers after `ttft_s` with `max_tokens` tokens in two chunks; knows what it was sent."""

    ttft_s: float = 0.05
    tpot_s: float = 0.002
    takes_ignore_eos: bool = True
    fails: Callable[[int], bool] = lambda number: False
    prompts: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    now: int = 0
    most: int = 0

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if "ignore_eos" in body and not self.takes_ignore_eos:
            return web.json_response({"error": {"message": "unknown field ignore_eos"}}, status=400)
        self.bodies.append(body)
        text = body["messages"][0]["content"]
        self.prompts.append(text)
        if self.fails(len(self.prompts)):
            return web.json_response({"error": {"message": "no"}}, status=500)
        self.now += 1
        self.most = max(self.most, self.now)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        tokens = body["max_tokens"]
        await asyncio.sleep(self.ttft_s)
        await self._event(response, {"choices": [{"delta": {"content": "a"}}]})
        await asyncio.sleep(self.tpot_s * (tokens - 1))
        await self._event(response, {"choices": [{"delta": {"content": "b"}, "finish_reason": "length"}]})
        usage = {"prompt_tokens": 7 + 2 * len(text.split()), "completion_tokens": tokens}
        await self._event(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        self.now -= 1
        return response

    @staticmethod
    async def _event(response: web.StreamResponse, value: dict[str, Any]) -> None:
        await response.write(b"data: " + json.dumps(value).encode() + b"\n\n")


@contextmanager
def serving(known: Known) -> Iterator[Endpoint]:
    """Serve `known` from a thread of its own."""
    ready, box = threading.Event(), {}

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", known.chat)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        box["port"] = runner.addresses[0][1]
        box["stop"], box["loop"] = asyncio.Event(), asyncio.get_running_loop()
        ready.set()
        await box["stop"].wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield Endpoint(f"http://127.0.0.1:{box['port']}/v1", "known")
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(10)
