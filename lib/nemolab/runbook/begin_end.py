"""The record of a run when it begins and when it has ended."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from nemolab.core import paths
from nemolab.core.status import Status
from nemolab.engines import identity
from nemolab.runbook import surroundings, verdict
from nemolab.runbook.plan import Plan, PlannedStep
from nemolab.runbook.record import RunRecord, StepRecord

FINE = (Status.PASSED, Status.SKIPPED)  # steps that stand in nobody's way


def new_record(plan: Plan, run_id: str, *, command: tuple[str, ...], by: str) -> RunRecord:
    """The record of a run that begins now: every step not run."""
    book = plan.spec.book
    return RunRecord(
        run_id=run_id,
        runbook=plan.spec.name,
        runbook_path=paths.inside(plan.spec.path) or plan.spec.path.name,
        runbook_sha256=plan.spec.sha256,
        title=book.title,
        purpose=book.purpose,
        audience=book.audience,
        status=Status.RUNNING,
        started=datetime.now(UTC),
        pid=os.getpid(),
        pid_started=identity.born(os.getpid()),
        by=by,
        command=command,
        parameters=dict(plan.parameters),
        parameter_help={name: parameter.help for name, parameter in book.parameters.items()},
        steps=tuple(_blank(step) for step in sorted(plan.steps, key=lambda step: step.name)),
        symptoms=tuple(symptom.model_dump() for symptom in book.symptoms),
    )


def finished(record: RunRecord, *, facts: dict[str, Any], stopped: list[str]) -> RunRecord:
    """The record of a run that has ended: status and reasons from its steps."""
    status = verdict.worst(step.status for step in record.steps)
    if stopped:
        status = Status.INTERRUPTED
    causes = [s for s in record.steps if s.status not in (*FINE, Status.NOT_RUN)]
    reasons = [*stopped, *(f"{s.id}: {s.reason or s.status.value}" for s in causes)]
    skipped = [s.id for s in record.steps if s.status is Status.SKIPPED]
    if skipped:
        reasons.append(f"skipped: {', '.join(skipped)}")
    return record.model_copy(
        update={
            "status": status,
            "reasons": tuple(reasons),
            "ended": datetime.now(UTC),
            "pid": None,
            "pid_started": None,
            "host": record.host or facts,
            "versions": surroundings.versions(record.steps),
        }
    )


def _blank(step: PlannedStep) -> StepRecord:
    return StepRecord(
        id=step.id,
        name=step.name,
        title=step.contract.title,
        notebook=step.contract.relative,
        status=Status.NOT_RUN,
        sign_off_roles=tuple(step.step.sign_off),
        hint=step.step.on_fail or "",
    )
