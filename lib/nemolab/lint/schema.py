"""What an engine version's command line accepts: read from the schema files beside this module.

A schema is made by `nemolab schemas extract` and is used for nothing but linting. Each file holds one engine version
and says where it comes from (`Schema.provenance`).
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from nemolab.core.errors import UsageError

FOLDER = Path(__file__).with_name("schemas")
ENGINES = ("vllm", "sglang", "trtllm")


class Flag(NamedTuple):  # hundreds are made at every start, and a tuple is ten times cheaper than a frozen dataclass
    """One option, or the positional, of a command line.

    Attributes:
        type: conversion of a value: `str`, `int`, `float`, `json`, `human_int`, `optional int`,
            `object CompilationConfig`, ...
        nargs: None takes one value, 0 none, `?` at most one, `+` one or more, `*` any number.
        choices: the only values accepted, after conversion.
        suggested: values that the engine names but does not insist on when it reads the command line.
        negations: spellings that switch it off.
        deprecated: None, or what the engine says about it ("" when it says nothing).
        none: the choices include no value at all.
        action: class that stores the values, where it looks into them.
        refused: what the engine says when it refuses the flag, for one that is only declared to say so.
    """

    name: str
    dest: str
    type: str | None = None
    nargs: str | int | None = None
    aliases: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None
    suggested: tuple[str, ...] | None = None
    default: Any = None
    required: bool = False
    deprecated: str | None = None
    refused: str | None = None
    hidden: bool = False
    positional: bool = False
    none: bool = False
    action: str | None = None

    @property
    def takes_value(self) -> bool:
        return self.nargs != 0


@dataclass(frozen=True)
class Schema:
    """The command line of one engine version."""

    engine: str
    version: str
    command: str
    complete: bool
    rules: dict[str, Any]
    provenance: dict[str, Any]
    flags: dict[str, Flag]
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    registries: dict[str, list[str]] = field(default_factory=dict)
    env: dict[str, dict[str, Any]] = field(default_factory=dict)
    env_read_elsewhere: tuple[str, ...] = ()
    yaml_keys: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def spellings(self) -> dict[str, tuple[Flag, bool]]:
        """Every accepted spelling: its flag, and whether it is the flag's negation."""
        table: dict[str, tuple[Flag, bool]] = {}
        for flag in self.flags.values():
            if not flag.positional:
                for name in (flag.name, *flag.aliases):
                    table[name] = (flag, False)
                for name in flag.negations:
                    table[name] = (flag, True)
        return table

    @cached_property
    def by_dest(self) -> dict[str, Flag]:
        """Flags by the engine's own name of the setting, such as `max_model_len`."""
        table: dict[str, Flag] = {}
        for flag in self.flags.values():
            if flag.dest not in table or flag.deprecated is None:
                table[flag.dest] = flag
        return table

    @property
    def label(self) -> str:
        """Engine and version as written in a message."""
        return f"{LABELS[self.engine]} {self.version}"

    @property
    def source(self) -> str:
        """Where the schema comes from, as written in a finding."""
        p = self.provenance
        return f"command line of {p['package']}, {p['method']}"


LABELS = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM", "nim": "NIM", "dynamo": "Dynamo"}


def version_key(version: str) -> tuple[int, ...]:
    """Sorting key: `1.3.0rc4` < `1.3.0` < `1.3.0.post1`; words after a dash are ignored."""
    text = version.removeprefix("v").split("-")[0].split("+")[0]
    match = re.match(r"(\d+(?:\.\d+)*)(?:\.?(rc|a|b|dev|post)(\d*))?", text)
    if not match:
        return (0, 0, 0, 0, 0)
    numbers = [int(n) for n in match[1].split(".")][:3]
    stage = {None: 0, "post": 1}.get(match[2], -1)
    return (*numbers, *[0] * (3 - len(numbers)), stage, int(match[3] or 0))


@lru_cache(maxsize=8)
def versions(engine: str) -> tuple[str, ...]:
    """Versions of an engine that a schema is shipped for, oldest first."""
    names = (path.name.removesuffix(".json.gz") for path in FOLDER.glob(f"{engine}-*.json.gz"))
    return tuple(sorted((name.split("-", 1)[1] for name in names), key=version_key))


def read(path: Path) -> dict[str, Any]:
    """The document of a schema file (`.json.gz` or `.json`)."""
    raw = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return document


def parse(document: dict[str, Any]) -> Schema:
    """A schema from its document."""
    flags = {}
    for name, entry in document["flags"].items():
        kept = dict(entry)
        for key in ("aliases", "negations", "choices", "suggested"):
            if key in kept:
                kept[key] = tuple(kept[key])
        flags[name] = Flag(name=name, **kept)
    return Schema(
        engine=document["engine"],
        version=document["version"],
        command=document["command"],
        complete=document["complete"],
        rules=document["rules"],
        provenance=document["provenance"],
        flags=flags,
        configs=document.get("configs", {}),
        registries=document.get("registries", {}),
        env=document.get("env", {}),
        env_read_elsewhere=tuple(document.get("env_read_elsewhere", ())),
        yaml_keys=document.get("yaml_keys", {}),
    )


@lru_cache(maxsize=32)
def load(engine: str, version: str) -> Schema:
    """The shipped schema of exactly this version.

    Raises:
        UsageError: there is none.
    """
    path = FOLDER / f"{engine}-{version}.json.gz"
    if not path.is_file():
        have = ", ".join(versions(engine)) or "none"
        raise UsageError(
            f"no schema of {engine} {version}",
            where=str(FOLDER),
            fix=f"use one of {have}, or make it: nemolab schemas extract {engine}=={version}",
        )
    return parse(read(path))


@dataclass(frozen=True, slots=True)
class Candidates:
    """Schemas that a launch is held against.

    With the exact version there is one. Otherwise there are the neighbours of the version, or every version when it is
    unknown; the first is the best guess, and only what all of them refuse counts as an error.
    """

    engine: str
    wanted: str | None
    names: tuple[str, ...]

    @property
    def exact(self) -> bool:
        if self.wanted is None or len(self.names) > 1:
            return False
        parts = 4 if self.engine == "trtllm" else 5  # a transcribed table stands for a line of release candidates
        return version_key(self.names[0])[:parts] == version_key(self.wanted)[:parts]

    @property
    def beyond(self) -> bool:
        """The version lies outside those that a schema is shipped for."""
        return self.wanted is not None and len(self.names) == 1 and not self.exact

    def __iter__(self) -> Iterator[Schema]:
        return (load(self.engine, name) for name in self.names)

    @property
    def first(self) -> Schema:
        return load(self.engine, self.names[0])


def candidates(engine: str, version: str | None) -> Candidates:
    """Schemas for `version`: exactly that one, else its neighbours, else all (newest first)."""
    have = versions(engine)
    if version is None:
        return Candidates(engine, None, tuple(reversed(have)))
    if version in have:
        return Candidates(engine, version, (version,))
    key = version_key(version)
    same = [name for name in have if version_key(name) == key]
    below = [name for name in have if version_key(name) < key]
    above = [name for name in have if version_key(name) > key]
    names = tuple(same[:1] or [*below[-1:], *above[:1]])
    return Candidates(engine, version, names)
