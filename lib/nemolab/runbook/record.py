"""The record of a run, `run.json`: the one truth about how it ended. Written atomically after every step."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nemolab.core.errors import UsageError
from nemolab.core.files import write_atomic
from nemolab.core.status import Status

FILE = "run.json"
SCHEMA = 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Expectation(_Model):
    """One line of `expect:` and what came of it."""

    name: str
    expected: str  # as written: "true", ">= 1"
    actual: str
    met: bool


class Failure(_Model):
    """Why a step did not end well."""

    kind: str  # exception class, or a status
    message: str
    cell: int | None = None  # number of the code cell, from 1
    cell_id: str | None = None
    traceback: str = ""  # last lines, without colour codes and without secrets
    fix: str = ""


class SignOff(_Model):
    """Who answered for a step. Valid only while `key` is the step's key."""

    role: str
    by: str
    at: datetime
    key: str
    note: str = ""


class StepRecord(_Model):
    """One step of the run."""

    id: str
    name: str  # file stem in the run folder, "04_load"
    title: str
    notebook: str  # source, relative to the checkout
    status: Status
    reason: str = ""  # one sentence, always there unless passed
    key: str = ""
    started: datetime | None = None
    seconds: float | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    results: dict[str, Any] = Field(default_factory=dict)  # `Results.as_document()`
    expectations: tuple[Expectation, ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    failure: Failure | None = None
    kept_from: str | None = None  # run id that the step was measured in, if not in this one
    notebook_sha256: str = ""  # of the executed notebook beside the record
    code_sha256: str = ""  # `normalise.code_sha256` of the source notebook that was executed
    recordings: dict[str, str] = Field(default_factory=dict)  # path relative to the run folder -> sha256
    anew: tuple[str, ...] = ()  # of `recordings`, those that no run of `RunRecord.measured_in`, `measured_also` made
    also: dict[str, str] = Field(default_factory=dict)  # those that a run of `measured_also` made -> its id
    sign_off_roles: tuple[str, ...] = ()
    sign_offs: tuple[SignOff, ...] = ()
    hint: str = ""  # notebook that helps, from `on_fail`


class Measured(_Model):
    """A run whose recordings another one took, and the machine that it measured on."""

    run_id: str
    started: datetime
    host: dict[str, Any] = Field(default_factory=dict)


class RunRecord(_Model):
    """One execution of a runbook."""

    schema_version: int = SCHEMA
    run_id: str
    replay_of: str | None = None  # run whose recordings were replayed; None for a run that measured
    measured_in: str | None = None  # run whose recordings were taken where calls were the same; None for none
    measured: datetime | None = None  # when that run began
    measured_also: tuple[Measured, ...] = ()  # runs whose recordings were taken where that one had none
    runbook: str  # file stem
    runbook_path: str  # relative to the checkout
    runbook_sha256: str
    title: str
    purpose: str = ""
    audience: str = ""
    status: Status
    reasons: tuple[str, ...] = ()
    started: datetime
    ended: datetime | None = None
    pid: int | None = None  # of the runner, while it runs
    pid_started: str | None = None  # `engines.identity.born` of it: the number alone may be another's by now
    by: str = ""  # who asked for the run, if they said so
    command: tuple[str, ...] = ()  # how to reproduce
    parameters: dict[str, Any] = Field(default_factory=dict)
    parameter_help: dict[str, str] = Field(default_factory=dict)
    host: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)  # packages and engines
    steps: tuple[StepRecord, ...] = ()
    symptoms: tuple[dict[str, str], ...] = ()

    def write(self, folder: Path) -> None:
        """Write the record into the run's `folder`, atomically."""
        write_atomic(folder / FILE, self.model_dump_json(indent=1) + "\n")


def read(folder: Path) -> RunRecord:
    """The record in `folder`.

    Raises:
        UsageError: there is none, or it is not a record of this version.
    """
    path = folder / FILE
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError("no run here", where=str(folder), fix="`nemolab list` shows the runs") from None
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"not a run record: {at}: {first['msg']}", where=str(path)) from None
