"""References in a runbook: `${parameter}` and `${step.value}`. A value that is one reference keeps its type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_REFERENCE = re.compile(r"\$(?P<escaped>\$)?\{(?P<body>[^{}]*)\}?")
_BODY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z_][A-Za-z0-9_]*))?")


@dataclass(frozen=True, slots=True)
class Ref:
    """`${owner}` (a runbook parameter) or `${owner.value}` (a result of a step)."""

    owner: str
    value: str | None = None

    def __str__(self) -> str:
        return f"${{{self.owner}.{self.value}}}" if self.value else f"${{{self.owner}}}"


class BadReferenceError(ValueError):
    """The text between `${` and `}` is not a name or `step.value`."""


def find(value: Any) -> Iterator[Ref]:
    """Every reference in `value`, a tree of lists and dicts.

    Raises:
        BadReferenceError: something looks like a reference and is none.
    """
    if isinstance(value, str):
        for match in _REFERENCE.finditer(value):
            if not match["escaped"]:
                yield _parse(match)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from find(item)


def resolve(value: Any, lookup: Callable[[Ref], Any]) -> Any:
    """`value` with every reference replaced; `$${` stands for a literal `${`."""
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole and not whole["escaped"]:
            return lookup(_parse(whole))
        return _REFERENCE.sub(lambda m: m[0][1:] if m["escaped"] else _text(lookup(_parse(m))), value)
    if isinstance(value, list | tuple):
        return [resolve(item, lookup) for item in value]
    if isinstance(value, dict):
        return {key: resolve(item, lookup) for key, item in value.items()}
    return value


def _parse(match: re.Match[str]) -> Ref:
    body = _BODY.fullmatch(match["body"].strip())
    if not body or not match[0].endswith("}"):
        raise BadReferenceError(match[0])
    return Ref(body[1], body[2])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
