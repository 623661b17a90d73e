"""Engine versions that a text names beside its launches: pinned installs, and what comments say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from nemolab.lint.launch import Launch, Word, image_engine

_PIN = re.compile(r"(vllm|sglang|tensorrt[-_]llm)(?:\[[^\]]*\])?==([0-9]\w*(?:\.\w+)*)")


def pinned(commands: Iterable[list[Word]]) -> dict[str, str]:
    """Engine versions that `pip install engine==X` (or uv) pins in the same text."""
    pins: dict[str, str] = {}
    for command in commands:
        if any(word.text == "install" for word in command) or command[0].text in ("uvx", "uv"):
            for word in command:
                if match := _PIN.match(word.text):
                    pins[_engine(match)] = match[2]
    return pins


def in_comments(text: str) -> dict[str, str]:
    """Engine versions that comments name, as a pin or by the engine's image; none of an engine with several."""
    found: dict[str, set[str]] = {}
    for comment in re.findall(r"(?m)^[ \t]*#(?!!)(.*)$", text):
        for match in _PIN.finditer(comment):
            found.setdefault(_engine(match), set()).add(match[2])
        for word in comment.split():
            engine, version = image_engine(word.rstrip(".,;:"))
            if engine and version:
                found.setdefault(engine, set()).add(version)
    return {engine: min(versions) for engine, versions in found.items() if len(versions) == 1}


def with_versions(launches: Iterable[Launch], versions: Mapping[str, str]) -> list[Launch]:
    """The launches, with the version of their engine where they say none themselves."""
    return [
        replace(launch, version=versions.get(launch.engine or "")) if launch.version is None else launch
        for launch in launches
    ]


def _engine(match: re.Match[str]) -> str:
    return "trtllm" if match[1].startswith("tensorrt") else match[1]
