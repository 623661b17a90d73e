"""The typed diff of two runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from nemolab.core.status import Status
from nemolab.runbook.diff import Change, compare, compare_value
from nemolab.runbook.record import RunRecord, StepRecord


def entry(value: Any, better: str = "none", noise: float = 0.0, unit: str = "") -> dict[str, Any]:
    return {"value": value, "unit": unit, "better": better, "noise": noise, "help": ""}


@pytest.mark.parametrize(
    ("a", "b", "better", "noise", "change", "matters"),
    [
        (100.0, 120.0, "higher", 0.1, Change.BETTER, False),
        (100.0, 80.0, "higher", 0.1, Change.WORSE, True),
        (100.0, 109.0, "higher", 0.1, Change.SAME, False),
        (100.0, 91.0, "lower", 0.0, Change.BETTER, False),
        (-2.0, -1.0, "lower", 0.1, Change.WORSE, True),
        (0, 3, "lower", 0.5, Change.WORSE, True),
        (True, False, "higher", 0.0, Change.WORSE, True),
        ("a", "b", "equal", 0.0, Change.CHANGED, True),
        ("a", "b", "none", 0.0, Change.CHANGED, False),
        (5, 6, "none", 0.0, Change.CHANGED, False),
        (None, 6, "higher", 0.0, Change.CHANGED, False),
        (float("nan"), float("nan"), "higher", 0.0, Change.SAME, False),
    ],
)
def test_value(a: Any, b: Any, better: str, noise: float, change: Change, matters: bool) -> None:
    diff = compare_value("x", entry(a, better, noise), entry(b, better, noise))
    assert (diff.change, diff.matters) == (change, matters)


def test_other_unit_has_no_order() -> None:
    diff = compare_value("x", entry(100, "lower", unit="ms"), entry(1, "lower", unit="s"))
    assert (diff.change, diff.relative) == (Change.CHANGED, None)


def run(run_id: str, steps: list[StepRecord], **more: Any) -> RunRecord:
    return RunRecord(
        run_id=run_id, runbook="r", runbook_path="runbooks/r.yaml", runbook_sha256="", title="R",
        status=Status.PASSED, started=datetime(2026, 1, 1, tzinfo=UTC), steps=tuple(steps), **more,
    )  # fmt: skip


def step(step_id: str, status: Status = Status.PASSED, **results: dict[str, Any]) -> StepRecord:
    return StepRecord(id=step_id, name=step_id, title=step_id, notebook="n.ipynb", status=status, results=results)


def test_runs() -> None:
    a = run("a", [step("load", tput=entry(100.0, "higher", unit="tokens/s")), step("old")], parameters={"n": 1})
    b = run("b", [step("load", tput=entry(50.0, "higher", unit="tokens/s"), extra=entry(1))], parameters={"n": 2})
    diff = compare(a, b)
    assert [(p.name, p.a, p.b) for p in diff.parameters] == [("n", 1, 2)]
    load, old = diff.steps
    assert [(v.name, v.change) for v in load.values] == [("tput", Change.WORSE), ("extra", Change.ONLY_B)]
    assert load.values[0].relative == -0.5
    assert (old.status_a, old.status_b) == (Status.PASSED, None)
    assert diff.regressed
    assert not compare(a, a).regressed


def test_a_step_that_no_longer_passes_is_a_regression() -> None:
    assert compare(run("a", [step("s")]), run("b", [step("s", Status.ERROR)])).regressed
