"""What the commands do, from a name to an exit code. Prints to standard output what a person came for."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nemolab.core import paths
from nemolab.core.errors import ExitCode, NemolabError, UsageError
from nemolab.core.finding import Severity
from nemolab.core.status import Status
from nemolab.runbook import console, keeping, plan, provenance, spec, store
from nemolab.runbook.keeping import Decision
from nemolab.runbook.plan import Plan
from nemolab.runbook.provenance import Source
from nemolab.runbook.record import FILE, RunRecord

_LOOK_BACK = 20  # runs


def parse_sets(sets: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping."""
    parsed: dict[str, str] = {}
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{text!r} is not NAME=VALUE", where="--set")
        parsed[name.strip()] = value
    return parsed


def run(runbook: str, sets: Mapping[str, str], *, until: str | None, fresh: bool, jobs: int | None, by: str) -> int:
    """Run a runbook, or say that its newest run still holds."""
    made = plan.make(spec.load(spec.find(runbook)), sets, until=until)
    earlier, folder, decisions = (None, None, {}) if fresh else newest(made)
    if earlier and folder and holds(made, earlier, decisions):
        _say_kept(earlier, folder)
        return int(earlier.status.exit_code)
    command = ("nemolab", "run", _as_written(made), *_options(sets, until))
    return _execute(made, None, earlier, folder, decisions, command=command, jobs=jobs, by=by)


def resume(run_name: str, *, runbook: str | None = None, until: str | None, jobs: int | None, dry_run: bool) -> int:
    """Go on with a run in its own folder. `runbook` says where its runbook is now, if it is not in the checkout."""
    folder = store.find(run_name)
    earlier = store.read(folder)
    path = _of_run(runbook, earlier) if runbook else spec.find(earlier.runbook_path)
    if earlier.replay_of:
        raise UsageError("a replay cannot be resumed", where=earlier.run_id, fix=f"resume {earlier.replay_of}")
    store.refuse_running(earlier)
    made = plan.make(spec.load(path), earlier.parameters, until=until)
    decisions = keeping.decide(made, earlier, folder)
    if dry_run:
        return _print_plan(made, earlier, decisions)
    if holds(made, earlier, decisions):
        _say_kept(earlier, folder)
        return int(earlier.status.exit_code)
    named = [earlier.measured_in, *(each.run_id for each in earlier.measured_also)] if earlier.measured_in else []
    return _execute(
        made, folder, earlier, folder, decisions,
        command=earlier.command, jobs=jobs, by=earlier.by,
        sources=provenance.read(named),  # it stays a run on recordings
    )  # fmt: skip


def replay(run_name: str, *, runbook: str | None = None, jobs: int | None) -> int:
    """Execute a run's notebooks again on its recordings."""
    from nemolab.runbook import replaying, report

    shown = console.best()
    original = store.find(run_name)
    if runbook:
        _of_run(runbook, store.read(original))
    record, folder = replaying.replay(original, console=shown, jobs=jobs)
    report.write(folder)
    _say_end(record, folder)
    return int(record.status.exit_code)


def recorded(
    runs: Sequence[str],
    sets: Mapping[str, str],
    *,
    runbook: str | None = None,
    until: str | None,
    jobs: int | None,
    by: str,
) -> int:
    """Run a runbook again with the parameters of a run, changed by `sets`, and take recorded calls where they are the
    same: of the first run, else of the next.

    What was measured stays; what follows from it is computed by the notebooks and the library of today.
    """
    sources = provenance.read(runs)
    first = sources[0].record
    book = spec.load(_of_run(runbook, first) if runbook else spec.find(first.runbook_path))
    before = {name: value for name, value in first.parameters.items() if name in book.book.parameters}
    made = plan.make(book, before | dict(sets), until=until)
    named = [part for each in provenance.measured(sources) for part in ("--recorded", each.run_id)]
    command = ("nemolab", "run", *named, *_options(sets, until))
    return _execute(made, None, None, None, {}, command=command, jobs=jobs, by=by, sources=sources)


def _of_run(runbook: str, run: RunRecord) -> Path:
    """The runbook file, which must be the run's."""
    path = spec.find(runbook)
    if path.stem != run.runbook:
        raise UsageError(
            f"that is a run of {run.runbook}, not of {path.stem}", where=run.run_id, fix="leave the runbook out"
        )
    return path


def dry_run(runbook: str, sets: Mapping[str, str], *, until: str | None, fresh: bool) -> int:
    """Print the plan."""
    made = plan.make(spec.load(spec.find(runbook)), sets, until=until)
    earlier, _, decisions = (None, None, keeping.decide(made, None, None)) if fresh else newest(made)
    return _print_plan(made, earlier, decisions)


def newest(made: Plan) -> tuple[RunRecord | None, Path | None, dict[str, Decision]]:
    """The newest run that still holds, else the newest that steps can be kept from; and what is decided of each."""
    best: tuple[RunRecord, Path, dict[str, Decision]] | None = None
    for folder in store.runs_of(made.spec.name)[:_LOOK_BACK]:
        try:
            found = store.read(folder)
        except NemolabError:
            continue  # of another version, or damaged: nothing to keep
        if found.measured_in:
            continue  # its long calls are another run's, perhaps of another machine
        decisions = keeping.decide(made, found, folder)
        if holds(made, found, decisions):
            return found, folder, decisions
        if best is None and any(decision.kept for decision in decisions.values()):
            best = (found, folder, decisions)
    return best or (None, None, keeping.decide(made, None, None))


def holds(made: Plan, earlier: RunRecord, decisions: Mapping[str, Decision]) -> bool:
    """Whether running now would change nothing: all is kept, or what is missing is a sign-off."""
    before = {step.id: step for step in earlier.steps}
    if earlier.status not in (Status.PASSED, Status.WAITING):
        return False
    for step in made.steps:
        decision = decisions.get(step.id)
        if step.skip or (decision and decision.kept and decision.kept.status is before[step.id].status):
            continue
        if not _waits(made, step.id, decisions):
            return False
    return True


def _waits(made: Plan, step_id: str, decisions: Mapping[str, Decision]) -> bool:
    """Whether a step cannot run before somebody signs one of its ancestors off."""
    step = next(s for s in made.steps if s.id == step_id)
    for need in step.needs:
        kept = decisions[need].kept if need in decisions else None
        if (kept and kept.status is Status.WAITING) or (not kept and _waits(made, need, decisions)):
            return True
    return False


def _execute(
    made: Plan,
    folder: Path | None,
    earlier: RunRecord | None,
    kept_folder: Path | None,
    decisions: Mapping[str, Decision],
    *,
    command: tuple[str, ...],
    jobs: int | None,
    by: str,
    sources: Sequence[Source] = (),
) -> int:
    from datetime import UTC, datetime

    from nemolab.runbook import begin_end, report, runner

    resumed = folder is not None
    folder = folder or store.create(made.spec.name, datetime.now(UTC))
    record = begin_end.new_record(made, folder.name, command=command, by=by)
    if sources:
        record = record.model_copy(update=provenance.fields(sources))
    kept = runner.Kept(kept_folder, decisions) if earlier and kept_folder else None
    jobs = jobs or runner.jobs_by_default()
    try:
        done = runner.Runner(made, folder, record, kept, console.best(), jobs, sources=sources).run()
    except BaseException:
        if not resumed and not (folder / FILE).exists():
            shutil.rmtree(folder, ignore_errors=True)  # it ended before its record could be written
        raise
    report.write(folder)
    _say_end(done, folder)
    return int(done.status.exit_code)


def _say_end(record: RunRecord, folder: Path) -> None:
    print(f"{record.title}: {record.status.value}")
    for reason in record.reasons:
        print(f"  {reason}")
    for step in record.steps:
        if step.failure and step.failure.fix:
            print(f"  fix: {step.failure.fix}")
        if step.hint and step.status not in (Status.PASSED, Status.SKIPPED, Status.NOT_RUN, Status.WAITING):
            print(f"  help: {_shown(paths.notebooks() / (step.hint.removesuffix('.ipynb') + '.ipynb'))}")
    if record.status is Status.WAITING:
        for step in record.steps:
            if step.status is Status.WAITING:
                print(f"  sign: nemolab sign-off {record.run_id} {step.id} --role ROLE --by NAME")
    elif record.status is not Status.PASSED and not record.replay_of:
        print(f"  go on: nemolab run --resume {record.run_id}")
    print(f"report: {_shown(folder / 'index.html')}")


def _say_kept(record: RunRecord, folder: Path) -> None:
    print(f"{record.title}: {record.status.value} (run of {record.started:%Y-%m-%d %H:%M} UTC; nothing has changed)")
    for reason in record.reasons:
        print(f"  {reason}")
    print(f"  again: nemolab run {record.runbook} --fresh")
    if not (folder / "index.html").exists():
        from nemolab.runbook import report

        report.write(folder)
    print(f"report: {_shown(folder / 'index.html')}")


def _print_plan(made: Plan, earlier: RunRecord | None, decisions: Mapping[str, Decision]) -> int:
    from nemolab.notebook import lint
    from nemolab.runbook import listing, named_profiles

    for line in listing.plan(made, earlier, decisions):
        print(line)
    findings = lint.lint(sorted({step.contract.path for step in made.steps}), paths.root())
    findings += named_profiles.findings(made)
    for finding in findings:
        print(f"{finding.severity.value} {finding.code} {finding.where}: {finding.message}")
    return int(ExitCode.FAILED if any(f.severity is Severity.ERROR for f in findings) else ExitCode.PASSED)


def _as_written(made: Plan) -> str:
    return _shown(made.spec.path, paths.root())


def _options(sets: Mapping[str, Any], until: str | None) -> list[str]:
    options = [part for name, value in sets.items() for part in ("--set", f"{name}={value}")]
    return [*options, "--until", until] if until else options


def _shown(path: Path, base: Path | None = None) -> str:
    try:
        return str(path.resolve().relative_to(base or Path.cwd()))
    except ValueError:
        return str(path)
