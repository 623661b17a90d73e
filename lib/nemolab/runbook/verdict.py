"""How a step ended, from what is known for sure: the worker's outcome, a static check of what it left, expectations."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemolab.core.contract import Results
from nemolab.core.files import sha256, write_atomic
from nemolab.core.finding import Finding, Severity
from nemolab.core.secrets import find_key_shapes, redact, secret_like
from nemolab.core.status import Status
from nemolab.notebook.results import SCHEMA
from nemolab.runbook import expect
from nemolab.runbook.expect import Condition
from nemolab.runbook.job import Ending, Outcome
from nemolab.runbook.normalise import NOT_RUN, normalise, state, strip_ansi, to_text
from nemolab.runbook.record import Expectation, Failure

STATUS = {
    Ending.DONE: Status.PASSED,
    Ending.ERROR: Status.ERROR,
    Ending.CRASHED: Status.ERROR,
    Ending.TIMED_OUT: Status.TIMED_OUT,
    Ending.KILLED: Status.KILLED,
    Ending.INTERRUPTED: Status.INTERRUPTED,
}
_TRACEBACK_LINES = 30
_SHORTEST_SECRET = 8  # characters; shorter values of secret variables would hit ordinary text


@dataclass(frozen=True)
class Left:
    """What a step left in the run folder, checked.

    Attributes:
        problem: what is wrong with it although the notebook ended by itself, "" if nothing.
        leaks: kinds of secrets that were removed from it.
    """

    notebook_sha256: str
    results: dict[str, Any]
    findings: tuple[dict[str, Any], ...]
    recordings: dict[str, str]
    problem: str = ""
    leaks: tuple[str, ...] = ()


def secrets_of(parameters: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Values that may not be stored, and what to write instead: those of variables that parameters name
    (`api_key_env`) and of variables whose own name says that they hold a secret."""
    names = {str(value) for name, value in parameters.items() if name.endswith("_env") and value}
    names |= {name for name in environment if secret_like(name)}
    values = {name: environment.get(name, "") for name in sorted(names)}
    return {value: f"[{name} removed]" for name, value in values.items() if len(value) >= _SHORTEST_SECRET}


def collect(
    folder: Path, name: str, raw: Path, outcome: Outcome, model: type[Results], hidden: Mapping[str, str]
) -> Left:
    """Turn the raw notebook of a step into its file in the run folder, and read what else it left.

    Args:
        raw: as the worker saved it; it may be missing or stop anywhere.
        hidden: `secrets_of` the step.
    """
    leaks: list[str] = []
    digest, problem = "", ""
    try:
        document = json.loads(raw.read_bytes())
    except (OSError, ValueError):
        problem = "the executed notebook was not saved"
    else:
        ended = STATUS[outcome.ending]
        clean = normalise(document, hide={str(folder): "<run>"}, failed_cell=outcome.cell_id, ended=ended)
        text = to_text(_without_secrets(clean, hidden, leaks)).encode()
        write_atomic(folder / f"{name}.ipynb", text)
        digest = sha256(text)
        skipped = [n for n, cell in enumerate(clean["cells"], 1) if _did_not_run(cell)]
        if skipped and outcome.ending is Ending.DONE:
            problem = f"cell {skipped[0]} did not run, although the notebook ended"
    results, findings, unread = _results(folder / f"{name}.results.json", model)
    recordings = {
        str(path.relative_to(folder)): sha256(path.read_bytes())
        for path in sorted((folder / "recordings" / name).rglob("*.json"))
    }
    return Left(digest, results, findings, recordings, problem or unread, tuple(dict.fromkeys(leaks)))


def judge(
    outcome: Outcome, left: Left, conditions: Mapping[str, Condition], *, server: str = ""
) -> tuple[Status, str, tuple[Expectation, ...], tuple[dict[str, Any], ...], Failure | None]:
    """Status, reason, expectations, findings and failure of a step.

    Args:
        server: why a server of the run died during the step, "" if none did.
    """
    values = {name: entry["value"] for name, entry in left.results.items()}
    findings = (*left.findings, *(_leak(kind).as_dict() for kind in left.leaks))
    status = STATUS[outcome.ending]
    if server and outcome.ending not in (Ending.INTERRUPTED, Ending.TIMED_OUT):  # whatever the cells made of it
        failed = failure(outcome) if outcome.ending is Ending.ERROR else Failure(kind="server died", message=server)
        return Status.KILLED, server, (), findings, failed
    if outcome.ending is not Ending.DONE:
        return status, reason(outcome), (), findings, failure(outcome)
    if left.problem:
        return Status.ERROR, left.problem, (), findings, Failure(kind="incomplete", message=left.problem)
    expectations = tuple(expect.judge(name, condition, values) for name, condition in conditions.items())
    reasons = [f"{e.name} is {e.actual}, expected {e.expected}" for e in expectations if not e.met]
    grave = [f for f in findings if f.get("severity") == Severity.ERROR.value]
    reasons += [f"{f['code']}: {f['message']}" for f in grave]
    return (Status.FAILED if reasons else Status.PASSED), "; ".join(reasons), expectations, findings, None


def reason(outcome: Outcome) -> str:
    """One sentence on an outcome that is not DONE."""
    if outcome.ending is not Ending.ERROR:
        return outcome.message or outcome.ending.value
    first = strip_ansi(outcome.message).strip().partition("\n")[0]
    return redact(f"cell {outcome.cell}: {outcome.kind}: {first}" if first else f"cell {outcome.cell}: {outcome.kind}")


def failure(outcome: Outcome) -> Failure:
    """The failure as recorded: without colour codes and secrets, the advice of a NemolabError apart."""
    message, _, fix = strip_ansi(outcome.message).partition("\n  fix: ")
    lines = redact(strip_ansi(outcome.traceback)).splitlines()
    return Failure(
        kind=outcome.kind or outcome.ending.value,
        message=redact(message.strip()),
        cell=outcome.cell,
        cell_id=outcome.cell_id,
        traceback="\n".join(lines[-_TRACEBACK_LINES:]),
        fix=redact(fix.strip()),
    )


def _results(path: Path, model: type[Results]) -> tuple[dict[str, Any], tuple[dict[str, Any], ...], str]:
    try:
        document = json.loads(path.read_bytes())
        values, findings = dict(document["values"]), tuple(document["findings"])
    except FileNotFoundError:
        return {}, (), "it published no results"
    except (OSError, ValueError, KeyError, TypeError):
        return {}, (), f"{path.name} cannot be read"
    if document.get("schema") != SCHEMA or set(values) != set(model.model_fields):
        return {}, (), f"{path.name} does not hold the results that the notebook promises"
    return values, findings, ""


def _did_not_run(cell: Mapping[str, Any]) -> bool:
    return cell["cell_type"] == "code" and state(cell) == NOT_RUN


def _without_secrets(value: Any, hidden: Mapping[str, str], leaks: list[str]) -> Any:
    """`value` (JSON) with every key-shaped or secret text replaced; what was found is added to `leaks`."""
    if isinstance(value, str):
        for secret, name in hidden.items():
            if secret in value:
                leaks.append(f"value of {name[1:].removesuffix(' removed]')}")
                value = value.replace(secret, name)
        if shapes := find_key_shapes(value):
            leaks.extend(kind for kind, _ in shapes)
            value = redact(value)
        return value
    if isinstance(value, list):
        return [_without_secrets(item, hidden, leaks) for item in value]
    if isinstance(value, dict):
        return {key: _without_secrets(item, hidden, leaks) for key, item in value.items()}
    return value


def _leak(kind: str) -> Finding:
    return Finding(
        code="N-900",
        severity=Severity.ERROR,
        message=f"The executed notebook showed a secret ({kind}). It was removed from the report.",
        fix="Find the cell that shows it, and revoke the key: it has been in a process's output.",
        source="nemolab.core.secrets",
    )


def hide(text: str, hidden: Mapping[str, str]) -> str:
    """`text` without the secrets."""
    if hidden:
        text = re.sub("|".join(map(re.escape, hidden)), lambda m: hidden[m[0]], text)
    return redact(text)


def worst(statuses: Iterable[Status]) -> Status:
    """The status of a run whose steps ended so."""
    order = list(_GRAVITY)
    found = [status for status in statuses if status is not Status.SKIPPED]
    return min(found, key=order.index, default=Status.PASSED)


_GRAVITY = (
    Status.INTERRUPTED,
    Status.KILLED,
    Status.TIMED_OUT,
    Status.ERROR,
    Status.FAILED,
    Status.WAITING,
    Status.RUNNING,
    Status.NOT_RUN,
    Status.PASSED,
)
