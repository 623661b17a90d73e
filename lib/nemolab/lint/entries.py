"""Which words start a server: commands, modules, and images whose own entry point is one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nemolab.lint.launch import Word, image_engine

# `python -m MODULE` -> engine and entry.
MODULES = {
    "vllm.entrypoints.openai.api_server": ("vllm", "vllm.entrypoints.openai.api_server"),
    "vllm.entrypoints.api_server": ("vllm", "vllm.entrypoints.api_server"),
    "vllm.entrypoints.cli.main": ("vllm", "vllm"),
    "sglang.launch_server": ("sglang", "sglang.launch_server"),
    "dynamo.vllm": ("dynamo", "dynamo.vllm"),
    "dynamo.sglang": ("dynamo", "dynamo.sglang"),
    "dynamo.trtllm": ("dynamo", "dynamo.trtllm"),
}


def image_entry(image: str) -> tuple[str, str] | None:
    """Engine and entry of images whose own entry point is the server."""
    engine, _ = image_engine(image)
    if engine == "vllm" and "vllm/vllm-openai" in image:
        return "vllm", "vllm serve"
    if engine == "nim":
        return "nim", "nim"
    return None


def entry_of(words: Sequence[Word]) -> tuple[str, str, Sequence[Word]] | None:
    """Engine, entry and arguments, when the words start a server."""
    if not words:
        return None
    name = words[0].text.rsplit("/", 1)[-1]
    text = [word.text for word in words[:6]]
    if name == "vllm" and len(words) > 1:
        return ("vllm", "vllm serve", words[2:]) if text[1] == "serve" else None
    if name == "sglang" and len(words) > 1:
        return "sglang", f"sglang {text[1]}", words[2:]
    if name == "trtllm-serve":
        return ("trtllm", "trtllm-serve", words[2:] if len(words) > 1 and text[1] == "serve" else words[1:])
    if name in ("trtllm-build", "trtllm-server"):
        return "trtllm", name, words[1:]
    if name in ("llama-server", "llama-server.exe"):
        return "llamacpp", "llama-server", words[1:]
    if re.fullmatch(r"python(3(\.\d+)?)?|torchrun", name):
        for index in range(1, min(len(words), 6)):
            if words[index].text == "-m" and index + 1 < len(words):
                module = words[index + 1].text
                if module in MODULES:
                    engine, entry = MODULES[module]
                    rest = words[index + 2 :]
                    if entry == "vllm":
                        return (engine, "vllm serve", rest[1:]) if rest and rest[0].text == "serve" else None
                    return engine, entry, rest
                return None
            if not words[index].text.startswith("-"):
                return None
    return None
