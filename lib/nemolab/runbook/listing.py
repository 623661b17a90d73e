"""Lists for a person: runbooks, runs, and a plan before it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nemolab.core import paths
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.status import Status
from nemolab.runbook import references, spec, store
from nemolab.runbook.console import MARKS, duration
from nemolab.runbook.keeping import Decision
from nemolab.runbook.plan import Plan, PlannedStep
from nemolab.runbook.record import RunRecord


def runbooks() -> Iterator[str]:
    """Every runbook with its title, its time, and how its last run ended."""
    files = sorted(paths.runbooks().glob("*.yaml"))
    if not files:
        yield f"no runbooks in {paths.runbooks()}"
    width = max((len(path.stem) for path in files), default=0)
    for path in files:
        try:
            book = spec.load(path).book
        except UsageError as error:
            yield f"{path.stem:<{width}}  ! {error}"
            continue
        yield f"{path.stem:<{width}}  {book.title}" + (f" ({book.time})" if book.time else "")
        yield f"{'':<{width}}  {_last(path.stem)}"


def runs(runbook: str) -> Iterator[str]:
    """Every run of a runbook, the newest first."""
    name = spec.find(runbook).stem
    folders = store.runs_of(name)
    if not folders:
        yield f"{name} was never run: nemolab run {name}"
    for folder in folders:
        try:
            found = store.read(folder)
        except NemolabError as error:
            yield f"! {folder.name}  {error.what}"
            continue
        took = f" in {duration((found.ended - found.started).total_seconds())}" if found.ended else ""
        yield f"{MARKS[found.status]} {found.run_id}  {found.status.value}{took}"
        for reason in found.reasons:
            yield f"    {reason}"


def plan(made: Plan, earlier: RunRecord | None, decisions: Mapping[str, Decision]) -> Iterator[str]:
    """What would run, in order, with what, and what would be kept."""
    book = made.spec.book
    yield f"{book.title} ({made.spec.path.name})"
    for label, text in (("purpose", book.purpose), ("time", book.time), ("risk", book.risk), ("undo", book.rollback)):
        if text:
            yield f"  {label}: {' '.join(text.split())}"
    for name, value in made.parameters.items():
        yield f"  {name} = {value!r}  # {book.parameters[name].help}"
    yield f"steps, {'nothing to keep' if not earlier else f'against run {earlier.run_id}'}:"
    for step in made.steps:
        decision = decisions.get(step.id)
        if step.skip:
            what = f"skip: {step.skip}"
        elif decision and decision.kept:
            signed = decision.kept.reason if decision.kept.status is Status.WAITING else ""
            what = "keep" + (f", {signed}" if signed else "")
        else:
            what = f"run: {decision.why}" if decision and decision.why else "run"
        yield f"  {step.name}  {step.contract.relative}  {what}"
        limits = [f"at most {duration(step.step.timeout)}"]
        limits += [f"needs {', '.join(step.needs)}"] if step.needs else []
        limits += ["alone"] if step.step.exclusive else []
        limits += ["leaves a server"] if step.step.service else []
        limits += [f"sign-off by {', '.join(step.step.sign_off)}"] if step.step.sign_off else []
        yield f"      {'; '.join(limits)}"
        for name, value in step.given.items():
            yield f"      with {name} = {_resolved(step, value)}"
        for name, value in step.conditions.items():
            yield f"      expect {name}: {_resolved(step, value)}"


def _resolved(step: PlannedStep, value: Any) -> str:
    """A value as it will be, or as it is written where it hangs on a step's result."""
    if any(ref.value for ref in references.find(value)):
        return str(value)
    return json.dumps(step.resolve({"": value}, {})[""], ensure_ascii=False)


def _last(runbook: str) -> str:
    for folder in store.runs_of(runbook):
        try:
            found = store.read(folder)
        except NemolabError:
            continue
        return f"{MARKS[found.status]} {found.status.value} on {found.started:%Y-%m-%d %H:%M} UTC ({found.run_id})"
    return "- never run"
