"""Replay of a run: its own notebooks executed again on its recordings. No server, no measurement, equal bytes."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from pathlib import Path

from nemolab.core import paths
from nemolab.core.errors import UsageError
from nemolab.core.status import Status
from nemolab.engines import identity
from nemolab.runbook import contracts, files, runner, store, verdict
from nemolab.runbook.console import Console, Tail
from nemolab.runbook.job import AtCell, Job, Outcome
from nemolab.runbook.pool import Pool
from nemolab.runbook.record import RunRecord, StepRecord

TIMEOUT = 600.0  # seconds for a step; nothing is measured, so all should be quick
_REPLAYED = (Status.PASSED, Status.FAILED, Status.WAITING)


def replay(source: Path, *, console: Console, jobs: int | None) -> tuple[RunRecord, Path]:
    """Replay the run in `source` into `reports/<runbook>/<run id>-replay`, which is written anew.

    Times are those of the measurement, so that two replays are equal to the byte.

    Raises:
        UsageError: `source` is itself a replay, still runs, or holds no step that ended.
    """
    original = store.read(source)
    if original.replay_of:
        raise UsageError("this is a replay already", where=original.run_id, fix=f"replay {original.replay_of}")
    store.refuse_running(original)
    todo = [step for step in original.steps if step.status in _REPLAYED]
    if not todo:
        raise UsageError("no step of this run ended, so there is nothing to replay", where=original.run_id)
    folder = paths.reports() / original.runbook / f"{original.run_id}{store.REPLAY}"
    folder.mkdir(parents=True, exist_ok=True)
    with store.locked(folder):
        return _Replay(original, source, folder, console, jobs or runner.jobs_by_default()).run(todo), folder


class _Replay:
    def __init__(self, original: RunRecord, source: Path, folder: Path, console: Console, jobs: int) -> None:
        self._source, self._folder, self._console, self._jobs = source, folder, console, jobs
        self._ended = original.ended
        self._steps = {step.id: step for step in original.steps}
        self._record = original.model_copy(
            update={
                "run_id": folder.name,
                "replay_of": original.run_id,
                "status": Status.RUNNING,
                "pid": os.getpid(),
                "pid_started": identity.born(os.getpid()),
                "command": ("nemolab", "run", "--replay", original.run_id),
            }
        )

    def run(self, todo: list[StepRecord]) -> RunRecord:
        for path in self._folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != store.LOCK:
                path.unlink()
        for step in self._steps.values():
            files.copy_step(self._source, self._folder, step.name)
        self._record.write(self._folder)
        self._console.note(f"replay of {self._record.replay_of}: recorded values, nothing is measured")
        try:
            self._work(list(todo))
            return self._end()
        finally:
            shutil.rmtree(self._folder / files.WORK, ignore_errors=True)
            self._console.close()

    def _work(self, waiting: list[StepRecord]) -> None:
        pool, tails = Pool(), dict[str, Tail]()
        try:
            while waiting or len(pool):
                while waiting and len(pool) < self._jobs:
                    step = waiting.pop(0)
                    job = self._job(step)
                    tails[step.id] = Tail(job.scratch / "progress")
                    pool.start(step.id, job, timeout=TIMEOUT)
                    self._console.started(step)
                for event in pool.poll(0.2):
                    if isinstance(event.what, AtCell):
                        self._console.progress(event.name, f"cell {event.what.number} of {event.what.of}")
                    else:
                        self._finish(self._steps[event.name], event.what)
                for name, tail in tails.items():
                    if text := tail.latest():
                        self._console.progress(name, text)
        finally:
            pool.abandon()

    def _job(self, step: StepRecord) -> Job:
        return files.make_job(
            self._source / f"{step.name}.ipynb",
            None,  # the parameters are in the notebook already
            self._folder,
            step.name,
            self._folder / files.WORK / step.name,
            run_id=self._record.run_id,
            cell_timeout=TIMEOUT,
            replay=True,
        )

    def _finish(self, step: StepRecord, outcome: Outcome) -> None:
        model = contracts.results_model(self._source / f"{step.name}.ipynb")
        raw = self._folder / files.WORK / step.name / "notebook.ipynb"
        hidden = verdict.secrets_of(step.parameters)
        left = verdict.collect(self._folder, step.name, raw, outcome, model, hidden)
        status, reason, _, _, failure = verdict.judge(outcome, left, {})
        if status in (Status.PASSED, Status.FAILED):  # reproduced: what the measurement was worth still holds
            status, reason = step.status, step.reason
            if other := _first_difference(self._source / f"{step.name}.ipynb", self._folder / f"{step.name}.ipynb"):
                status, reason = Status.FAILED, f"the replay does not reproduce {other}"
        update = {"status": status, "reason": reason, "failure": failure, "notebook_sha256": left.notebook_sha256}
        self._steps[step.id] = step.model_copy(update=update)
        self._console.ended(self._steps[step.id].model_copy(update={"seconds": None}))

    def _end(self) -> RunRecord:
        steps = tuple(self._steps[step.id] for step in self._record.steps)
        ended: datetime | None = self._ended
        status = verdict.worst(step.status for step in steps)
        causes = [s for s in steps if s.status not in (Status.PASSED, Status.SKIPPED, Status.NOT_RUN)]
        update = {
            "steps": steps,
            "status": status,
            "reasons": tuple(f"{s.id}: {s.reason or s.status.value}" for s in causes),
            "ended": ended,
            "pid": None,
            "pid_started": None,
        }
        done = self._record.model_copy(update=update)
        done.write(self._folder)
        return done


def _first_difference(measured: Path, replayed: Path) -> str:
    """What the replayed notebook shows otherwise, "" if the two are equal. Both are normalised."""
    old, new = (json.loads(path.read_bytes())["cells"] for path in (measured, replayed))
    if [cell["source"] for cell in old] != [cell["source"] for cell in new]:
        return "the cells"
    for number, (before, after) in enumerate(zip(old, new, strict=True), 1):
        if before != after:
            return f"what cell {number} ({after['id']}) shows"
    return ""
