"""Reads an argument list the way an engine's parser does, without the engine.

Three parsers are covered: vLLM's `FlexibleArgumentParser` (argparse with `_` folded to `-`, dotted JSON keys, `-O3`),
SGLang's plain argparse, and TensorRT-LLM's click. Prefixes of a flag are accepted where the parser accepts them. All
problems are collected, where a real parser stops at the first.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nemolab.lint.schema import Flag, Schema
from nemolab.lint.values import Unreadable, vllm_int

# Words that stand for others: variables, ellipses and placeholders of a document.
_STANDS_FOR = re.compile(r"^(\$.*|\.{3}|\u2026|\[.*\]|<.*>|\{\{.*)$", re.S)
_NEGATIVE = re.compile(r"^-\d+$|^-\d*\.\d+$")


class Option(NamedTuple):
    """One option as it was read.

    Attributes:
        flag: what it resolves to.
        spelled: as written, without its value.
        values: texts that it takes.
        at: index of the word that it starts at.
        negative: it switches the flag off.
        prefix: it was accepted as a unique prefix of `resolved`.
        resolved: the spelling it stands for.
        dotted: it was given as `--flag.key value`; `values[0]` is then the JSON that the keys amount to.
    """

    flag: Flag
    spelled: str
    values: tuple[str, ...]
    at: int
    resolved: str
    negative: bool = False
    prefix: bool = False
    dotted: bool = False


class Problem(NamedTuple):
    """Something the parser stops at: `unknown`, `ambiguous`, `value` (a value too many), `missing` (a value too few),
    `extra` (a word that nothing takes), `model-first`, `dotted` (an empty one)."""

    kind: str
    word: str
    at: int
    detail: tuple[str, ...] = ()


@dataclass(slots=True)
class Reading:
    """What the parser makes of an argument list."""

    options: list[Option] = field(default_factory=list)
    positionals: list[tuple[str, int]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    model_moved: bool = False

    def last(self, dest: str) -> Option | None:
        """The option that decides the setting `dest`: the last one given."""
        return next((o for o in reversed(self.options) if o.flag.dest == dest), None)


class _Word(NamedTuple):
    text: str
    at: int


def read(schema: Schema, argv: list[str]) -> Reading:
    """Read the words after the command (`vllm serve`, `sglang.launch_server`, `trtllm-serve`)."""
    reading = Reading()
    words = [_Word(text, at) for at, text in enumerate(argv)]
    if schema.engine == "vllm":
        words = _vllm_words(schema, words, reading)
    _consume(schema, words, reading)
    return reading


# --- vLLM's preparation of the words ---------------------------------------------------------------------------------


def _vllm_words(schema: Schema, words: list[_Word], reading: Reading) -> list[_Word]:
    words = _move_model(words, reading)
    words = [folded for word in words for folded in _fold(word)]
    for index, word in enumerate(words[:-1]):
        if word.text == "-O" and words[index + 1].text in {"0", "1", "2", "3"}:
            words[index] = _Word("--optimization-level", word.at)
    return _dotted(schema, words, reading)


def _move_model(words: list[_Word], reading: Reading) -> list[_Word]:
    """`vllm serve` moves `--model X` to the front, and insists on a leading model beside `--served-model-name`."""
    for index, word in enumerate(words):
        if not re.match(r"^--model(=.+|$)", word.text):
            continue
        if word.text == "--model":
            if index + 1 == len(words):
                reading.problems.append(Problem("missing", "--model", word.at, ("1",)))
                return words[:index]
            moved, rest = words[index + 1], words[index + 2 :]
        else:
            moved, rest = _Word(word.text.removeprefix("--model="), word.at), words[index + 1 :]
        reading.model_moved = True
        words = [moved, *words[:index], *rest]
        break
    if (
        words
        and words[0].text.startswith("-")
        and not any(re.match(r"^--config(=.+|$)", w.text) for w in words)
        and (named := next((w for w in words if re.match(r"^--served[-_]model[-_]name(=.+|$)", w.text)), None))
    ):
        reading.problems.append(Problem("model-first", "--served-model-name", named.at))
    return words


def _fold(word: _Word) -> list[_Word]:
    text = word.text
    if text.startswith("--"):
        key, equals, value = text.partition("=")
        head, dot, tail = key.partition(".")
        return [_Word(f"--{head[2:].replace('_', '-')}{dot}{tail}{equals}{value}", word.at)]
    if text.startswith("-O") and text != "-O":
        level = text[3:] if text[2] == "=" else text[2:]
        return [_Word("--optimization-level", word.at), _Word(level, word.at)]
    return [word]


def _dotted(schema: Schema, words: list[_Word], reading: Reading) -> list[_Word]:
    """`--flag.key value` pairs become one `--flag {json}` at the end, as vLLM does it."""
    kept: list[_Word] = []
    merged: dict[str, dict[str, Any]] = {}
    first: dict[str, int] = {}
    skip = False
    for index, word in enumerate(words):
        if skip:
            skip = False
            continue
        key, equals, text = word.text.partition("=")
        if (
            not word.text.startswith("-") or "." not in key
        ):  # a negative decimal is taken for a dotted key, as vLLM does
            kept.append(word)
            continue
        if not equals:
            if index + 1 == len(words):
                reading.problems.append(Problem("missing", word.text, word.at, ("1",)))
                continue
            text, skip = words[index + 1].text, True
        if key.endswith("+"):
            key, text = key[:-1], json.dumps(text.split(","))
        flag, *path = key.split(".")
        value: Any
        try:
            value = json.loads(text)
        except ValueError:
            try:
                value = vllm_int(text)
            except Unreadable:
                value = text
        for part in reversed(path):
            value = {part: value}
        _merge(merged.setdefault(flag, {}), value)
        first.setdefault(flag, word.at)
    for flag, document in merged.items():
        kept += [_Word(flag, first[flag]), _Word(json.dumps(document), -1)]
    return kept


def _merge(into: dict[str, Any], new: Any) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif isinstance(value, list) and isinstance(into.get(key), list):
            into[key] += value
        else:
            into[key] = value


# --- argparse and click ----------------------------------------------------------------------------------------------


class _Match(NamedTuple):
    flag: Flag
    resolved: str
    negative: bool
    explicit: str | None
    prefix: bool = False


def _match(schema: Schema, text: str) -> _Match | tuple[str, ...] | None:
    """What an argument that starts with a dash stands for: a match, the spellings it could be, or None."""
    table = schema.spellings
    if text in table:
        return _Match(table[text][0], text, table[text][1], None)
    head, equals, value = text.partition("=")
    explicit = value if equals else None
    if equals and head in table:
        return _Match(table[head][0], head, table[head][1], explicit)
    if not schema.rules["prefixes"]:
        return None
    if text.startswith("--"):
        found = [(name, explicit) for name in table if name.startswith(head)]
    else:
        found = []
        for name in table:
            if name == text[:2]:
                found.append((name, text[2:]))
            elif name.startswith(head):
                found.append((name, explicit))
    if len(found) == 1:
        name, explicit = found[0]
        return _Match(table[name][0], name, table[name][1], explicit, prefix=name != head)
    return tuple(name for name, _ in found) or None


def _is_value(schema: Schema, text: str) -> bool:
    """Whether argparse takes a word for a value rather than an option."""
    if not text.startswith("-") or text == "-":
        return True
    if _match(schema, text) is not None:
        return False
    return bool(_NEGATIVE.match(text)) or " " in text


def _consume(schema: Schema, words: list[_Word], reading: Reading) -> None:
    positional = next((f for f in schema.flags.values() if f.positional), None)
    index, only_values = 0, False
    while index < len(words):
        word = words[index]
        index += 1
        if only_values or _is_value(schema, word.text):
            if positional and not reading.positionals:
                reading.positionals.append((word.text, word.at))
            elif _STANDS_FOR.match(word.text):
                continue
            else:
                reading.problems.append(Problem("extra", word.text, word.at))
            continue
        if word.text == "--":
            only_values = True
            continue
        match = _match(schema, word.text)
        if not isinstance(match, _Match):
            kind = "ambiguous" if match else "unknown"
            reading.problems.append(Problem(kind, word.text.partition("=")[0], word.at, match or ()))
            index = _skip_values(schema, words, index, word)
            continue
        index = _take(schema, words, index, word, match, reading)


def _skip_values(schema: Schema, words: list[_Word], index: int, word: _Word) -> int:
    """After an unknown option, its value is not a second problem."""
    if "=" not in word.text and index < len(words) and _is_value(schema, words[index].text):
        return index + 1
    return index


def _arity(flag: Flag, words: int) -> tuple[int, int]:
    """Fewest and most values that an option takes, of `words` that there are."""
    match flag.nargs:
        case int(count):
            return count, count
        case "?":
            return 0, 1
        case "*":
            return 0, words
        case "+":
            return 1, words
    return 1, 1


def _take(schema: Schema, words: list[_Word], index: int, word: _Word, match: _Match, reading: Reading) -> int:
    flag, spelled = match.flag, word.text if match.explicit is None else word.text[: -len(match.explicit) or None]
    spelled = spelled.rstrip("=")
    values: list[str] = []
    if match.explicit is not None:
        if flag.nargs == 0:
            reading.problems.append(Problem("value", spelled, word.at, (match.explicit,)))
            return index
        values = [match.explicit]
    elif flag.nargs != 0:
        least, limit = _arity(flag, len(words))
        greedy = not schema.rules["prefixes"]  # click takes the next word, whatever it looks like
        while index < len(words) and len(values) < limit and (greedy or _is_value(schema, words[index].text)):
            values.append(words[index].text)
            index += 1
        if len(values) < least:
            reading.problems.append(Problem("missing", spelled, word.at, (str(least),)))
            return index
    dotted = word.at >= 0 and bool(values) and index > 0 and words[index - 1].at == -1
    reading.options.append(
        Option(flag, spelled, tuple(values), word.at, match.resolved, match.negative, match.prefix, dotted)
    )
    if (
        flag.nargs == 0
        and index < len(words)
        and words[index].text.lower() in {"true", "false", "1", "0", "yes", "no", "on", "off"}
    ):
        reading.problems.append(Problem("value", spelled, word.at, (words[index].text,)))
        index += 1
    return index
