"""Signing a step off: a name, a role, and the key of what was looked at."""

from __future__ import annotations

from datetime import UTC, datetime

from nemolab.core.errors import UsageError
from nemolab.core.located import nearest
from nemolab.core.status import Status
from nemolab.runbook import store
from nemolab.runbook.keeping import sign_off_status
from nemolab.runbook.record import RunRecord, SignOff, StepRecord
from nemolab.runbook.verdict import worst


def sign(run: str, step_id: str, *, role: str, by: str, note: str = "") -> str:
    """Store a sign-off and write the report again; returns what to do next.

    Raises:
        UsageError: the run goes on, the step did not pass, or it asks for no such role.
    """
    from nemolab.runbook import report

    folder = store.find(run)
    with store.locked(folder):
        found = store.read(folder)
        steps = {step.id: step for step in found.steps}
        if step_id not in steps:
            raise UsageError(f"no step {step_id!r}", where=found.run_id, fix=nearest(step_id, steps))
        signed = _sign(
            steps[step_id], SignOff(role=role, by=by, at=datetime.now(UTC), key=steps[step_id].key, note=note)
        )
        after = _settle(found, signed)
        after.write(folder)
        report.write(folder)
    if signed.status is Status.WAITING:
        return f"signed; {step_id} still {signed.reason}"
    left = [step.id for step in after.steps if step.status not in (Status.PASSED, Status.SKIPPED)]
    return f"signed; `nemolab run --resume {after.run_id}` goes on" if left else f"signed; {after.run_id} passed"


def _sign(step: StepRecord, given: SignOff) -> StepRecord:
    if given.role not in step.sign_off_roles:
        asks = f"it asks for {', '.join(step.sign_off_roles)}" if step.sign_off_roles else "it asks for no sign-off"
        raise UsageError(f"{step.id!r} cannot be signed off as {given.role!r}: {asks}")
    if step.status not in (Status.PASSED, Status.WAITING):
        raise UsageError(f"{step.id!r} {step.status.value}: only a step that passed can be signed off")
    others = tuple(s for s in step.sign_offs if s.role != given.role and s.key == step.key)
    signed = step.model_copy(update={"sign_offs": (*others, given)})
    status, reason = sign_off_status(signed)
    return signed.model_copy(update={"status": status, "reason": reason})


def _settle(run: RunRecord, signed: StepRecord) -> RunRecord:
    steps = tuple(signed if step.id == signed.id else step for step in run.steps)
    status = worst(step.status for step in steps)
    causes = [s for s in steps if s.status not in (Status.PASSED, Status.SKIPPED)]
    reasons = tuple(f"{s.id}: {s.reason or s.status.value}" for s in causes)
    if status is Status.NOT_RUN:  # only steps that waited for this sign-off are left
        status = Status.WAITING
        reasons = (f"{signed.id} is signed off; `nemolab run --resume {run.run_id}` goes on",)
    return run.model_copy(update={"steps": steps, "status": status, "reasons": reasons})
