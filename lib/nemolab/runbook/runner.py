"""Run a plan: start what is ready, listen, judge, record after every step, and end with nothing left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.status import Status
from nemolab.runbook import begin_end, files, provenance, store, surroundings, verdict
from nemolab.runbook.begin_end import FINE
from nemolab.runbook.console import Console, Tail
from nemolab.runbook.job import AtCell, Ending, Outcome
from nemolab.runbook.keeping import Decision, sign_off_status, values_of
from nemolab.runbook.plan import Plan, PlannedStep
from nemolab.runbook.pool import Pool
from nemolab.runbook.provenance import Source
from nemolab.runbook.record import Failure, RunRecord
from nemolab.runbook.servers import Servers

_TICK = 0.2  # seconds


@dataclass(frozen=True)
class Kept:
    """Steps that need not run, and the folder that they lie in."""

    folder: Path
    decisions: Mapping[str, Decision]


class Runner:
    """One run of a plan in one folder."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        record: RunRecord,
        kept: Kept | None,
        console: Console,
        jobs: int,
        *,
        sources: Sequence[Source] = (),
    ) -> None:
        self._sources = sources
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
                shutil.rmtree(self._folder / files.WORK, ignore_errors=True)
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
                files.copy_step(self._kept.folder, self._folder, step.name)
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
            if other.status not in (*FINE, Status.RUNNING, Status.NOT_RUN):
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
        return all(self._steps[need].status in FINE for need in step.needs)

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
        files.remove_step(self._folder, step.name)
        scratch = self._folder / files.WORK / step.name
        job = files.make_job(
            step.contract.path, parameters, self._folder, step.name, scratch,
            run_id=self._record.run_id, cell_timeout=step.step.cell_timeout or step.step.timeout, replay=False,
            recorded=tuple(source.folder for source in self._sources),
        )  # fmt: skip
        self._servers.begin(step.id)
        started, self._began[step.id] = datetime.now(UTC), time.monotonic()
        self._pool = self._pool or Pool()
        self._pool.start(step.id, job, timeout=step.step.timeout)
        # What can be done while the kernel starts is done now.
        needed = {need: self._steps[need].key or "skipped" for need in step.needs}
        self._put(
            step.id,
            status=Status.RUNNING,
            started=started,
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
        raw = self._folder / files.WORK / step.name / "notebook.ipynb"
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
            **self._whence(left.recordings),
        )
        if status is Status.PASSED:
            status, reason = sign_off_status(self._steps[step.id])
            self._put(step.id, status=status, reason=reason)
        self._write()
        self._console.ended(self._steps[step.id])

    def _whence(self, recordings: Mapping[str, str]) -> dict[str, Any]:
        """Which recordings are not those of the run that was to answer first: another run's, or made now, for a call of
        another source or other arguments."""
        if not self._sources:
            return {}
        origins = provenance.origins(self._sources, recordings)
        anew = tuple(name for name in recordings if name not in origins)
        if anew:
            self._console.note(f"! measured anew, on this machine: {', '.join(Path(name).name for name in anew)}")
        return {"anew": anew, "also": {n: run for n, run in origins.items() if run != self._record.measured_in}}

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
        self._record = begin_end.finished(self._record, facts=self._facts.result(), stopped=stopped)
        self._record.write(self._folder)


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


def jobs_by_default() -> int:
    """How many steps may run side by side: one more than the processors that this process may use.

    A step waits most of its time, for its kernel, its server or a download; one more keeps the processors busy.
    Measurements are not touched by it: an exclusive step runs alone.
    """
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return usable + 1
