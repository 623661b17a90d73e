"""The same suite by text and by token ids, on the real engine, and servers that cannot take ids."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from miniserver import miniature
from run_notebook import run_notebook

from nemolab.client import Endpoint
from nemolab.core.errors import NemolabError, UsageError
from nemolab.longctx import Counter, Outcome, Row, Suite, run_suite
from nemolab.longctx.calibrate import confirm
from nemolab.longctx.suite import tokenizer_path

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
SUITE = Suite(("niah_multikey_1", "niah_single_3"), (400, 1500), haystacks=1, questions=2)
OFF: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with miniature(tmp_path_factory.mktemp("state"), 2048) as served:
        yield served


@dataclass
class Front:
    """The engine behind another server's routes for tokens: vLLM's, unless told otherwise.

    Attributes:
        tokenize: `/tokenize` takes messages, as vLLM's and SGLang's do; else there is none.
        kwargs: it passes `chat_template_kwargs` on.
        extra_tokens: put in front of what it tells.
        completions: `/v1/completions` is there.
    """

    behind: Endpoint
    tokenize: bool = True
    kwargs: bool = True
    extra_tokens: int = 0
    completions: bool = True
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def tokens(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(("/tokenize", body))
        if not self.tokenize:
            return web.json_response({"detail": "Not Found"}, status=404)
        chat = {"messages": body["messages"]}
        if self.kwargs and "chat_template_kwargs" in body:
            chat["chat_template_kwargs"] = body["chat_template_kwargs"]
        async with aiohttp.ClientSession() as session:
            applied = await (await session.post(f"{self.behind.root}/apply-template", json=chat)).json()
            text = {"content": applied["prompt"], "add_special": True, "parse_special": True}
            told = await (await session.post(f"{self.behind.root}/tokenize", json=text)).json()
        return web.json_response(
            {"count": 0, "max_model_len": 2048, "tokens": [0] * self.extra_tokens + told["tokens"]}
        )

    async def forward(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append((request.path, body))
        if "completions" in request.path and "chat" not in request.path and not self.completions:
            return web.json_response({"detail": "Not Found"}, status=404)
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.behind.root + request.path, json=body) as answer,
        ):
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response


@contextmanager
def serving(front: Front) -> Iterator[Endpoint]:
    """Serve from a thread of its own; the endpoint does not say which engine it is."""
    ready, box = threading.Event(), dict[str, Any]()

    async def main() -> None:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/tokenize", front.tokens)
        app.router.add_post("/v1/chat/completions", front.forward)
        app.router.add_post("/v1/completions", front.forward)
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
        yield Endpoint(f"http://127.0.0.1:{box['port']}/v1", front.behind.model)
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(10)


def said(row: Row) -> tuple[object, ...]:
    """What must not depend on how a prompt was sent."""
    return row.id, row.built, row.counted, row.sha256, row.answer, row.outcome, row.finish_reason, row.completion_tokens


@pytest.mark.parametrize("unnamed", [False, True], ids=["engine known", "engine not known"])
def test_the_same_suite_by_text_and_by_ids_has_the_same_tokens_and_answers(endpoint: Endpoint, unnamed: bool) -> None:
    asked = replace(endpoint, engine="") if unnamed else endpoint
    suite = replace(SUITE, tasks=SUITE.tasks[:1]) if unnamed else SUITE
    text, ids = (run_suite(asked, replace(suite, send=send), "miniature") for send in ("text", "ids"))
    assert [said(row) for row in ids.rows] == [said(row) for row in text.rows]
    assert all(row.counted == row.built for row in ids.rows)
    assert (all(row.by_ids for row in ids.rows), any(row.by_ids for row in text.rows)) == (True, False)
    assert {row.built for row in ids.rows if row.control != "no context"} == {400, 1500}
    assert ids.overhead == text.overhead
    assert sum(row.outcome is Outcome.CORRECT for row in ids.rows) >= 0.8 * len(ids.rows)


def test_nothing_but_ids_is_sent_and_they_are_what_the_chat_would_have(endpoint: Endpoint) -> None:
    suite = Suite(("niah_single_1",), (300,), haystacks=1, questions=1, controls=False, send="ids")
    front = Front(endpoint)
    with serving(front) as behind:
        (row,) = run_suite(behind, suite, "miniature").rows
    assert (row.outcome, row.counted) == (Outcome.CORRECT, 300)
    path, body = front.asked[-1]
    assert path == "/v1/completions"
    assert not {"messages", "chat_template_kwargs"} & set(body)
    counter = Counter(tokenizer_path("miniature"))
    text = counter.text(body["prompt"])
    assert text.startswith("<|im_start|>system\n<|im_end|>\n<|im_start|>user\n")
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n<think></think>")
    counted = confirm(endpoint, text.split("user\n", 1)[1].rsplit("<|im_end|>", 1)[0], OFF)
    assert (counted.tokens, counted.by) == (300, "/tokenize")


@pytest.mark.parametrize("thinking", [True, None])
def test_thoughts_are_taken_off_as_the_engines_parser_takes_them_off(endpoint: Endpoint, thinking: bool | None) -> None:
    suite = Suite(
        ("niah_multikey_1",), (600,), haystacks=1, questions=3, controls=False, thinking=thinking, thinking_tokens=400
    )
    text, ids = (run_suite(endpoint, replace(suite, send=send), "miniature").rows for send in ("text", "ids"))
    assert [said(row) for row in ids] == [said(row) for row in text]
    assert all(row.thought_chars > 0 for row in ids)
    assert not any("think>" in row.answer for row in ids)


def test_thoughts_that_take_the_whole_budget_are_no_answer(endpoint: Endpoint) -> None:
    suite = Suite(("niah_single_1",), (300,), haystacks=1, questions=1, controls=False, thinking=True, send="ids")
    short = replace(suite, thinking_tokens=0, extra_body={"max_tokens": 3})
    (row,) = run_suite(endpoint, short, "miniature").rows
    assert (row.outcome, row.answer) == (Outcome.THINKING_ATE_BUDGET, "")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"tokenize": False}, r"cannot tell the tokens of a message \(/tokenize: HTTP 404: .*apply-template: HTTP 404"),
        ({"kwargs": False}, "begins thoughts, although they are turned off"),  # as long as without them
        ({"extra_tokens": 1}, "tells 16 tokens of a template that adds 15 in its chat"),
        ({"completions": False}, "answers http 4xx: HTTP 404: .* to a prompt of"),
    ],
)
def test_a_server_that_cannot_take_ids_is_refused_before_the_first_question(
    endpoint: Endpoint, fault: dict[str, Any], says: str
) -> None:
    front = Front(endpoint, **fault)
    with serving(front) as behind:
        with pytest.raises(NemolabError, match=says) as raised:
            run_suite(behind, replace(SUITE, send="ids"), "miniature")
        assert "send=text" in str(raised.value)
        assert not any(path == "/v1/completions" and body["max_tokens"] > 1 for path, body in front.asked)
        assert run_suite(behind, Suite(("niah_single_1",), (300,), haystacks=1, questions=1), "miniature").rows


def test_the_server_counts_a_prompt_without_a_prefill_where_it_can(endpoint: Endpoint) -> None:
    text = "One of the special magic numbers for brave-otter is: 9482716."
    front = Front(endpoint)
    with serving(front) as behind:
        told = confirm(behind, text, OFF)
    assert told.by == "/tokenize"
    assert [path for path, _ in front.asked] == ["/tokenize"]
    assert front.asked[0][1]["chat_template_kwargs"] == {"enable_thinking": False}
    front = Front(endpoint, tokenize=False)
    with serving(front) as behind:
        used = confirm(behind, text, OFF)
    assert used.by == "usage"
    assert front.asked[-1][1]["max_tokens"] == 1
    assert told.tokens == used.tokens == Counter(tokenizer_path("miniature")).count(text) + 15


def test_a_journal_of_text_is_not_gone_on_with_by_ids(endpoint: Endpoint, tmp_path: Path) -> None:
    suite = Suite(("niah_single_1",), (300,), haystacks=1, questions=1, controls=False)
    run_suite(endpoint, suite, "miniature", journal=tmp_path / "rows.jsonl")
    with pytest.raises(UsageError, match="another suite"):
        run_suite(endpoint, replace(suite, send="ids"), "miniature", journal=tmp_path / "rows.jsonl")
    with pytest.raises(UsageError, match="cannot send 'tokens'"):
        run_suite(endpoint, replace(suite, send="tokens"), "miniature")  # type: ignore[arg-type]


def test_notebook_51_by_ids_finds_what_it_finds_by_text(endpoint: Endpoint, tmp_path: Path) -> None:
    asked = {"base_url": endpoint.base_url, "model": endpoint.model, "lengths": "600", "haystacks": 1, "budget_s": 0.0}
    by_text, by_ids = (
        run_notebook("51_validate_long_context", tmp_path / send, send=send, **asked).values for send in ("text", "ids")
    )
    same = {name for name in by_text if not name.startswith("ttft")}
    assert {name: by_ids[name] for name in same} == {name: by_text[name] for name in same}
    assert (by_ids["answers"], by_ids["length_error_tokens"], by_ids["not_answered"]) == (8, 0, 0)
