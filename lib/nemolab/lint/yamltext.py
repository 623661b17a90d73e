"""YAML with line numbers. PyYAML is imported only here, so that a plain command does not pay for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Word


def all_documents(text: str) -> list[Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [d for d in yaml.load_all(text, Loader=loader) if d is not None]
    except (yaml.YAMLError, ValueError, RecursionError):
        return []


def mapping_lines(text: str, first_line: int) -> tuple[dict[str, Any] | None, dict[str, int], Finding | None]:
    """A YAML mapping, the line of each dotted key, and a finding when it is not YAML."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    lines: dict[str, int] = {}
    try:
        node = next(iter(yaml.compose_all(text, Loader=loader)), None)
        document = next(iter(yaml.load_all(text, Loader=loader)), None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if re.search(r"\{\{|\$\{\{", text):
            return (
                None,
                {},
                Finding(
                    "R-YAML",
                    Severity.UNKNOWN,
                    "a template, not YAML yet: not checked",
                    "render it first",
                    "",
                    where=f"line {first_line}",
                ),
            )
        mark = getattr(error, "problem_mark", None)
        where = first_line + mark.line if mark else first_line
        problem = getattr(error, "problem", None) or str(error)
        return (
            None,
            {},
            Finding(
                "R-YAML",
                Severity.ERROR,
                f"not valid YAML: {problem}",
                "mend the indentation or quoting on this line",
                "YAML 1.1",
                where=f"line {where}",
            ),
        )

    def walk(node: Any, path: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = f"{path}.{key.value}" if path else str(key.value)
                lines[name] = first_line + key.start_mark.line
                walk(value, name)

    walk(node, "")
    return (document if isinstance(document, dict) else None), lines, None


def line_of(text: str, needle: str) -> int:
    """Line on which a value stands; 1 when it cannot be found."""
    at = text.find(needle) if needle else -1
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def words_of(value: Any, text: str) -> list[Word]:
    """A command or argument list of a container; a text is read as shell words."""
    if isinstance(value, str):
        from nemolab.lint import shell

        commands = shell.split(value, line_of(text, value.split("\n")[0].strip()[:60])).commands
        return [word for command in commands[:1] for word in command]
    if isinstance(value, list):
        return [Word(text_of(item), line_of(text, text_of(item).split("\n")[0])) for item in value]
    return []


def text_of(value: Any) -> str:
    if value is True or value is False:
        return str(value).lower()
    return "" if value is None else str(value)


def flag_words(settings: dict[Any, Any], line: Callable[[str], int], *, dashes: bool = True) -> list[Word]:
    """Settings of a mapping as the words that vLLM and SGLang make of their `--config FILE`: `key: value` is
    `--key value`, true a switch, false its negation, a list several values, a mapping one JSON value."""
    import json

    words: list[Word] = []
    for key, value in settings.items():
        at = line(str(key))
        flag = f"--{key}".replace("_", "-") if dashes else f"--{key}"
        if value is True:
            words.append(Word(flag, at))
        elif value is False:
            words.append(Word(f"--no-{flag[2:]}", at))
        elif isinstance(value, dict):
            words += [Word(flag, at), Word(json.dumps(value, default=str), at, quoted=True)]
        elif value is not None:
            items = value if isinstance(value, list) else [value]
            words += [Word(flag, at), *(Word(text_of(item), at) for item in items)]
    return words
