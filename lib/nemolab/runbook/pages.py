"""The pages of a report: pure functions from a record and its cells to HTML."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from nemolab.core.finding import Severity
from nemolab.core.status import Status
from nemolab.runbook import render
from nemolab.runbook.record import RunRecord, StepRecord
from nemolab.runbook.render import duration, when
from nemolab.runbook.views import StepView, sign_off_state

_GRAVITY = [str(severity) for severity in Severity]


def index(run: RunRecord, steps: Sequence[StepView]) -> str:
    """The page of the run, complete in itself."""
    requirements = [row for view in steps for row in view.rows if row.expectation]
    findings = [{**finding, "step": view.step.id} for view in steps for finding in view.step.findings]
    return render.page(
        "index.html.j2",
        [figure for view in steps for figure in view.figures],
        run=run,
        steps=steps,
        requirements=requirements,
        met_count=sum(row.expectation.met for row in requirements if row.expectation),
        findings=sorted(findings, key=lambda f: _GRAVITY.index(f["severity"]) if f["severity"] in _GRAVITY else 99),
        summary=_summary(run),
        facts=list(_run_facts(run)),
        anew=[PurePosixPath(name).name for step in run.steps for name in step.anew],
        also=list(_also(run)),
        sign_offs=list(_sign_offs(run.steps)),
        host=list(_flat(run.host)),
        command=shlex.join(run.command) if not run.measured_in else _measuring(run),
    )


def step(run: RunRecord, steps: Sequence[StepView], number: int) -> str:
    """The page of step `number` (from 1): the executed notebook."""
    view = steps[number - 1]
    return render.page(
        "step.html.j2",
        view.figures,
        run=run,
        steps=steps,
        step=view.step,
        cells=view.cells,
        number=number,
        facts=list(_step_facts(run, view.step)),
    )


def _summary(run: RunRecord) -> str:
    passed = sum(step.status == Status.PASSED for step in run.steps)
    expectations = [e for step in run.steps for e in step.expectations]
    text = f"{passed} of {len(run.steps)} steps passed"
    if expectations:
        text += f"; {sum(e.met for e in expectations)} of {len(expectations)} requirements met"
    return text + "."


def _run_facts(run: RunRecord) -> Iterator[tuple[str, str]]:
    # A replay names the run that measured and no times of its own, so two replays of a run are the same file.
    yield "Replay of" if run.replay_of else "Run", run.replay_of or run.run_id
    if run.measured_in and run.measured:
        yield "Measured", when(run.measured)
        yield "Computed", when(run.started)
    elif not run.replay_of:
        yield "Started", when(run.started)
        if run.ended:
            yield "Took", duration((run.ended - run.started).total_seconds())
    if run.audience:
        yield "For", run.audience
    if "nemolab" in run.versions:
        yield "nemolab", run.versions["nemolab"]


def _also(run: RunRecord) -> Iterator[dict[str, Any]]:
    """The further runs that recordings were taken from: which ones, and how their machine differs from the first."""
    first = dict(_flat(run.host))
    for each in run.measured_also:
        names = [PurePosixPath(n).name for step in run.steps for n, made in step.also.items() if made == each.run_id]
        here = dict(_flat(each.host))
        other = [f"{key} {here.get(key, 'not known')}" for key in first | here if here.get(key) != first.get(key)]
        yield {"run": each, "names": names, "other": other}


def _measuring(run: RunRecord) -> str:
    """The command that measures again what a run took from recordings: the run that it names may lie elsewhere."""
    sets = [f"{name}={_set(value)}" for name, value in run.parameters.items() if value is not None]
    words = [f"nemolab run {shlex.quote(run.runbook_path)}", *(f"--set {shlex.quote(text)}" for text in sets)]
    return " \\\n  ".join(words)


def _set(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _step_facts(run: RunRecord, step: StepRecord) -> Iterator[tuple[str, str]]:
    yield "Replay of" if run.replay_of else "Run", run.replay_of or run.run_id
    if not run.replay_of:
        if step.started:
            yield "Started", when(step.started)
        if step.seconds is not None:
            yield "Took", duration(step.seconds)
    yield "Notebook", PurePosixPath(step.notebook).stem
    for role in step.sign_off_roles:
        yield f"Sign-off of {role}", sign_off_state(step, role)


def _sign_offs(steps: Iterable[StepRecord]) -> Iterator[dict[str, str]]:
    look = {"valid": ("good", "✓"), "no longer valid": ("bad", "✗"), "missing": ("wait", "…")}
    for step in steps:
        for given in step.sign_offs:
            state = "valid" if given.key == step.key else "no longer valid"
            tone, sign = look[state]
            yield {
                "step": step.id, "role": given.role, "state": state, "tone": tone, "sign": sign,
                "by": given.by, "at": when(given.at), "note": given.note,
            }  # fmt: skip
        for role in step.sign_off_roles:
            if all(given.role != role for given in step.sign_offs):
                tone, sign = look["missing"]
                yield {
                    "step": step.id, "role": role, "state": "missing", "tone": tone, "sign": sign,
                    "by": "", "at": "", "note": "",
                }  # fmt: skip


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Nested host facts as rows: `gpus.0.name`."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, f"{name}.{number}")
    else:
        yield name, value if value or not isinstance(value, list | Mapping) else "none"
