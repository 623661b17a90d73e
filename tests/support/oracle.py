"""A chat server that finds every needle, in front of which faults can be put that no real engine makes on demand.

It counts tokens as the miniature does, keeps one text in a cache, and says so, as llama.cpp does.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tokenizers import Tokenizer

from nemolab.client import Endpoint
from nemolab.miniature import checkpoint_folder, wording

TEMPLATE_TOKENS = 17
_NEEDLE = re.compile(r"One of the special magic (?:number|word|uuid)s for (\S+) is: (\S+)\.")
_ASKED = re.compile(r"for (\S+) mentioned in the provided text\?$")


@dataclass
class Oracle:
    """What it does otherwise than right; by default nothing.

    Attributes:
        truncates_at: longer prompts lose what is beyond, silently.
        swallows: whether answer number n (from 1) comes empty.
        corrupts_beyond: in longer prompts every value has a digit changed.
        stale: answers from the text before, unless told not to use the cache.
        distracts: answers with another key's value.
        cuts_idle_after_s: a proxy's idle time-out; the answer of a long prompt takes `prefill_s_per_1000` s.
        refuses_beyond: longer prompts get HTTP 400 with vLLM's words.
        body_limit: larger bodies get HTTP 413.
        dies_at: number of the request at which it goes away.
        retries: computes every prompt twice, as a proxy that retries makes it.
        says: an answer instead of the right one.
        thinks: thoughts that come before the answer and take the whole budget.
    """

    truncates_at: int | None = None
    swallows: Callable[[int], bool] = lambda number: False
    corrupts_beyond: int | None = None
    stale: bool = False
    distracts: bool = False
    cuts_idle_after_s: float | None = None
    prefill_s_per_1000: float = 0.0
    refuses_beyond: int | None = None
    body_limit: int | None = None
    dies_at: int | None = None
    retries: bool = False
    says: str | None = None
    thinks: bool = False
    template_tokens: int = TEMPLATE_TOKENS
    number: int = 0
    now: int = 0
    most: int = 0
    prompt_tokens: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    die: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(checkpoint_folder() / "tokenizer.json"))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw)
        self.number += 1
        self.bodies.append(body)
        text = body["messages"][0]["content"]
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        tokens = len(encoded.ids) + self.template_tokens
        if self.number == self.dies_at:
            self.die()
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if self.body_limit is not None and len(raw) > self.body_limit:
            return web.json_response({"error": {"message": "Request Entity Too Large"}}, status=413)
        if self.refuses_beyond is not None and tokens > self.refuses_beyond:
            message = f"This model's maximum context length is {self.refuses_beyond} tokens. Please reduce the length."
            return web.json_response({"error": {"message": message}}, status=400)
        if self.truncates_at is not None and tokens > self.truncates_at:
            end = encoded.offsets[self.truncates_at - self.template_tokens][0]
            question = text.rsplit("\n", 1)[1]
            text, tokens = f"{text[:end]}\n{question}", self.truncates_at
        wait = self.prefill_s_per_1000 * tokens / 1000
        if self.cuts_idle_after_s is not None and wait > self.cuts_idle_after_s:
            await asyncio.sleep(self.cuts_idle_after_s)
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(wait)
        self.now -= 1
        self.prompt_tokens += tokens * (2 if self.retries else 1)
        return await self._answer(request, body, self._reply(body, text, tokens), tokens)

    def _reply(self, body: dict[str, Any], text: str, tokens: int) -> str:
        if self.says is not None:
            return self.says
        if not (asked := _ASKED.search(text)):
            return wording.GREETING
        key, facts = asked.group(1), dict(_NEEDLE.findall(text))
        if self.stale and body.get("cache_prompt", True) and facts:
            facts, self.seen = self.seen or facts, facts
            return next(iter(facts.values()))
        if self.distracts:
            facts = {
                name: facts[other] for name, other in zip(facts, [*list(facts)[1:], *list(facts)[:1]], strict=True)
            }
        value = facts.get(key, wording.REFUSAL)
        if self.corrupts_beyond is not None and tokens > self.corrupts_beyond and key in facts:
            value = str((int(value[0]) + 1) % 10) + value[1:]
        return value

    async def _answer(self, request: web.Request, body: dict[str, Any], reply: str, tokens: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def event(value: dict[str, Any]) -> None:
            await response.write(b"data: " + json.dumps(value).encode() + b"\n\n")

        finish = "stop"
        if self.thinks:
            await event({"choices": [{"delta": {"reasoning_content": "So, the text says"}}]})
            reply, finish = "", "length"
        if not self.swallows(self.number):
            if reply:
                await event({"choices": [{"delta": {"content": reply}}]})
            await event({"choices": [{"delta": {}, "finish_reason": finish}]})
            usage = {"prompt_tokens": tokens, "completion_tokens": body["max_tokens"] if self.thinks else 8}
            await event({"choices": [], "usage": usage})
            await response.write(b"data: [DONE]\n\n")
        return response

    async def metrics(self, request: web.Request) -> web.Response:
        """vLLM's count of prompt tokens."""
        name = "vllm:prompt_tokens_total"
        return web.Response(text=f"# TYPE {name} counter\n{name} {self.prompt_tokens}\n")

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "oracle", "object": "model"}]})

    async def health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})


@contextmanager
def serving(oracle: Oracle) -> Iterator[Endpoint]:
    """Serve from a thread of its own, on a free port."""
    ready, box = threading.Event(), dict[str, Any]()

    async def main() -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", oracle.chat)
        app.router.add_get("/v1/models", oracle.models)
        app.router.add_get("/metrics", oracle.metrics)
        app.router.add_get("/health", oracle.health)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        box["port"], box["stop"], box["loop"] = runner.addresses[0][1], asyncio.Event(), asyncio.get_running_loop()
        oracle.die = lambda: box["die"].append(asyncio.ensure_future(site.stop()))
        box["die"] = []
        ready.set()
        await box["stop"].wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield Endpoint(f"http://127.0.0.1:{box['port']}/v1", "oracle")
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(10)
