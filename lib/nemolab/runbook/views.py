"""What pages show of a step: its record together with what its executed notebook holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nemolab.notebook.values import cell
from nemolab.runbook.cells import Cell
from nemolab.runbook.outputs import Figure
from nemolab.runbook.record import Expectation, StepRecord


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result as a page shows it; `number` tells how it is aligned."""

    step: str
    name: str
    value: str
    number: bool
    unit: str
    help: str
    expectation: Expectation | None


@dataclass(frozen=True, slots=True)
class StepView:
    """A step with what its notebook shows.

    Attributes:
        page: file name of its page, None if there is none.
        cells: of its executed notebook.
        problem: why the executed notebook cannot be shown, "" if it can.
    """

    step: StepRecord
    page: str | None
    cells: tuple[Cell, ...] = ()
    problem: str = ""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures of the notebook."""
        return tuple(block for cell in self.cells for block in cell.blocks if isinstance(block, Figure))

    @property
    def rows(self) -> list[ResultRow]:
        """The results of the record, each with what was required of it."""
        return result_rows(self.step.results, self.step.expectations, self.step.id)

    def without(self, dropped: Mapping[str, str]) -> StepView:
        """The same with some figures (id -> why) left out as charts."""

        def drop(block: Any) -> Any:
            return replace(block, dropped=dropped[block.id]) if getattr(block, "id", None) in dropped else block

        return replace(self, cells=tuple(replace(c, blocks=tuple(map(drop, c.blocks))) for c in self.cells))


def result_rows(
    document: Mapping[str, Any], expectations: Iterable[Expectation] = (), step: str = ""
) -> list[ResultRow]:
    """Rows for `Results.as_document()`; expectations of results that were never published come last."""
    wanted = {expectation.name: expectation for expectation in expectations}
    rows = []
    for name, entry in document.items():
        value = entry.get("value")
        number = isinstance(value, int | float) or value is None
        unit, text = (entry.get("unit") or "") if value is not None else "", entry.get("help") or ""
        rows.append(ResultRow(step, name, cell(value), number, unit, text, wanted.pop(name, None)))
    return rows + [ResultRow(step, name, e.actual or "not published", False, "", "", e) for name, e in wanted.items()]


def sign_off_state(step: StepRecord, role: str) -> str:
    """`valid`, `no longer valid` or `missing`: what the newest sign-off of a role is worth."""
    given = [sign_off for sign_off in step.sign_offs if sign_off.role == role]
    if any(sign_off.key == step.key for sign_off in given):
        return "valid"
    return "no longer valid" if given else "missing"
