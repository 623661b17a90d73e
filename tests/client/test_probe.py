"""The probe: clean on the real engine with the miniature, and each miswiring found on servers that have it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from nemolab.client import Endpoint
from nemolab.client.attach import attach
from nemolab.client.checks import CHECKS
from nemolab.client.outcome import CheckStatus, ProbeReport, check_rows, sentence
from nemolab.client.params import results_of
from nemolab.client.probe import probe
from nemolab.client.talk import NUMBER
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.finding import Severity

Answer = dict[str, Any]


class Server:
    """A chat server whose behaviour is one function: request body to message, or to an error status."""

    def __init__(self, answer: Callable[[Answer], Answer | int], **routes: Any) -> None:
        self.answer, self.routes, self.url = answer, routes, ""

    async def chat(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await request.json()
            assert isinstance(body["messages"], list)
        except (ValueError, AssertionError):
            return web.json_response({"error": {"message": "bad"}}, status=self.routes.get("bad_status", 400))
        said = self.answer(body)
        if isinstance(said, int):
            return web.json_response({"error": {"message": f"no, {said}"}}, status=said)
        limit = body["max_tokens"] < 4
        reason = "length" if limit else said.pop("finish_reason", "stop")
        count = self.routes.get("counted", min(body["max_tokens"], 9))
        usage = {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 7 + count} if count else None
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": reason}
            return web.json_response({"choices": [choice], "usage": usage})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        said = self.routes.get("streamed", lambda m: m)(said)
        for event in (
            {"choices": [{"delta": said, "finish_reason": None}]},
            {"choices": [{"delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": usage},
        ):
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    async def models(self, request: web.Request) -> web.Response:
        owner = self.routes.get("owner", "someone")
        return web.json_response({"data": [{"id": n, "owned_by": owner} for n in self.routes.get("models", ["m"])]})

    async def health(self, request: web.Request) -> web.Response:
        return web.Response(status=self.routes.get("health", 200))

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "0.22.0"})


@contextmanager
def serving(server: Server) -> Iterator[Endpoint]:
    """The server in a thread of its own, for the client has its own loop."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", server.chat)
        app.router.add_get("/v1/models", server.models)
        app.router.add_get("/health", server.health)
        app.router.add_get("/version", server.version)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.append(runner.addresses[0][1])
        ready.set()
        return runner

    runner = loop.create_task(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    ready.wait(10)
    try:
        yield Endpoint(f"http://127.0.0.1:{ports[0]}/v1", "m")
    finally:
        asyncio.run_coroutine_threadsafe(runner.result().cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def number_of(body: Answer) -> str:
    text = str(body["messages"][0]["content"])
    return next((word.strip(".") for word in text.split() if word.strip(".").isdigit()), "none")


def right(body: Answer) -> Answer:
    """What a server should say."""
    thinking = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
    if body.get("tools"):
        call = {"id": "c", "type": "function", "function": {"name": "lookup", "arguments": '{"key": "wild-crane"}'}}
        return {"content": None, "tool_calls": [{"index": 0, **call}], "finish_reason": "tool_calls"}
    return {"content": number_of(body), **({"reasoning": "The text says so."} if thinking else {})}


def checks(answer: Callable[[Answer], Answer | int] = right, **routes: Any) -> tuple[dict[str, Any], ProbeReport]:
    with serving(Server(answer, **routes)) as endpoint:
        report = probe(endpoint, max_tokens=64, timeout_s=10)
    return {check.name: check for check in report.checks}, report


def test_a_server_that_is_wired_right() -> None:
    by_name, report = checks()
    status = {name: check.status for name, check in by_name.items()}
    skipped_or_unknown = {name for name, value in status.items() if value is not CheckStatus.PASSED}
    assert skipped_or_unknown == {"logprobs", "metrics"}
    assert (status["logprobs"], status["metrics"]) == (CheckStatus.SKIPPED, CheckStatus.WARNING)
    assert (report.passed, report.thinks, report.calls_tools) == (True, True, True)


@pytest.mark.parametrize(
    ("check", "answer", "routes", "words"),
    [
        ("chat", lambda b: {"content": None, "reasoning": f"... {number_of(b)}"}, {}, "swallowed as reasoning"),
        ("chat", lambda b: {"content": f"<think>x</think>{number_of(b)}"}, {}, "tags in the content"),
        ("chat", lambda b: {"content": ""}, {}, "no content"),
        ("chat", lambda b: 500, {}, "no, 500"),
        ("no-thinking", lambda b: right({**b, "chat_template_kwargs": {}}), {}, "although enable_thinking is false"),
        (
            "no-thinking",
            lambda b: right(b) | ({"content": None} if "reasoning" not in right(b) else {}),
            {},
            "no content with thinking off",
        ),
        ("stream", right, {"streamed": lambda m: {"content": "x" + m["content"]}}, "split differently"),
        ("usage", right, {"counted": None}, "no usage"),
        ("max-tokens", right, {"counted": 9}, "9 tokens"),
        ("bad-request", right, {"bad_status": 500}, "bad"),
        ("models", right, {"models": ["other"]}, "'m' is not listed, but other"),
        ("health", right, {"health": 503}, "still loads"),
        (
            "tools",
            lambda b: right(b) if not b.get("tools") else {"content": "<tool_call><function=lookup>"},
            {},
            "stayed in the content",
        ),
        (
            "tools",
            right,
            {"streamed": lambda m: {k: v for k, v in m.items() if k != "tool_calls"}},
            "lost when streamed",
        ),
        ("concurrency", lambda b: right(b) | {"content": f"{NUMBER} 3950218"}, {}, "got the other request's answer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_miswiring_is_found_and_has_a_fix(
    check: str, answer: Callable[[Answer], Answer | int], routes: dict[str, Any], words: str
) -> None:
    by_name, report = checks(answer, **routes)
    found = by_name[check]
    assert found.status is CheckStatus.FAILED
    assert words in found.detail
    assert found.fix
    assert not report.passed
    (finding,) = [f for f in report.findings() if f.code == f"A-{check}"]
    assert finding.severity is Severity.ERROR
    assert finding.fix == found.fix


def test_thinking_that_uses_up_the_room_is_a_warning_and_no_swallowed_answer() -> None:
    by_name, report = checks(lambda b: {"content": None, "reasoning": "hm", "finish_reason": "length"})
    assert by_name["chat"].status is CheckStatus.WARNING
    assert "used up max_tokens (64)" in by_name["chat"].detail
    assert report.count(CheckStatus.WARNING)


def test_what_cannot_be_asked_is_skipped_with_the_reason() -> None:
    def no_kwargs(body: Answer) -> Answer | int:
        return 400 if "chat_template_kwargs" in body or "tools" in body or "logprobs" in body else right(body)

    by_name, report = checks(no_kwargs)
    for name in ("thinking", "no-thinking", "tools", "logprobs"):
        assert by_name[name].status is CheckStatus.SKIPPED
        assert "400" in by_name[name].detail
    assert report.thinks is None


def test_wrong_answer_is_a_warning_for_the_api_works() -> None:
    by_name, _ = checks(lambda b: {"content": "forty-two"})
    assert by_name["chat"].status is CheckStatus.WARNING
    assert "vllm#52308" in by_name["chat"].source


def test_attach_finds_model_and_engine() -> None:
    with serving(Server(right, owner="vllm")) as endpoint:
        found = attach(endpoint.root)
        assert found == Endpoint(endpoint.base_url, "m", "vllm", "0.22.0")
        with pytest.raises(UsageError, match="'x' is not served"):
            attach(endpoint.base_url, "x")
    with serving(Server(right, models=["a", "b"])) as endpoint:
        with pytest.raises(UsageError, match="several models"):
            attach(endpoint.base_url)
        assert attach(endpoint.base_url, "b").model == "b"
    with pytest.raises(NemolabError, match="no OpenAI-compatible server answers"):
        attach(endpoint.base_url)


@pytest.mark.live
def test_the_miniature_on_llama_cpp_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nemolab.engines import llamacpp, process

    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path))
    server = llamacpp.serve(llamacpp.Options(ctx=2048, cache_ram=0))
    told: list[tuple[float, float | None, str | None]] = []
    try:
        assert attach(server.base_url) == Endpoint(server.base_url, "miniature", "llamacpp")
        report = probe(server.endpoint, progress=lambda *at: told.append(at))
    finally:
        process.stop(server)
    status = {check.name: check.status for check in report.checks}
    wanted = dict.fromkeys([check.name for check in CHECKS], CheckStatus.PASSED)
    if report.calls_tools is False:  # what the weights can do is tested with the miniature
        wanted["tools"] = CheckStatus.SKIPPED
    assert status == wanted
    assert NUMBER in report.content
    assert report.reasoning
    values = results_of(report)
    assert (values.failed, values.warnings, values.engine, values.thinks) == (0, 0, "llamacpp", True)
    assert told[0][:2] == (0, len(CHECKS))
    assert told[-1][0] == len(CHECKS)
    assert len(check_rows(report)) == len(CHECKS)
    assert sentence(report).startswith("miniature: ")
