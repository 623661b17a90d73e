"""A small checkpoint of the same architecture that really answers.

`checkpoint_folder()` is what transformers, vLLM and SGLang load; `gguf_path()` is the same weights for llama.cpp.
How to speak to it stands in `nemolab.miniature.wording`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nemolab.miniature import wording
from nemolab.miniature.config import MiniatureConfig
from nemolab.miniature.export import DEFAULT_FILE_TYPE, FileType
from nemolab.miniature.export import gguf_path as _gguf_path


@dataclass(frozen=True, slots=True)
class Card:
    """What a person or a report says about the miniature.

    Attributes:
        parameters: number of weights, embeddings included.
        context: tokens that its config allows.
        needle, question, refusal: how a fact is stated, asked for, and declined when the text does not give it.
    """

    name: str
    parameters: int
    context: int
    needle: str
    question: str
    refusal: str


CARD = Card(
    name="nemolab-miniature",
    parameters=MiniatureConfig().parameters,
    context=MiniatureConfig().max_position_embeddings,
    needle=wording.NEEDLES[0],
    question=wording.QUESTIONS[0],
    refusal=wording.REFUSAL,
)


def checkpoint_folder() -> Path:
    """The checkpoint that ships with the library: config, safetensors, tokenizer and chat template."""
    return Path(__file__).parent / "weights"


def gguf_path(file_type: FileType = DEFAULT_FILE_TYPE) -> Path:
    """The shipped checkpoint as a GGUF in the user's cache; written in about a second when it is not there yet."""
    return _gguf_path(checkpoint_folder(), file_type)


__all__ = ["CARD", "Card", "checkpoint_folder", "gguf_path"]
