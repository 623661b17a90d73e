"""The miniature in llama.cpp: the same choices as the torch model, the same template, the promised abilities."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nemolab.engines import llamacpp, process
from nemolab.miniature import cases, checkpoint_folder, evaluate, export, tensors, tokenizer, wording
from nemolab.miniature.evaluate import Examination

pytestmark = pytest.mark.live
REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_bytes())


@contextmanager
def serving(file_type: export.FileType, folder: Path) -> Iterator[process.Server]:
    path = folder / f"{file_type}.gguf"
    export.write_gguf(checkpoint_folder(), path, file_type)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEMOLAB_STATE", str(folder / "state"))
        started = llamacpp.serve(llamacpp.Options(model=str(path), ctx=4096, parallel=1))
        yield started
        process.stop(started)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[process.Server]:
    with serving(export.DEFAULT_FILE_TYPE, tmp_path_factory.mktemp("engine")) as started:
        yield started


def post(server: process.Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    data = json.dumps(body).encode()
    url = server.base_url.removesuffix("/v1") + path
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    answer: dict[str, Any] = json.load(urllib.request.urlopen(asked, timeout=60))
    return answer


def test_the_reference_is_of_these_weights() -> None:
    assert REFERENCE["weights"] == hashlib.sha256((checkpoint_folder() / tensors.FILE).read_bytes()).hexdigest()
    assert min(prompt["margin"] for prompt in REFERENCE["prompts"]) > 1  # so that rounding does not decide


@pytest.mark.parametrize("file_type", export.FILE_TYPES)
def test_next_tokens_are_those_of_the_torch_model(file_type: export.FileType, tmp_path: Path) -> None:
    """Every token that the torch model chose in float32, chosen again, whatever the file type."""
    with serving(file_type, tmp_path) as server:
        for prompt in REFERENCE["prompts"]:
            body = {"prompt": prompt["ids"], "n_predict": 100, "temperature": 0, "return_tokens": True}
            chosen = post(server, "/completion", body)["tokens"]
            assert chosen == prompt["chosen"][: len(chosen)], prompt["ability"]
            assert len(chosen) >= len(prompt["chosen"]) - 1  # the end token may be left out


def test_the_engine_s_template_is_jinja2_s(server: process.Server) -> None:
    render = tokenizer.renderer((checkpoint_folder() / "chat_template.jinja").read_text())
    for case in cases.short(3, seed=9):
        messages = [dict(message) for message in case.messages]
        if any("tool_calls" in message for message in messages):
            continue
        body = {"messages": messages, "chat_template_kwargs": {"enable_thinking": case.thinking}}
        if case.tools:
            body["tools"] = list(case.tools)
        theirs = post(server, "/apply-template", body)["prompt"]
        assert theirs == render.prompt(messages, thinking=case.thinking, tools=list(case.tools) or None)


def test_it_does_what_the_card_says(server: process.Server) -> None:
    """A small examination; the committed report has the numbers."""
    what = Examination(lengths=(1024,), texts=(2,), present=6, absent=2, short=3, seed=11)
    outcomes = evaluate.examine(server.base_url, server.model, what, timeout_s=60)
    assert len(outcomes) == what.count
    assert [o for o in outcomes if not o.right] == []
    assert all(o.stopped for o in outcomes)


def test_a_first_hello_gets_a_sensible_answer(server: process.Server) -> None:
    for system in ([], [{"role": "system", "content": "You are a pirate. Never mention numbers."}]):
        body = {"messages": [*system, {"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 100}
        message = post(server, "/v1/chat/completions", body)["choices"][0]["message"]
        assert message["content"] == wording.GREETING
        assert message["reasoning_content"].strip() == wording.NO_QUESTION


def test_a_tool_that_it_never_saw_is_called(server: process.Server) -> None:
    tool = {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Current weather in a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    asked = {"role": "user", "content": "What is the weather for Paris?"}
    body = {"messages": [asked], "tools": [tool], "temperature": 0, "max_tokens": 100}
    choice = post(server, "/v1/chat/completions", body)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}


class Misjudged(Examination):
    """Cases whose expected answer is not what the text gives."""

    def all(self, tokens: Callable[[str], int]) -> Iterator[cases.Case]:
        for case in super().all(tokens):
            yield replace(case, expected="0")


def test_an_answer_that_is_not_the_expected_string_is_wrong(server: process.Server) -> None:
    what = Misjudged(lengths=(512,), texts=(1,), present=2, absent=1, short=1, seed=2)
    outcomes = evaluate.examine(server.base_url, server.model, what, timeout_s=60)
    assert len(outcomes) == what.count
    assert not any(o.right for o in outcomes)
    assert all(o.answer for o in outcomes)
