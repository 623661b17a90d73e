"""The files of a step in a run folder: where its worker works, and how they come and go."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nemolab.core import paths
from nemolab.core.errors import NemolabError
from nemolab.core.files import sha256, write_atomic
from nemolab.core.step import Step
from nemolab.engines.launch import RUNNER_PID
from nemolab.notebook.progress import FILE as PROGRESS
from nemolab.runbook.job import Job

WORK = ".work"  # folder of all workers, gone when the run ends


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
    recorded: Sequence[Path] = (),
) -> Job:
    """The job of one step, with the environment that `core.step` reads in the kernel."""
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
    except OSError as error:
        raise NemolabError(f"cannot write: {error.strerror}", where=str(scratch)) from None
    environment = Step(folder, name, replay, run_id, tuple(recorded)).environment() | {
        RUNNER_PID: str(os.getpid()),
        PROGRESS: str(scratch / "progress"),
        "PYTHONHASHSEED": "0",
        "NEMOLAB_ROOT": str(paths.root()),
    }
    return Job(notebook, parameters, scratch, environment, paths.root(), cell_timeout)


def has(path: Path, digest: str) -> bool:
    """Whether there is a file with that SHA-256."""
    try:
        return sha256(path.read_bytes()) == digest
    except OSError:
        return False


def remove_step(folder: Path, name: str) -> None:
    """Remove what an earlier execution of a step left."""
    for path in (folder / f"{name}.ipynb", folder / f"{name}.results.json", folder / f"{name}.html"):
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / "recordings" / name, ignore_errors=True)


def copy_step(source: Path, target: Path, name: str) -> None:
    """Copy a step's files from one run folder to another."""
    remove_step(target, name)
    own = [source / f"{name}.ipynb", source / f"{name}.results.json"]
    for path in [*own, *sorted((source / "recordings" / name).rglob("*.json"))]:
        if path.is_file():
            write_atomic(target / path.relative_to(source), path.read_bytes())
