"""vLLM's place taken by a server that says what it is told to: its command line, log, API and metrics; no kernels.

Started as vLLM is, `python -m vllm.entrypoints.cli.main serve FOLDER --port N ...`. It finds needles by reading, and
keeps the last prompt in a cache where `--enable-prefix-caching` stands. Faults come by environment:

- FAKE_WRONG_BEYOND=TOKENS: other digits in the answers to longer prompts.
- FAKE_WRONG_WARM=1: other digits in answers from the cache.
- FAKE_DRIFT=NUMBER: logprobs move by it for every octave above 512 tokens.
- FAKE_DIES_BEYOND=TOKENS: ends at a longer prompt, with CUDA's words in the log.
- FAKE_MUTE=1: tokens without a text, so without a chunk, as parts of characters are; but for the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import time
from typing import Any

from aiohttp import web
from oracle import Oracle

_LOG = """\
INFO 11-30 12:00:00 [api_server.py:1] vLLM API server version 0.22.0
INFO 11-30 12:00:01 [core.py:1] Initializing a V1 LLM engine (v0.22.0) with config: model='fake'
INFO 11-30 12:00:02 [gpu_model_runner.py:1] Model loading took 58.92 GiB and 10.0 seconds
INFO 11-30 12:00:03 [gpu_worker.py:1] Available KV cache memory: 64.00 GiB
INFO 11-30 12:00:03 [kv_cache_utils.py:1] GPU KV cache size: 21,600,000 tokens
INFO 11-30 12:00:03 [kv_cache_utils.py:1] Maximum concurrency for 1,048,576 tokens per request: 20.60x
INFO:     Application startup complete.
"""


class Fake(Oracle):
    """The oracle with logprobs, decode steps, a prefix cache and vLLM's clocks."""

    caches = False
    cached = ""
    sums: dict[str, float]

    async def _answer(self, request: web.Request, body: dict[str, Any], reply: str, tokens: int) -> web.StreamResponse:
        if (beyond := _fault("DIES_BEYOND")) and tokens > beyond:
            print("RuntimeError: CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(1)
        began = time.perf_counter()
        text = body["messages"][0]["content"] + body.get("cache_salt", "")
        hit = self.caches and text == self.cached
        self.cached = text
        await asyncio.sleep(0.0 if hit else tokens * 2e-6)
        if (_fault("WRONG_BEYOND") and tokens > _fault("WRONG_BEYOND")) or (_fault("WRONG_WARM") and hit):
            reply = "".join(str(9 - int(c)) if c.isdigit() else c for c in reply)
        shift = _fault("DRIFT") * max(0.0, math.log2(tokens / 512))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        words = (list(reply) + ["!"] * body["max_tokens"])[: body["max_tokens"]]
        first = time.perf_counter()
        role = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
        await response.write(b"data: " + json.dumps(role).encode() + b"\n\n")
        for word in words if not _fault("MUTE") else words[-1:]:
            choice: dict[str, Any] = {"delta": {"content": "" if _fault("MUTE") else word}}
            if body.get("logprobs"):
                top = [{"token": word, "logprob": -0.1 - shift}, {"token": "?", "logprob": -3.0}]
                choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
            await response.write(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
            await asyncio.sleep(0.001)
        for name, spent in (("prefill", first - began), ("decode", time.perf_counter() - first)):
            for part, value in (("sum", spent), ("count", 1)):
                key = f"vllm:request_{name}_time_seconds_{part}"
                self.sums[key] = self.sums.get(key, 0.0) + value
        self.sums["vllm:prefix_cache_hits_total"] = self.sums.get("vllm:prefix_cache_hits_total", 0.0) + hit * tokens
        usage = {"prompt_tokens": tokens, "completion_tokens": len(words)}
        for event in ({"choices": [{"delta": {}, "finish_reason": "length"}]}, {"choices": [], "usage": usage}):
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    async def metrics(self, request: web.Request) -> web.Response:
        lines = [f"{name} {value}" for name, value in {"vllm:prefix_cache_hits_total": 0, **self.sums}.items()]
        return web.Response(text="\n".join(lines) + "\n")

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "fake", "object": "model", "owned_by": "vllm"}]})


def _fault(name: str) -> float:
    return float(os.environ.get(f"FAKE_{name}", 0))


async def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=False)
    chosen, _ = parser.parse_known_args(sys.argv[1:])
    fake = Fake()
    fake.caches, fake.sums = chosen.enable_prefix_caching, {}
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/chat/completions", fake.chat)
    app.router.add_get("/v1/models", fake.models)
    app.router.add_get("/metrics", fake.metrics)
    app.router.add_get("/health", fake.health)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", chosen.port).start()
    print(_LOG, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
