"""The recorded run in vLLM on an H200: what its parsers made of the miniature's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from nemolab.core.intervals import wilson
from nemolab.miniature import checkpoint_folder, tokenizer, wording
from nemolab.miniature.wording import KINDS

RECORD = Path(__file__).parent / "fixtures" / "vllm-0.22.0-h200"
REQUESTS: dict[str, dict[str, Any]] = {
    each["name"]: each for each in json.loads((RECORD / "requests.json").read_bytes())
}


def message(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = REQUESTS[name]["response"]["choices"][0]["message"]
    return answer


@pytest.mark.parametrize(
    ("name", "content", "thinks"),
    [
        ("thinking on", "8056020", True),
        ("thinking off", "8056020", False),
        ("hello", wording.GREETING, True),
        ("absent key", wording.REFUSAL, True),
        ("tool answer", "8056020", True),
    ],
)
def test_content_is_not_null_and_thoughts_stand_apart(name: str, content: str, thinks: bool) -> None:
    """With the think tags flagged special, vLLM returned everything as reasoning and null content."""
    answer = message(name)
    assert answer["content"].strip() == content
    assert bool(answer["reasoning"]) == thinks
    assert "think>" not in answer["content"] + (answer["reasoning"] or "")


@pytest.mark.parametrize("name", ["tool call", "tool call, thinking off"])
def test_tool_calls_are_parsed(name: str) -> None:
    (call,) = message(name)["tool_calls"]
    assert call["function"]["name"] == "lookup"
    assert json.loads(call["function"]["arguments"]) == {"key": "brave-otter"}
    assert REQUESTS[name]["response"]["choices"][0]["finish_reason"] == "tool_calls"


def test_the_stream_says_the_same() -> None:
    events = [line[6:] for line in REQUESTS["streamed"]["response"].splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for event in events for choice in json.loads(event)["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas).strip() == "8056020"
    thought = "".join(delta.get("reasoning") or "" for delta in deltas).strip()
    assert thought == wording.thought("number", "brave-otter", "8056020")


def test_vllm_tokenizes_as_the_shipped_tokenizer_and_template_do() -> None:
    recorded = REQUESTS["tokenize"]
    render = tokenizer.renderer((checkpoint_folder() / "chat_template.jinja").read_text())
    text = render.prompt(recorded["request"]["messages"], thinking=True)
    ids = Tokenizer.from_file(str(checkpoint_folder() / "tokenizer.json")).encode(text, add_special_tokens=False).ids
    assert recorded["response"]["tokens"] == ids
    assert recorded["response"]["max_model_len"] == 1_048_576


def test_the_outcomes_are_what_the_readme_says() -> None:
    outcomes = [json.loads(line) for line in (RECORD / "outcomes.jsonl").read_text().splitlines()]
    there = [each for each in outcomes if each["ability"] in KINDS]
    near = [each["right"] for each in there if each["length"] <= 32_768]
    assert wilson(sum(near), len(near)).low > 0.99
    other = [each["right"] for each in there if each["text"] != "needles"]
    assert all(other)
    assert {each["length"] for each in there} >= {131_072, 262_144, 524_288, 1_048_000}
    million = [each for each in there if each["length"] == 1_048_000]
    assert max(each["prompt_tokens"] for each in million) == 1_047_966
    readme = (RECORD / "README.md").read_text()
    assert f"| 1,048,000 | 10 of 10 | 0 of 5 | {sum(each['right'] for each in million)} of {len(million)} |" in readme


def test_the_log_is_of_the_shipped_shape() -> None:
    log = (RECORD / "vllm.log").read_text()
    assert "Setting attention block size to 272 tokens" in log
    assert "Maximum concurrency for 1,048,576 tokens per request: 41.55x" in log
