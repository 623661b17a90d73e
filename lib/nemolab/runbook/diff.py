"""What changed between two runs, typed: by direction, unit and noise of each result. Pure; printing is the caller's."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from nemolab.core.contract import Better
from nemolab.core.status import Status
from nemolab.runbook.record import RunRecord, StepRecord


class Change(StrEnum):
    """What became of one value between run A and run B."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same within noise"
    CHANGED = "changed"
    ONLY_A = "only in the first"
    ONLY_B = "only in the second"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class ValueDiff(_Model):
    """One result in both runs.

    Attributes:
        relative: (b - a) / |a| for numbers with a non-zero `a`, else None.
        matters: the change is for the worse, or it is of a value that must stay equal.
    """

    name: str
    change: Change
    a: Any = None
    b: Any = None
    unit: str = ""
    better: Better = "none"
    noise: float = 0.0
    relative: float | None = None
    matters: bool = False
    help: str = ""


class PlainDiff(_Model):
    """A parameter, version or host fact that differs; None where a run lacks it."""

    name: str
    a: Any = None
    b: Any = None


class StepDiff(_Model):
    """One step in both runs; a status is None where the run lacks the step."""

    id: str
    title: str
    status_a: Status | None
    status_b: Status | None
    parameters: tuple[PlainDiff, ...] = ()
    values: tuple[ValueDiff, ...] = ()

    @property
    def regressed(self) -> bool:
        """It passed before and does not now, or a value that matters changed."""
        lost = self.status_a is Status.PASSED and self.status_b is not Status.PASSED
        return lost or any(value.matters for value in self.values)


class RunDiff(_Model):
    """Run B against run A."""

    a: str
    b: str
    status_a: Status
    status_b: Status
    parameters: tuple[PlainDiff, ...]
    versions: tuple[PlainDiff, ...]
    host: tuple[PlainDiff, ...]
    steps: tuple[StepDiff, ...]

    @property
    def regressed(self) -> bool:
        """Whether anything got worse that counts; `nemolab diff` then exits with 1."""
        return any(step.regressed for step in self.steps)

    def count(self, change: Change) -> int:
        """How many values changed so."""
        return sum(value.change is change for step in self.steps for value in step.values)


def compare(a: RunRecord, b: RunRecord) -> RunDiff:
    """Compare run `b` with run `a`, step by step (matched by id) and value by value."""
    steps_a, steps_b = {s.id: s for s in a.steps}, {s.id: s for s in b.steps}
    return RunDiff(
        a=a.run_id,
        b=b.run_id,
        status_a=a.status,
        status_b=b.status,
        parameters=_plain(a.parameters, b.parameters),
        versions=_plain(a.versions, b.versions),
        host=_plain(a.host, b.host),
        steps=tuple(_step(steps_a.get(key), steps_b.get(key)) for key in _union(steps_a, steps_b)),
    )


def compare_value(name: str, a: dict[str, Any] | None, b: dict[str, Any] | None) -> ValueDiff:
    """Compare two entries of `Results.as_document()`; the newer one's unit, direction and noise count."""
    meta = b or a or {}
    common: dict[str, Any] = {key: meta.get(key, default) for key, default in _META.items()}
    if a is None or b is None:
        only = Change.ONLY_A if b is None else Change.ONLY_B
        return ValueDiff(name=name, change=only, a=(a or {}).get("value"), b=(b or {}).get("value"), **common)
    old, new = a.get("value"), b.get("value")
    relative = _relative(old, new)
    change = _judge(old, new, relative, common["better"], common["noise"])
    if a.get("unit", "") != common["unit"]:  # numbers in different units have no order
        change, relative = Change.CHANGED, None
    matters = change is Change.WORSE or (change is Change.CHANGED and common["better"] == "equal")
    return ValueDiff(name=name, change=change, a=old, b=new, relative=relative, matters=matters, **common)


_META: dict[str, Any] = {"unit": "", "better": "none", "noise": 0.0, "help": ""}


def _judge(old: Any, new: Any, relative: float | None, better: Better, noise: float) -> Change:
    if old == new or (_is_nan(old) and _is_nan(new)):
        return Change.SAME
    if not (_ordered(old) and _ordered(new)):
        return Change.CHANGED
    if relative is not None and abs(relative) <= noise:
        return Change.SAME
    if better in ("higher", "lower"):
        return Change.BETTER if (new > old) == (better == "higher") else Change.WORSE
    return Change.CHANGED


def _relative(old: Any, new: Any) -> float | None:
    if not (_ordered(old) and _ordered(new)) or isinstance(old, bool) or isinstance(new, bool) or old == 0:
        return None
    return float((new - old) / abs(old))


def _ordered(value: Any) -> bool:
    return isinstance(value, bool | int | float) and not _is_nan(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _step(a: StepRecord | None, b: StepRecord | None) -> StepDiff:
    some = b or a
    assert some is not None  # ids come from the two records
    results_a, results_b = (a.results if a else {}), (b.results if b else {})
    return StepDiff(
        id=some.id,
        title=some.title,
        status_a=a.status if a else None,
        status_b=b.status if b else None,
        parameters=_plain(a.parameters, b.parameters) if a and b else (),
        values=tuple(
            compare_value(key, results_a.get(key), results_b.get(key)) for key in _union(results_a, results_b)
        ),
    )


def _plain(a: dict[str, Any], b: dict[str, Any]) -> tuple[PlainDiff, ...]:
    return tuple(PlainDiff(name=key, a=a.get(key), b=b.get(key)) for key in _union(a, b) if a.get(key) != b.get(key))


def _union(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Keys of both in order of `b`, then what only `a` has."""
    return [*b, *(key for key in a if key not in b)]
