"""YAML that knows on which line each value stands, and refuses what YAML would silently misread."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nemolab.core.errors import UsageError

Path_ = tuple[str | int, ...]
_READ = 40  # names in an error message

# YAML 1.1 reads these plain words as booleans, base-60 or octal numbers; a person means text or a number.
_EXPONENT = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+")
_NUMBER_SIGN = re.compile(r"\s+(#\d+)")  # the number of an issue, not a comment
_TRAPS = (
    (
        re.compile(r"(?i)(?:yes|no|on|off|y|n)"),
        "reads as true or false in some YAML readers; write true, false, or quote it",
    ),
    (re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?"), "reads as a base-60 number; quote it"),
    (re.compile(r"[-+]?0[0-9_]+"), "reads as an octal number; quote it, or drop the leading zero"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"), "reads as a date; quote it"),
)


@dataclass(frozen=True)
class Located:
    """A YAML document: its `value`, and the line (from 1) of each part of it by path."""

    path: Path
    text: str
    value: Any
    lines: dict[Path_, int] = field(default_factory=dict)

    def at(self, *path: str | int) -> str:
        """`file:line` of the part at `path`, or of the nearest part that encloses it."""
        for end in range(len(path), -1, -1):
            if line := self.lines.get(path[:end]):
                return f"{self.path}:{line}"
        return str(self.path)


def read(path: Path) -> Located:
    """Read the YAML file at `path`.

    Raises:
        UsageError: no such file, not YAML, a key twice, an alias or tag, or a plain word that YAML would misread.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError("no such file", where=str(path), fix=_neighbours(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    lines: dict[Path_, int] = {}
    source = text.splitlines()
    try:
        node = loader.get_single_node()
        value = _build(loader, node, (), lines, path, source) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"not YAML: {error.problem}", where=f"{path}:{line}") from None
    finally:
        loader.dispose()
    return Located(path, text, value, lines)


def scalar(text: str) -> Any:
    """The value that `text` stands for on a line of its own: a number (also `1e3`), a truth value, a list, or text."""
    try:
        return float(text) if _EXPONENT.fullmatch(text.strip()) else yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def nearest(name: str, known: Iterable[str], where: str = "") -> str:
    """What the writer of `name` may have meant, as a fix: the nearest spelling, or all that there are; of more than a
    person reads some, or `where` to find them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if len(names) > _READ:
        return where or f"known: {', '.join(names[:_READ])} and {len(names) - _READ} more"
    return f"known: {', '.join(names)}" if names else "there is none"


def _build(loader: Any, node: yaml.Node, at: Path_, lines: dict[Path_, int], path: Path, source: Sequence[str]) -> Any:
    lines.setdefault(at, node.start_mark.line + 1)
    where = f"{path}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None or key_node.tag == "tag:yaml.org,2002:merge":
                raise UsageError("only plain words can be keys here", where=f"{path}:{line}")
            if key in result:
                raise UsageError(f"key {key!r} stands here twice", where=f"{path}:{line}", fix="remove one")
            lines[(*at, key)] = line
            result[key] = _build(loader, value_node, (*at, key), lines, path, source)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, item, (*at, index), lines, path, source) for index, item in enumerate(node.value)]
    if node.tag not in _SCALARS:
        hint = next((why for shape, why in _TRAPS if shape.fullmatch(str(node.value))), f"has the tag {node.tag}")
        raise UsageError(f"{node.value!r} {hint}", where=where)
    if node.tag == "tag:yaml.org,2002:str":
        if not getattr(node, "style", None) and (cut := _NUMBER_SIGN.match(_after(node, source))):
            raise UsageError(f"{cut[1]!r} and what follows is read as a comment; quote the text", where=where)
        if not getattr(node, "style", None) and _EXPONENT.fullmatch(str(node.value)):
            raise UsageError(
                f"{node.value!r} reads as text in YAML 1.1; write the number out, or quote it", where=where
            )
    else:
        for shape, why in _TRAPS:
            if shape.fullmatch(str(node.value)):
                raise UsageError(f"{node.value!r} {why}", where=where)
    return loader.construct_object(node)


def _after(node: yaml.Node, source: Sequence[str]) -> str:
    """What stands on a scalar's last line after it."""
    line = node.end_mark.line
    return source[line][node.end_mark.column :] if line < len(source) else ""


_SCALARS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}


def _neighbours(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir() if p.suffix == path.suffix]
    except OSError:
        return "check the path"
    return nearest(path.name, names)
