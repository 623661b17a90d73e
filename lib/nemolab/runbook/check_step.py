"""The static check of one step of a report: its notebook, parameters, results, expectations, recordings, sign-offs."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nemolab.core import paths
from nemolab.core.errors import UsageError
from nemolab.core.files import sha256
from nemolab.core.finding import Finding, Severity
from nemolab.core.status import Status
from nemolab.notebook.results import differences
from nemolab.runbook import expect, normalise, outputs
from nemolab.runbook.cells import load
from nemolab.runbook.expect import BadExpectationError
from nemolab.runbook.record import Expectation, StepRecord
from nemolab.runbook.views import sign_off_state

_RESTORE = "restore it from where the report came from, or run the step again"
# These ended by themselves, so everything must be there.
_COMPLETE = (Status.PASSED, Status.FAILED, Status.WAITING)


def check(folder: Path, step: StepRecord) -> Iterator[Finding]:
    """All that is wrong with `step` of the run in `folder`."""
    yield from _verdict(step)
    yield from _recordings(folder, step)
    yield from _sign_offs(step)
    path = folder / f"{step.name}.ipynb"
    if not path.is_file():
        if step.notebook_sha256 or step.status in _COMPLETE:
            yield _error("P-003", "the executed notebook is missing", path.name)
        yield from _results(folder, step, None)
        return
    if sha256(path.read_bytes()) != step.notebook_sha256:
        yield _error("P-003", "the executed notebook is not the one of the record", path.name)
    try:
        nb = load(path)
        yield from _cells(step, nb, path.name)
        yield from _parameters(step, nb, path.name)
        yield from _results(folder, step, nb)
    except UsageError as error:
        yield _error("P-004", error.what, path.name)
    except (KeyError, TypeError, AttributeError):
        yield _error("P-004", "the notebook is damaged: a cell lacks what every cell has", path.name)


def _error(code: str, message: str, where: str, fix: str = _RESTORE) -> Finding:
    return Finding(code, Severity.ERROR, message, fix, where=where)


def _cells(step: StepRecord, nb: Mapping[str, Any], where: str) -> Iterator[Finding]:
    code = [cell for cell in nb["cells"] if cell["cell_type"] == "code"]
    digest = normalise.code_sha256(nb)
    if step.code_sha256 and digest != step.code_sha256:
        yield _error("P-004", "its cells are not those of the source notebook: some are missing or edited", where)
    if step.status in _COMPLETE:
        for number, cell in enumerate(code, 1):
            ran = normalise.state(cell) == normalise.RAN and cell.get("execution_count") is not None
            if normalise.joined(cell["source"]).strip() and not ran:
                yield _error("P-004", f"the step {step.status}, but code cell {number} did not run", where)
        for number, cell in enumerate(code, 1):
            if any(output["output_type"] == "error" for output in cell["outputs"]):
                yield _error("P-017", f"the step {step.status}, but code cell {number} shows an exception", where)
    yield from _drawable(code, where)
    yield from _source(step, digest)


def _drawable(code: list[Any], where: str) -> Iterator[Finding]:
    for number, cell in enumerate(code, 1):
        for block in outputs.blocks(cell["outputs"], ""):
            if isinstance(block, outputs.Figure) and block.chart.problems:
                message = f"figure of code cell {number}: {'; '.join(block.chart.problems)}"
                yield Finding(
                    "P-018", Severity.WARNING, message, "use another trace type, and show.figure", where=where
                )


def _source(step: StepRecord, digest: str) -> Iterator[Finding]:
    try:
        now = normalise.code_sha256(load(paths.root() / step.notebook))
    except (UsageError, KeyError, TypeError):
        return  # no checkout here, or the notebook is gone: nothing to compare with
    if now != digest:
        message = "the source notebook has changed since this report was made"
        yield Finding("P-019", Severity.INFO, message, "run again to report on the new one", where=step.notebook)


def _parameters(step: StepRecord, nb: Mapping[str, Any], where: str) -> Iterator[Finding]:
    cells = {tag: cell for cell in nb["cells"] for tag in normalise.tags(cell)}
    defaults = _assigned(cells.get(normalise.PARAMETERS))
    injected = _assigned(cells.get(normalise.INJECTED))
    if defaults is None or injected is None:
        yield _error("P-005", "a parameters cell holds more than literals", where)
        return
    effective = {**defaults, **injected}
    wrong = [name for name, value in injected.items() if name not in step.parameters or step.parameters[name] != value]
    wrong += [name for name, value in step.parameters.items() if name not in wrong and effective.get(name) != value]
    if wrong:
        yield _error("P-005", f"the notebook ran with other parameters than the record says: {', '.join(wrong)}", where)


def _assigned(cell: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Names and values that a parameters cell sets, as JSON would hold them; None if it does anything else."""
    if cell is None:
        return {}
    values: dict[str, Any] = {}
    try:
        for statement in ast.parse(normalise.joined(cell["source"])).body:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                return None
            values[statement.targets[0].id] = _literal(statement.value)
    except (SyntaxError, ValueError):
        return None
    return dict(json.loads(json.dumps(values, default=str)))


def _literal(node: ast.expr) -> Any:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "float"
        and len(node.args) == 1
    ):
        return float(ast.literal_eval(node.args[0]))  # papermill writes float('inf')
    return ast.literal_eval(node)


def _results(folder: Path, step: StepRecord, nb: Mapping[str, Any] | None) -> Iterator[Finding]:
    if not step.results:
        return
    name = f"{step.name}.results.json"
    try:
        document = json.loads((folder / name).read_bytes())
        stored = {"values": document["values"], "findings": document["findings"]}
    except (OSError, ValueError, KeyError, TypeError):
        yield _error("P-006", "the results file is missing or damaged", name)
        return
    # The runner may add findings of its own behind the notebook's.
    recorded = {"values": step.results, "findings": list(step.findings)[: len(stored["findings"])]}
    yield from _same("the record and the results file differ", recorded, stored, name)
    if nb is None:
        return
    shown = [
        block
        for cell in nb["cells"]
        if cell["cell_type"] == "code"
        for block in outputs.blocks(cell["outputs"], "")
        if isinstance(block, outputs.Results)
    ]
    if not shown:
        yield _error("P-006", "the executed notebook does not show the results", f"{step.name}.ipynb")
        return
    notebook = {"values": dict(shown[-1].values), "findings": list(shown[-1].findings)}
    yield from _same("the notebook and the results file differ", notebook, stored, f"{step.name}.ipynb")


def _same(message: str, left: Any, right: Any, where: str) -> Iterator[Finding]:
    found = list(differences(right, left))
    if found:
        names = ", ".join(line.split(":")[0] for line in found[:4])
        yield _error("P-006", f"{message}: {names}", where)


def _verdict(step: StepRecord) -> Iterator[Finding]:
    values = {name: entry.get("value") for name, entry in step.results.items()}
    wrong = [e.name for e in step.expectations if _met(e, values) != e.met]
    if wrong:
        yield _error("P-007", f"the verdict on {', '.join(wrong)} does not follow from the results", f"step {step.id}")
    unmet = [e.name for e in step.expectations if not _met(e, values)]
    grave = [str(f.get("code")) for f in step.findings if f.get("severity") == Severity.ERROR.value]
    if step.status in (Status.PASSED, Status.WAITING):
        against = [*unmet, *grave, *(["its failure"] if step.failure else [])]
        if against:
            yield _error("P-007", f"the step {step.status}, against {', '.join(against)}", f"step {step.id}")
    elif step.status is Status.FAILED and not unmet and not grave:
        yield _error("P-007", "the step failed, and everything that was required is met", f"step {step.id}")


def _met(expectation: Expectation, values: dict[str, Any]) -> bool:
    try:
        condition = expect.parse(expectation.expected)
    except BadExpectationError:
        return False
    judged = expect.judge(expectation.name, condition, values)
    if condition.operation == "==" and condition.operand == expectation.expected:
        return judged.actual == expectation.expected  # a plain value, of which the record keeps the text
    return judged.met


def _recordings(folder: Path, step: StepRecord) -> Iterator[Finding]:
    for name, digest in step.recordings.items():
        path = folder / name
        if not path.is_file():
            yield _error("P-008", "a recording is missing, so the report cannot be replayed", name)
        elif sha256(path.read_bytes()) != digest:
            yield _error("P-008", "a recording is not the one of the record", name)


def _sign_offs(step: StepRecord) -> Iterator[Finding]:
    for role in step.sign_off_roles:
        state = sign_off_state(step, role)
        if state != "valid" and step.status is Status.PASSED:
            message = f"the step passed, but the sign-off of {role} is {state}"
            yield _error("P-020", message, f"step {step.id}", f"`nemolab sign-off` as {role}")
