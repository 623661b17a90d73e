"""How a model's fields are spelled for a reader: type, limits and default, as a `parameters` cell writes them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

_BOUNDS: Mapping[str, str] = {
    "ge": ">= {}",
    "gt": "> {}",
    "le": "<= {}",
    "lt": "< {}",
    "multiple_of": "a multiple of {}",
    "min_length": "at least {} long",
    "max_length": "at most {} long",
    "pattern": "like {}",
}


def type_of(field: FieldInfo) -> str:
    """The field's type as Python spells it: `int`, `list[int]`, `str | None`, `Literal["a", "b"]`."""
    return spell(field.annotation)


def spell(annotation: Any) -> str:
    """A type annotation, spelled without module names."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Any:
        return "Any"
    if origin is Literal:
        return f"Literal[{', '.join(_quoted(arg) for arg in args)}]"
    if origin in (Union, types.UnionType):
        return " | ".join(spell(arg) for arg in args)
    if hasattr(annotation, "__metadata__"):  # Annotated[...] inside a list
        return spell(annotation.__origin__)
    name = getattr(origin or annotation, "__name__", str(annotation))
    return f"{name}[{', '.join('...' if arg is Ellipsis else spell(arg) for arg in args)}]" if args else name


def limits(field: FieldInfo) -> str:
    """The field's limits, `>= 1, <= 64`; "" if it has none."""
    found = []
    for part in field.metadata:
        for name, text in _BOUNDS.items():
            bound = getattr(part, name, None)
            if bound is not None and not callable(bound):
                found.append(text.format(bound))
    return ", ".join(found)


def literal(value: Any) -> str:
    """A default as a `parameters` cell writes it: double quotes, tuples as lists."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(k)}: {literal(v)}' for k, v in value.items())}}}"
    return repr(value)


def _quoted(value: Any) -> str:
    if not isinstance(value, str):
        return repr(value)
    import json

    return json.dumps(value, ensure_ascii=False)
