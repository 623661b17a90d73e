"""Expectations: what they mean, and which can never be met."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest

from nemolab.runbook.expect import BadExpectationError, check_type, compatible, judge, parse


@pytest.mark.parametrize(
    ("written", "value", "holds"),
    [
        (True, True, True),
        (True, 1, False),
        (1, True, False),
        (1, 1.0, True),
        ("fine", "fine", True),
        (">= 1", 1, True),
        (">= 1", 0.99, False),
        ("> 1e3", 1001, True),
        (">= 1", True, False),
        (">= 1", None, False),
        (">= 1", float("nan"), False),
        ("< 2", 1, True),
        ("!= 3", 4, True),
        ("== fine", "fine", True),
        ("in [a, b]", "b", True),
        ("in [a, b]", "c", False),
        ("not in [1, 2]", 3, True),
        (None, None, True),
        ("interesting", "interesting", True),
    ],
)
def test_holds(written: Any, value: Any, holds: bool) -> None:
    assert parse(written).holds(value) is holds


@pytest.mark.parametrize("written", [">=", "> fast", "in a", "in", "= 3", ["a"], {"a": 1}, ">= [1]", "in [1"])
def test_cannot_be_read(written: Any) -> None:
    with pytest.raises(BadExpectationError):
        parse(written)


class Size(StrEnum):
    SMALL = "small"


@pytest.mark.parametrize(
    ("written", "annotation", "fine"),
    [
        (">= 1", int, True),
        (">= 1", float | None, True),
        (">= 1", Annotated[float, "unit"], True),
        (">= 1", bool, False),
        (">= 1", str, False),
        (1, bool, False),
        (True, bool, True),
        (1, float, True),
        ("small", Literal["small", "large"], True),
        ("tiny", Literal["small", "large"], False),
        ("tiny", Literal["small", "large"] | None, False),
        (None, Literal["small"] | None, True),
        ("small", Size, True),
        ("tiny", Size, False),
        ("x", list[str], True),
    ],
)
def test_type(written: Any, annotation: Any, fine: bool) -> None:
    condition = parse(written)
    if fine:
        check_type(condition, annotation)
    else:
        with pytest.raises(BadExpectationError):
            check_type(condition, annotation)


def test_judge_says_what_was_and_what_should_be() -> None:
    values = {"rate": 0.123456789, "ok": True}
    assert judge("rate", parse(">= 1"), values).model_dump() == {
        "name": "rate", "expected": ">= 1", "actual": "0.123457", "met": False,
    }  # fmt: skip
    assert judge("ok", parse(True), values).met
    assert judge("gone", parse(True), values).actual == "not published"


def test_compatible() -> None:
    assert compatible(int, float)
    assert not compatible(float, str)
    assert compatible(str, str | None)
    assert compatible(list[int], str)  # structures are pydantic's to judge
