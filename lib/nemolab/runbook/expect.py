"""Expectations: `fits: true`, `throughput: ">= 100"`, `engine: in [vllm, sglang]`. Parsed and type-checked up front."""

from __future__ import annotations

import operator
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from nemolab.core.located import scalar
from nemolab.runbook.record import Expectation

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_OPERATION = re.compile(r"\s*(>=|<=|!=|==|=|>|<|in\b|not in\b)\s*(.*?)\s*", re.DOTALL)
SYNTAX = 'write a value, or one of ">= 1", "<= 1", "> 1", "< 1", "!= 1", "in [a, b]", "not in [a, b]"'


class BadExpectationError(ValueError):
    """An expectation that cannot be read, or that its result could never meet."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that must hold of a value: `operation` is one of `_COMPARE`, "in" or "not in"."""

    operation: str
    operand: Any
    written: str

    def of(self, name: str) -> str:
        """The condition on what is called `name`, as a clause."""
        return f"{name} {self.written}" if _OPERATION.fullmatch(self.written) else f"{name} is {self.written}"

    def holds(self, value: Any) -> bool:
        """Whether `value` meets it. A missing (None) or unordered value never meets a comparison."""
        if self.operation == "in":
            return any(_equal(value, item) for item in self.operand)
        if self.operation == "not in":
            return not any(_equal(value, item) for item in self.operand)
        if self.operation in ("==", "!="):
            return _equal(value, self.operand) == (self.operation == "==")
        return _number(value) and _COMPARE[self.operation](value, self.operand)


def parse(written: Any) -> Condition:
    """Read one expectation as it stands in a runbook (references already replaced).

    Raises:
        BadExpectationError: it has no meaning.
    """
    text = _write(written)
    if not isinstance(written, str):
        if isinstance(written, list | dict):
            raise BadExpectationError(SYNTAX)
        return Condition("==", written, text)
    match = _OPERATION.fullmatch(written)
    if not match:
        return Condition("==", written, text)
    operation, rest = match[1], match[2]
    if operation == "=":
        raise BadExpectationError(f'"=" is no comparison; {SYNTAX}')
    operand = scalar(rest) if rest else None
    if operand is None and rest not in ("null", "~"):
        raise BadExpectationError(f"nothing to compare with after {operation!r}; {SYNTAX}")
    if operation in ("in", "not in"):
        if not isinstance(operand, list):
            raise BadExpectationError(f"{operation!r} wants a list; {SYNTAX}")
    elif operation not in ("==", "!=") and not _number(operand):
        raise BadExpectationError(f"{operation!r} wants a number, not {rest!r}")
    return Condition(operation, operand, text)


def check_type(condition: Condition, annotation: Any) -> None:
    """Hold a condition against the type of its result.

    Raises:
        BadExpectationError: no value of this type could be compared so.
    """
    kinds, choices = _kinds(annotation)
    if condition.operation not in ("==", "!=", "in", "not in"):
        if not kinds & {int, float}:
            raise BadExpectationError(f"{condition.operation!r} wants a number, and this is {_name(kinds)}")
        return
    for item in condition.operand if condition.operation in ("in", "not in") else [condition.operand]:
        if choices and item not in choices:
            raise BadExpectationError(f"{item!r} is none of {', '.join(map(repr, sorted(choices, key=str)))}")
        if object in kinds:
            continue
        wanted: set[Any] = {int, float} if _number(item) else {type(item)}
        if not kinds & wanted:
            raise BadExpectationError(f"{item!r} is {_name({type(item)})}, and this is {_name(kinds)}")


def compatible(source: Any, target: Any) -> bool:
    """Whether a value of type `source` may be one of type `target`; structures are left to pydantic."""
    have, want = _kinds(source)[0], _kinds(target)[0]
    if object in have or object in want:
        return True
    if float in want:
        want = want | {int}
    return bool(have & want)


def judge(name: str, condition: Condition, values: dict[str, Any]) -> Expectation:
    """What came of the expectation on result `name`, given the published `values`."""
    if name not in values:
        return Expectation(name=name, expected=condition.written, actual="not published", met=False)
    actual = values[name]
    return Expectation(name=name, expected=condition.written, actual=_write(actual), met=condition.holds(actual))


def _kinds(annotation: Any) -> tuple[set[Any], set[Any]]:
    """Plain types that a value may have (`object` for any other), and the choices if it is an enumeration."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kinds(get_args(annotation)[0])
    if origin is Literal:
        choices = set(get_args(annotation))
        return {type(c) for c in choices}, choices
    if origin in (Union, types.UnionType):
        parts = [_kinds(arg) for arg in get_args(annotation)]
        every: set[Any] = set().union(*(kinds for kinds, _ in parts))
        listed = all(choices or kinds == {type(None)} for kinds, choices in parts)
        found: set[Any] = set().union(*(choices for _, choices in parts))
        return every, (found | ({None} if type(None) in every else set())) if listed and found else set()
    if annotation is None:
        return {type(None)}, set()
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        choices = {member.value for member in annotation}
        return {type(c) for c in choices}, choices
    if isinstance(annotation, type) and annotation in (bool, int, float, str, type(None)):
        return {annotation}, set()
    return {object}, set()


def _name(kinds: set[Any]) -> str:
    words = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        type(None): "nothing",
        object: "a structure",
    }
    return " or ".join(sorted(words.get(kind, "something else") for kind in kinds))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def as_written(value: Any) -> str:
    """A value as a runbook has it; an empty text as two quotes."""
    return _write(value) or '""'


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
