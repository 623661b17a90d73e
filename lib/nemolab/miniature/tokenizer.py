"""The miniature's tokenizer: byte-level BPE, single digits, built from the training conversations themselves.

`<think>`, `</think>`, `<tool_call>` and `</tool_call>` are single tokens but not *special*: vLLM drops special tokens
from its output, and its `nemotron_v3` reasoning parser then returns everything as reasoning with null content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from nemolab.core.files import write_atomic, write_json
from nemolab.miniature import data, wording

if TYPE_CHECKING:
    import jinja2
    from tokenizers import Tokenizer

SPECIAL = ("<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
# The split of Qwen 2, which llama.cpp knows as "qwen2": one digit a token, a word with the one character before it.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Merges are learnt without the space before a word, so that a word has the same tokens after a space, after a hyphen
# and at the start of an answer: copying is then copying. The words of the sentences themselves get their space back.
SPLIT_TO_LEARN = r"\p{L}+|\p{N}|[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s"
SPACE = "\u0120"  # how byte-level BPE writes the space


def build(template: str, vocab_size: int, seed: int = 0, conversations: int = 4000) -> Tokenizer:
    """The tokenizer, learnt from `conversations` rendered with the chat template; the same arguments, the same one."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    def split(pattern: str) -> pre_tokenizers.PreTokenizer:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level])

    spaced = _sentence_words()
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = split(SPLIT_TO_LEARN)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(spaced),
        special_tokens=[*SPECIAL, *MARKS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train_from_iterator(_corpus(template, seed, conversations), trainer)
    model = json.loads(learner.to_str())["model"]
    vocab: dict[str, int] = model["vocab"]
    merges = [(left, right) for left, right in model["merges"]]
    for word in spaced:
        if word in vocab:
            vocab[SPACE + word] = len(vocab)
            merges.append((SPACE, word))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = split(SPLIT)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in MARKS])
    return tokenizer


def _sentence_words() -> list[str]:
    """Words of the fixed sentences, never of keys and values."""
    sentences = [
        *(*wording.NEEDLES, *wording.QUESTIONS, *wording.INTRODUCTIONS, *wording.NOISE, *wording.SYSTEM),
        *(wording.THOUGHT, wording.NO_THOUGHT, wording.REFUSAL, wording.GREETING, wording.IDENTITY, wording.THANKS),
        *wording.VERBS,
        "numbers words uuids number word uuid there a an and no is Every Near",
    ]
    words = {word for sentence in sentences for word in re.findall(r"(?<![{}\w])[A-Za-z]+(?![}\w])", sentence)}
    return sorted(words - {*wording.ADJECTIVES, *wording.NOUNS})


def _corpus(template: str, seed: int, conversations: int) -> Iterator[str]:
    render, marks = renderer(template), re.compile("|".join(map(re.escape, (*SPECIAL, *MARKS))))
    for index in range(conversations):
        talk = data.conversation(Random(f"{seed}/tokenizer/{index}"), 512, lambda text: len(text) // 3)
        yield from marks.split(render(talk))


class Renderer:
    """The chat template as text, as transformers and the engines apply it."""

    def __init__(self, template: jinja2.Template) -> None:
        self._template = template

    def __call__(self, talk: data.Conversation) -> str:
        return self._template.render(
            messages=talk.messages,
            tools=talk.tools or None,
            add_generation_prompt=False,
            truncate_history_thinking=talk.truncate,
        )

    def prompt(self, messages: list[data.Message], *, thinking: bool, tools: list[dict[str, Any]] | None = None) -> str:
        """The prompt that the model continues."""
        return self._template.render(
            messages=messages, tools=tools, add_generation_prompt=True, enable_thinking=thinking
        )


def renderer(template: str) -> Renderer:
    """The chat template compiled the way transformers compiles it: sandboxed, blocks trimmed."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return Renderer(ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(template))


def save(tokenizer: Tokenizer, template: str, folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json, chat_template.jinja and generation_config.json into `folder`."""
    write_atomic(folder / "tokenizer.json", tokenizer.to_str(pretty=False) + "\n")
    write_atomic(folder / "chat_template.jinja", template)
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<s>",
            "eos_token": "<|im_end|>",
            "pad_token": "<pad>",
            "add_bos_token": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 1_048_576,
        },
    )
    write_json(
        folder / "generation_config.json",
        {"bos_token_id": 1, "eos_token_id": [4, 2], "pad_token_id": 0, "do_sample": False},
    )
