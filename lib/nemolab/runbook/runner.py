"""Run a plan: start what is ready, listen, judge, record after every step, and end with nothing left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from nemolab.core import paths
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.files import write_atomic
from nemolab.core.status import Status
from nemolab.core.step import Step as CoreStep
from nemolab.engines import identity
from nemolab.notebook.progress import FILE as PROGRESS
from nemolab.runbook import store, surroundings, verdict
from nemolab.runbook.console import Console, Tail
from nemolab.runbook.job import AtCell, Ending, Job, Outcome
from nemolab.runbook.keeping import Decision, sign_off_status, values_of
from nemolab.runbook.plan import Plan, PlannedStep
from nemolab.runbook.pool import Pool
from nemolab.runbook.record import Failure, RunRecord, StepRecord

WORK = ".work"
RUNNER_PID = "NEMOLAB_RUNNER_PID"
_TICK = 0.2  # seconds
_SERVERS_EVERY = 1.0
_PATIENCE = 15.0  # seconds that a step has to notice by itself that its server died
_FINE = (Status.PASSED, Status.SKIPPED)


@dataclass(frozen=True)
class Kept:
    """Steps that need not run, and the folder that they lie in."""

    folder: Path
    decisions: Mapping[str, Decision]


class Runner:
    """One run of a plan in one folder."""

    def __init__(
        self, plan: Plan, folder: Path, record: RunRecord, kept: Kept | None, console: Console, jobs: int
    ) -> None:
        self._plan, self._folder, self._console, self._jobs = plan, folder, console, max(1, jobs)
        self._record = record
        self._steps = {step.id: step for step in record.steps}
        self._kept = kept
        self._planned = {step.id: step for step in plan.steps}
        self._pool: Pool | None = None
        self._tails: dict[str, Tail] = {}
        self._began: dict[str, float] = {}
        self._servers = Servers(record.run_id)
        self._stop: str = ""  # why the run is ending early
        self._facts = _InBackground(self._look_around)

    def run(self) -> RunRecord:
        """Run to the end, whatever it is; the record says what it was.

        Raises:
            NemolabError: the record cannot be written (a full disk); all processes have been ended by then.
        """
        with store.locked(self._folder), self._signals():
            try:
                self._keep()
                self._write()
                self._loop()
                self._end()
            except NemolabError as error:  # the folder cannot be written to
                self._give_up(error)
                raise
            finally:
                if self._pool:
                    self._pool.abandon()
                self._servers.stop()
                shutil.rmtree(self._folder / WORK, ignore_errors=True)
                self._console.close()
        return self._record

    # What is kept

    def _keep(self) -> None:
        for step in self._plan.steps:
            decision = self._kept.decisions.get(step.id) if self._kept else None
            if decision is None or decision.kept is None or self._kept is None:
                continue
            kept = decision.kept
            if self._kept.folder != self._folder:
                copy_step(self._kept.folder, self._folder, step.name)
            elif kept.kept_from == self._record.run_id:
                kept = kept.model_copy(update={"kept_from": None})
            self._steps[step.id] = kept
            self._console.ended(kept)

    def _look_around(self) -> dict[str, Any]:
        """The host's facts. And one rendering of the pages for nothing: templates are then compiled when a report is
        due, for which this process has time now and the reader has none later."""
        from nemolab.runbook import report

        found = surroundings.host()
        report.render(self._folder, self._record)
        return found

    # The loop

    def _loop(self) -> None:
        while True:
            if not self._stop:
                self._start_ready()
            if self._pool is None or not len(self._pool):
                return
            for event in self._pool.poll(_TICK):
                if isinstance(event.what, AtCell):
                    self._console.progress(event.name, f"cell {event.what.number} of {event.what.of}")
                else:
                    self._finish(self._planned[event.name], event.what)
            self._show_progress()
            self._watch_servers()
            if self._stop:
                for name in self._pool.names():
                    self._end_step(name)

    def _start_ready(self) -> None:
        changed = True
        while changed and not self._stop:
            changed = False
            for step in self._plan.steps:
                if self._steps[step.id].status is not Status.NOT_RUN or self._steps[step.id].reason:
                    continue
                if self._settled_without_running(step):
                    changed = True
                elif self._ready(step) and self._room_for(step):
                    self._start(step)
                    changed = True

    def _settled_without_running(self, step: PlannedStep) -> bool:
        """Mark a step that will not run, and say why."""
        if step.skip:
            self._settle(step, Status.SKIPPED, step.skip)
            return True
        for need in step.needs:
            other = self._steps[need]
            if other.status is Status.WAITING:
                self._settle(step, Status.NOT_RUN, f"{need} {other.reason}")
                return True
            if other.status is Status.SKIPPED and any(ref.owner == need for ref in step.refs()):
                self._settle(step, Status.SKIPPED, f"it takes results of {need}, which is skipped")
                return True
            if other.status not in (*_FINE, Status.RUNNING, Status.NOT_RUN):
                self._settle(step, Status.NOT_RUN, f"{need} did not pass ({other.status.value})")
                return True
            if other.status is Status.NOT_RUN and other.reason:
                self._settle(step, Status.NOT_RUN, f"{need} did not run")
                return True
        return False

    def _settle(self, step: PlannedStep, status: Status, reason: str) -> None:
        self._put(step.id, status=status, reason=reason)
        self._console.ended(self._steps[step.id])

    def _ready(self, step: PlannedStep) -> bool:
        return all(self._steps[need].status in _FINE for need in step.needs)

    def _room_for(self, step: PlannedStep) -> bool:
        running = [self._planned[s.id] for s in self._steps.values() if s.status is Status.RUNNING]
        if not running:
            return True
        alone = step.step.exclusive or any(other.step.exclusive for other in running)
        return not alone and len(running) < self._jobs

    def _start(self, step: PlannedStep) -> None:
        results = {step_id: values_of(record) for step_id, record in self._steps.items()}
        try:
            parameters = step.parameters(results)
        except UsageError as error:
            failed = Failure(kind="parameters", message=error.what, fix=error.fix or "")
            self._put(step.id, status=Status.ERROR, reason=error.what.partition("\n")[0], failure=failed)
            self._console.ended(self._steps[step.id])
            return
        _remove(self._folder, step.name)
        scratch = self._folder / WORK / step.name
        job = make_job(
            step.contract.path, parameters, self._folder, step.name, scratch,
            run_id=self._record.run_id, cell_timeout=step.step.cell_timeout or step.step.timeout, replay=False,
        )  # fmt: skip
        self._servers.begin(step.id)
        self._began[step.id] = time.monotonic()
        self._pool = self._pool or Pool()
        self._pool.start(step.id, job, timeout=step.step.timeout)
        # What can be done while the kernel starts is done now.
        needed = {need: self._steps[need].key or "skipped" for need in step.needs}
        self._put(
            step.id,
            status=Status.RUNNING,
            started=datetime.now(UTC),
            parameters=parameters,
            key=step.key(results, needed, self._plan.services),
            code_sha256=step.contract.code_sha256,
        )
        self._write()
        self._console.started(self._steps[step.id])
        self._tails[step.id] = Tail(scratch / "progress")
        self._facts.start()

    def _finish(self, step: PlannedStep, outcome: Outcome) -> None:
        seconds = round(time.monotonic() - self._began[step.id], 3)
        record = self._steps[step.id]
        hidden = verdict.secrets_of(record.parameters)
        raw = self._folder / WORK / step.name / "notebook.ipynb"
        left = verdict.collect(self._folder, step.name, raw, outcome, step.contract.results, hidden)
        results = {step_id: values_of(other) for step_id, other in self._steps.items()}
        server = self._servers.died_under(step.id)
        status, reason, expectations, findings, failure = verdict.judge(
            outcome, left, step.expectations(results), server=server
        )
        self._put(
            step.id,
            status=status,
            reason=verdict.hide(reason, hidden),
            seconds=seconds,
            results=left.results,
            expectations=expectations,
            findings=findings,
            failure=failure,
            notebook_sha256=left.notebook_sha256,
            recordings=left.recordings,
        )
        if status is Status.PASSED:
            status, reason = sign_off_status(self._steps[step.id])
            self._put(step.id, status=status, reason=reason)
        self._write()
        self._console.ended(self._steps[step.id])

    # Early ends

    def _end_step(self, name: str) -> None:
        assert self._pool is not None
        if name not in self._ending:
            self._ending.add(name)
            self._pool.end(name, Outcome(Ending.INTERRUPTED, message=self._stop))

    def _watch_servers(self) -> None:
        assert self._pool is not None
        for said in self._servers.watch(self._pool.names()):
            self._console.note(f"! {said}")
        for name in self._servers.overdue():
            if name in self._pool.names() and name not in self._ending:
                self._ending.add(name)
                self._pool.end(name, Outcome(Ending.KILLED, message=self._servers.died_under(name)))

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        self._ending: set[str] = set()
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            if self._stop and self._pool:  # asked twice: now
                for name in self._pool.names():
                    self._pool.end(name, Outcome(Ending.INTERRUPTED, message=self._stop))
            name = signal.Signals(number).name
            self._stop = "interrupted by Ctrl-C" if number == signal.SIGINT else f"stopped by {name}"

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _show_progress(self) -> None:
        for step_id, tail in self._tails.items():
            if text := tail.latest():
                self._console.progress(step_id, text)

    # The record

    def _put(self, step_id: str, **update: Any) -> None:
        self._steps[step_id] = self._steps[step_id].model_copy(update=update)

    def _write(self) -> None:
        steps = tuple(self._steps[step.id] for step in self._record.steps)
        self._record = self._record.model_copy(update={"steps": steps})
        self._record.write(self._folder)

    def _give_up(self, error: NemolabError) -> None:
        with contextlib.suppress(NemolabError):  # then the record stays as it was, and its runner is dead
            end = {"status": Status.ERROR, "reasons": (error.what,), "pid": None, "pid_started": None}
            store.killed(self._record).model_copy(update=end).write(self._folder)

    def _end(self) -> None:
        if self._stop:
            for step_id, step in self._steps.items():
                if step.status is Status.NOT_RUN and not step.reason:
                    self._put(step_id, reason="the run was stopped before it")
        stopped = [self._stop] if self._stop else []
        self._servers.stop()
        self._write()
        self._record = finished(self._record, facts=self._facts.result(), stopped=stopped)
        self._record.write(self._folder)


class Servers:
    """The servers of a run, as the engines package keeps them: which died under a step, and an end to all."""

    def __init__(self, run_id: str) -> None:
        self._run, self._looked = run_id, 0.0
        self._used: dict[str, set[str]] = {}  # step -> servers that ran when it began
        self._died: dict[str, tuple[str, float]] = {}  # step -> sentence, noticed when

    def begin(self, step_id: str) -> None:
        """The step begins, and may use what runs now. A server that it starts itself is its own affair."""
        from nemolab.engines import state

        self._died.pop(step_id, None)
        self._used[step_id] = {server.id for server in state.every() if server.run == self._run and server.running}

    def watch(self, steps: list[str]) -> list[str]:
        """Look now and then; sentences on servers that died under one of the running `steps` since the last look."""
        if time.monotonic() - self._looked < _SERVERS_EVERY:
            return []
        self._looked = time.monotonic()
        before = set(self._died)
        return list(dict.fromkeys(said for step in steps if (said := self.died_under(step)) and step not in before))

    def died_under(self, step_id: str) -> str:
        """Why a server that the step may have used has died, "" if none has."""
        from nemolab.engines import state

        if step_id not in self._died and self._used.get(step_id):
            for server in state.every():
                if server.id in self._used[step_id] and server.run == self._run and server.ended:
                    said = f"server {server.id} (pid {server.pid}) died: {server.ended.reason}"
                    self._died[step_id] = (said, time.monotonic())
        return self._died.get(step_id, ("", 0.0))[0]

    def overdue(self) -> list[str]:
        """Steps that go on although their server died a while ago."""
        now = time.monotonic()
        return [step for step, (_, since) in self._died.items() if now - since > _PATIENCE]

    def stop(self) -> None:
        """Stop every server of the run."""
        from nemolab.engines import process

        process.stop_owned(self._run)


def make_job(
    notebook: Path,
    parameters: dict[str, Any] | None,
    folder: Path,
    name: str,
    scratch: Path,
    *,
    run_id: str,
    cell_timeout: float,
    replay: bool,
) -> Job:
    """The job of one step, with the environment that `core.step` reads in the kernel."""
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
    except OSError as error:
        raise NemolabError(f"cannot write: {error.strerror}", where=str(scratch)) from None
    environment = CoreStep(folder, name, replay, run_id).environment() | {
        RUNNER_PID: str(os.getpid()),
        PROGRESS: str(scratch / "progress"),
        "PYTHONHASHSEED": "0",
        "NEMOLAB_ROOT": str(paths.root()),
    }
    return Job(notebook, parameters, scratch, environment, paths.root(), cell_timeout)


def finished(record: RunRecord, *, facts: dict[str, Any], stopped: list[str]) -> RunRecord:
    """The record of a run that has ended: status and reasons from its steps."""
    status = verdict.worst(step.status for step in record.steps)
    if stopped:
        status = Status.INTERRUPTED
    causes = [s for s in record.steps if s.status not in (*_FINE, Status.NOT_RUN)]
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
            "host": facts,
            "versions": surroundings.versions(record.steps),
        }
    )


def new_record(plan: Plan, run_id: str, *, command: tuple[str, ...], by: str) -> RunRecord:
    """The record of a run that begins now: every step not run."""
    book = plan.spec.book
    return RunRecord(
        run_id=run_id,
        runbook=plan.spec.name,
        runbook_path=_relative(plan.spec.path),
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


class _InBackground:
    """A slow look at the host, made while the first step runs. What goes wrong with it is told, not raised."""

    def __init__(self, work: Callable[[], dict[str, Any]]) -> None:
        self._found: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def _run(self, work: Callable[[], dict[str, Any]]) -> None:
        try:
            self._found = work()
        except Exception as error:  # a fact that cannot be had must not cost the run
            self._found = {"unknown": f"{type(error).__name__}: {error}"}

    def result(self) -> dict[str, Any]:
        """What was found; waits for it a little."""
        self.start()
        self._thread.join(timeout=10)
        return self._found or {"unknown": "the host did not answer in time"}


def _remove(folder: Path, name: str) -> None:
    for path in (folder / f"{name}.ipynb", folder / f"{name}.results.json", folder / f"{name}.html"):
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / "recordings" / name, ignore_errors=True)


def copy_step(source: Path, target: Path, name: str) -> None:
    """Copy a step's files from one run folder to another."""
    _remove(target, name)
    own = [source / f"{name}.ipynb", source / f"{name}.results.json"]
    for path in [*own, *sorted((source / "recordings" / name).rglob("*.json"))]:
        if path.is_file():
            write_atomic(target / path.relative_to(source), path.read_bytes())


def _relative(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(paths.root()))
    except ValueError:
        return path.name


def jobs_by_default() -> int:
    """How many steps may run side by side: the processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
