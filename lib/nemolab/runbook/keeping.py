"""Which steps of an earlier run still hold, so that they are kept and not measured again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemolab.core.files import sha256
from nemolab.core.status import Status
from nemolab.runbook import expect
from nemolab.runbook.plan import Plan, PlannedStep
from nemolab.runbook.record import RunRecord, StepRecord

_KEEPABLE = (Status.PASSED, Status.WAITING, Status.FAILED)


@dataclass(frozen=True)
class Decision:
    """About one step.

    Attributes:
        kept: its record, judged anew by today's expectations and sign-offs; None when it must run.
        why: why it must run, in a few words ("" when kept).
        key: its key, None while it hangs on results that are yet to come.
    """

    kept: StepRecord | None
    why: str = ""
    key: str | None = None


def decide(plan: Plan, earlier: RunRecord | None, folder: Path | None) -> dict[str, Decision]:
    """Look at the run in `folder` and decide for every step that is not skipped. Reads, writes nothing."""
    old = {step.id: step for step in earlier.steps} if earlier else {}
    decisions: dict[str, Decision] = {}
    keys: dict[str, str] = {}
    results: dict[str, dict[str, Any]] = {}
    for step in (s for s in plan.steps if not s.skip):
        before = old.get(step.id)
        if before and step.step.service and before.results:  # its dependants may hold although it must run again
            results[step.id] = values_of(before)
        decision = _decide(step, plan, before, earlier, folder, keys, results, decisions)
        decisions[step.id] = decision
        if decision.key:
            keys[step.id] = decision.key
        if decision.kept:
            results[step.id] = values_of(decision.kept)
    for step in reversed(plan.steps):  # a server is of use only to steps that run
        waiting = [d.id for d in plan.dependants(step.id) if not decisions[d.id].kept]
        if step.step.service and step.id in decisions and decisions[step.id].kept and waiting:
            key = decisions[step.id].key
            decisions[step.id] = Decision(None, f"its server is needed by {', '.join(waiting)}", key)
    return decisions


def values_of(step: StepRecord) -> dict[str, Any]:
    """Name -> value of a step's results."""
    return {name: entry["value"] for name, entry in step.results.items()}


def sign_off_status(step: StepRecord) -> tuple[Status, str]:
    """PASSED, or WAITING with the roles that have not signed this key."""
    signed = {s.role for s in step.sign_offs if s.key == step.key}
    missing = [role for role in step.sign_off_roles if role not in signed]
    return (Status.WAITING, f"waits for sign-off by {', '.join(missing)}") if missing else (Status.PASSED, "")


def _decide(
    step: PlannedStep,
    plan: Plan,
    before: StepRecord | None,
    earlier: RunRecord | None,
    folder: Path | None,
    keys: dict[str, str],
    results: dict[str, dict[str, Any]],
    decisions: dict[str, Decision],
) -> Decision:
    skipped = {s.id for s in plan.steps if s.skip}
    needed = {need: keys.get(need, "skipped" if need in skipped else "") for need in step.needs}
    known = all(needed.values()) and all(ref.owner in results for ref in step.refs())
    key = step.key(results, needed, plan.services) if known else None
    if before is None or earlier is None or folder is None:
        return Decision(None, "never run" if earlier else "no earlier run", key)
    if before.status not in _KEEPABLE:
        return Decision(None, f"it ended {before.status.value!r}", key)
    again = [n for n in step.needs if n not in skipped and not decisions[n].kept and n not in plan.services]
    if again:
        return Decision(None, f"{again[0]} runs again", key)
    if key is None:
        return Decision(None, "it needs results that are yet to come")
    if before.name != step.name:  # its files, and what stands in them, carry the name
        return Decision(None, f"it was {before.name} and is now {step.name}", key)
    if before.key != key:
        return Decision(None, "code, library or parameters changed", key)
    if missing := _damaged(folder, before):
        return Decision(None, f"{missing} is missing or changed", key)
    conditions = step.expectations(results)
    values = values_of(before)
    met = tuple(expect.judge(name, condition, values) for name, condition in conditions.items())
    if not all(e.met for e in met) or any(f.get("severity") == "error" for f in before.findings):
        return Decision(None, "it did not meet its expectations", key)
    update = {
        "expectations": met,
        "sign_off_roles": tuple(step.step.sign_off),
        "sign_offs": tuple(s for s in before.sign_offs if s.key == key),
        "hint": step.step.on_fail or "",
        "kept_from": before.kept_from or earlier.run_id,
    }
    kept = before.model_copy(update=update)
    status, reason = sign_off_status(kept)
    return Decision(kept.model_copy(update={"status": status, "reason": reason}), "", key)


def _damaged(folder: Path, step: StepRecord) -> str:
    """The first file of the step that is not as it was recorded, "" if all are."""
    files = {f"{step.name}.ipynb": step.notebook_sha256, **step.recordings}
    for name, digest in files.items():
        try:
            if sha256((folder / name).read_bytes()) != digest:
                return name
        except OSError:
            return name
    try:
        stored = json.loads((folder / f"{step.name}.results.json").read_bytes())["values"]
    except (OSError, ValueError, KeyError, TypeError):
        stored = None
    return "" if stored == step.results else f"{step.name}.results.json"
