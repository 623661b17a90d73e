"""Runs on disk: where they lie, which one is meant, whether its runner lives, and one runner a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from nemolab.core import paths
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.located import nearest
from nemolab.core.status import Status
from nemolab.engines import identity
from nemolab.runbook import record
from nemolab.runbook.record import RunRecord, StepRecord

LOCK = ".lock"
_NAME = re.compile(r"[\w.-]+")  # of a runbook; anything else would reach out of reports/
REPLAY = "-replay"
KILLED = "its runner died without a word (killed, or the machine went down)"


def create(runbook: str, now: datetime) -> Path:
    """A new, empty run folder: `reports/<runbook>/<UTC time>-<4 hex digits>`. No two runs share one."""
    base = paths.reports() / runbook
    try:
        base.mkdir(parents=True, exist_ok=True)
        while True:
            folder = base / f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise NemolabError(f"cannot make a run folder: {error.strerror}", where=str(base)) from None


def runs_of(runbook: str) -> list[Path]:
    """Folders of all runs of a runbook, the newest first; replays are no runs."""
    if not _NAME.fullmatch(runbook):
        return []
    base = paths.reports() / runbook
    folders = [path.parent for path in base.glob(f"*/{record.FILE}") if not path.parent.name.endswith(REPLAY)]
    return sorted(folders, key=lambda folder: folder.name, reverse=True)


def find(name: str) -> Path:
    """The run folder that `name` means: a path, a run id or the beginning of one, or a runbook's newest run.

    `quickstart` is the newest run of that runbook, `quickstart~1` the one before.

    Raises:
        UsageError: none or several.
    """
    as_path = Path(name)
    if (as_path / record.FILE).is_file():
        return as_path.resolve()
    if as_path.name == record.FILE and as_path.is_file():
        return as_path.parent.resolve()
    runbook, _, back = name.partition("~")
    if (back.isdigit() or not back) and (runs := runs_of(runbook)):
        if int(back or 0) < len(runs):
            return runs[int(back or 0)]
        raise UsageError(f"{runbook} has {len(runs)} runs", where=name, fix=f"`nemolab list {runbook}` shows them")
    every = [path.parent for path in paths.reports().glob(f"*/*/{record.FILE}")]
    exact = [folder for folder in every if folder.name == name]
    found = exact or [folder for folder in every if folder.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name!r} may be {', '.join(sorted(f.name for f in found))}", fix="write more of it")
    raise UsageError(
        f"no run {name!r}",
        where=str(paths.reports()),
        fix=nearest(name, [f.name for f in every], "`nemolab list` shows them"),
    )


def read(folder: Path) -> RunRecord:
    """The record in `folder`, told truthfully: a run whose runner is gone was killed, whatever the file says."""
    found = record.read(folder)
    if found.status is not Status.RUNNING or alive(found):
        return found
    return killed(found)


def alive(found: RunRecord) -> bool:
    """Whether the runner of a record still lives: same pid and same start."""
    return identity.alive(found.pid, found.pid_started)


def killed(found: RunRecord) -> RunRecord:
    """The record of a run whose runner died: what ran then was killed."""

    def fix(step: StepRecord) -> StepRecord:
        if step.status is not Status.RUNNING:
            return step
        return step.model_copy(update={"status": Status.KILLED, "reason": KILLED})

    steps = tuple(fix(step) for step in found.steps)
    update = {"status": Status.KILLED, "reasons": (KILLED,), "steps": steps, "pid": None, "pid_started": None}
    return found.model_copy(update=update)


def refuse_running(run: RunRecord) -> None:
    """Nothing is made of a run that has not ended.

    Raises:
        UsageError: it still runs.
    """
    if run.status is Status.RUNNING:
        raise UsageError(f"this run is being run by pid {run.pid}", where=run.run_id, fix="wait for it")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run folder for one runner; the kernel lets go of it when the process ends, however it ends.

    Raises:
        UsageError: another runner has it, named by pid.
    """
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise NemolabError(f"cannot lock: {error.strerror}", where=str(folder)) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(folder / LOCK).st_ino != os.fstat(handle).st_ino:  # its owner just ended, another one came
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):
            owner = os.read(handle, 32).decode() or "another process"
            fix = "wait for it, or start a run of its own without --resume"
            raise UsageError(f"this run is being run by pid {owner}", where=str(folder), fix=fix) from None
        with contextlib.suppress(OSError):  # on a full disk the lock still holds, only without a name
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
        with contextlib.suppress(OSError):
            os.unlink(folder / LOCK)
    finally:
        os.close(handle)
