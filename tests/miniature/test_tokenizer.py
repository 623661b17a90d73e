"""The tokenizer and the chat template, as files and as they are built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from nemolab.miniature import checkpoint_folder, config, tokenizer, wording

FOLDER = checkpoint_folder()
ASKED = [{"role": "user", "content": "What is the number for brave-otter?"}]
CALL = {"type": "function", "function": {"name": "lookup", "arguments": {"key": "brave-otter"}}}


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
def render() -> tokenizer.Renderer:
    return tokenizer.renderer((FOLDER / "chat_template.jinja").read_text())


def test_marks_are_single_tokens_and_not_special(vocabulary: Tokenizer) -> None:
    added = {token.content: token for token in vocabulary.get_added_tokens_decoder().values()}
    assert [text for text, token in added.items() if token.special] == list(tokenizer.SPECIAL)
    for mark in tokenizer.MARKS:
        assert len(vocabulary.encode(mark).ids) == 1
        assert not added[mark].special
    answer = vocabulary.encode("<think>a</think>b<tool_call>").ids
    assert vocabulary.decode(answer, skip_special_tokens=True) == "<think>a</think>b<tool_call>"


def test_special_tokens_have_the_ids_that_the_config_names(vocabulary: Tokenizer) -> None:
    named = [config.PAD, config.BOS, config.EOS, config.IM_START, config.IM_END]
    assert [vocabulary.token_to_id(text) for text in tokenizer.SPECIAL] == named
    assert config.MiniatureConfig().hf()["eos_token_id"] == vocabulary.token_to_id("<|im_end|>")


def test_one_digit_a_token(vocabulary: Tokenizer) -> None:
    assert vocabulary.encode("8056020").tokens == list("8056020")


@pytest.mark.parametrize("word", [*wording.ADJECTIVES, *wording.NOUNS])
def test_a_word_has_the_same_token_wherever_it_stands(vocabulary: Tokenizer, word: str) -> None:
    (alone,) = vocabulary.encode(word).ids
    assert vocabulary.encode(f" {word}").ids[1:] == [alone]
    assert vocabulary.encode(f"old-{word}").ids[-1] == alone


@pytest.mark.parametrize("text", ["Grüße, 東京! \t\r\n", "x=1;\n\n  y", "🦙 ok", "a" * 300, ""])
def test_any_text_comes_back(vocabulary: Tokenizer, text: str) -> None:
    assert vocabulary.decode(vocabulary.encode(text).ids) == text


def test_building_it_again_gives_the_shipped_file(vocabulary: Tokenizer) -> None:
    built = tokenizer.build((FOLDER / "chat_template.jinja").read_text(), config.MiniatureConfig().vocab_size)
    assert json.loads(built.to_str()) == json.loads(vocabulary.to_str())


def test_thinking_on_is_the_default_and_leaves_the_tag_open(render: tokenizer.Renderer) -> None:
    assert render.prompt(ASKED, thinking=True).endswith("<|im_start|>assistant\n<think>\n")
    assert render.prompt(ASKED, thinking=False).endswith("<|im_start|>assistant\n<think></think>")
    by_default = render._template.render(messages=ASKED, add_generation_prompt=True)
    assert by_default == render.prompt(ASKED, thinking=True)


def test_older_turns_lose_their_thoughts_and_the_current_one_keeps_them(render: tokenizer.Renderer) -> None:
    thought = {"role": "assistant", "content": "1", "reasoning_content": "hm"}
    assert "<think></think>1<|im_end|>" in render.prompt([*ASKED, thought, *ASKED], thinking=True)
    called = {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]}
    kept = render.prompt([*ASKED, called, {"role": "tool", "content": "7"}], thinking=True)
    assert "<think>\nhm\n</think>\n<tool_call>\n<function=lookup>\n<parameter=key>\nbrave-otter\n</parameter>" in kept
    assert "<|im_start|>user\n<tool_response>\n7\n</tool_response>\n<|im_end|>\n" in kept


def test_thoughts_inside_the_content_count_as_thoughts(render: tokenizer.Renderer) -> None:
    inside = {"role": "assistant", "content": "<think>\nhm\n</think>\n1"}
    assert "<think></think>1<|im_end|>" in render.prompt([*ASKED, inside, *ASKED], thinking=True)


def test_tools_stand_in_the_system_turn_after_its_text(render: tokenizer.Renderer) -> None:
    tool = {"name": "lookup", "parameters": {"properties": {"key": {"type": "string"}}}}
    for given in (tool, {"type": "function", "function": tool}):
        text = render.prompt([{"role": "system", "content": "Be brief."}, *ASKED], thinking=True, tools=[given])
        assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools\n")
        assert "<name>lookup</name>" in text
        assert "<name>key</name>\n<type>string</type>" in text
    assert "# Tools" not in render.prompt(ASKED, thinking=True)


def test_every_json_file_of_the_checkpoint_is_strict_json() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for path in sorted(FOLDER.glob("*.json")):
        json.loads(Path(path).read_bytes(), parse_constant=refuse)
    assert json.loads((FOLDER / "config.json").read_bytes())["time_step_limit"] == [0.0, 1e308]
