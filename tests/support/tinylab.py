"""A checkout in a temporary folder with tiny notebooks, and the command line run in it as a person would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemolab.runbook import record
from nemolab.runbook.record import RunRecord, StepRecord

PARAMETERS = 'n = 1  # int: a whole number\ntext = ""  # str: some text\nrates = [1.0]  # list[float]: some rates\n'
PARAMETERS += 'api_key_env = ""  # str: variable that holds the key'
CHECK = (
    "from nemolab.notebook import params, results, replay\nfrom tinymodels import TinyParams, TinyResults, measure\n"
)
CHECK += "p = params.check(TinyParams, globals())"
PUBLISH = "results.publish(TinyResults(total=p.n))"


def notebook(*body: str, publish: str = PUBLISH) -> dict[str, Any]:
    """A notebook by the house rules: title, parameters, check, `body`, results."""
    sources = [("parameters", PARAMETERS), ("", CHECK), *(("", text) for text in body), ("results", publish)]
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# A tiny one\n"}]
    for number, (tag, text) in enumerate(sources, 1):
        metadata = {"tags": [tag]} if tag else {}
        cell = {"cell_type": "code", "id": f"c{number}", "metadata": metadata, "source": text}
        cells.append({**cell, "execution_count": None, "outputs": []})
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "nemolab": {"params": "tinymodels:TinyParams", "results": "tinymodels:TinyResults"},
    }
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def step(step_id: str, notebook_name: str = "tiny", **more: Any) -> dict[str, Any]:
    """A step of a runbook."""
    return {"id": step_id, "notebook": notebook_name, **more}


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class TinyLab:
    """The checkout."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "notebooks").mkdir(parents=True, exist_ok=True)
        (self.root / "runbooks").mkdir(exist_ok=True)

    @property
    def env(self) -> dict[str, str]:
        here = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        more = {"NEMOLAB_ROOT": str(self.root), "NEMOLAB_STATE": str(self.root / ".state"), "PYTHONPATH": here}
        return {**os.environ, **more}

    def write(self, name: str, document: dict[str, Any]) -> Path:
        path = self.root / "notebooks" / f"{name}.ipynb"
        path.write_text(json.dumps(document, indent=1))
        return path

    def book(self, steps: list[dict[str, Any]], name: str = "book", **more: Any) -> Path:
        """Write a runbook; JSON is YAML."""
        path = self.root / "runbooks" / f"{name}.yaml"
        path.write_text(json.dumps({"title": "A tiny book", "purpose": "to test", **more, "steps": steps}, indent=1))
        return path

    def nemolab(self, *args: str, **env: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "nemolab", *args],
            env={**self.env, **env}, cwd=self.root, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def spawn(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """The command in a process group of its own, as a terminal starts it."""
        return subprocess.Popen(
            [sys.executable, "-m", "nemolab", *args],
            env={**self.env, **env}, cwd=self.root, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def folders(self, name: str = "book") -> list[Path]:
        """Run folders, oldest first."""
        return sorted(path.parent for path in (self.root / "reports" / name).glob(f"*/{record.FILE}"))

    def read(self, folder: Path) -> RunRecord:
        return record.read(folder)

    def last(self, name: str = "book") -> RunRecord:
        return record.read(self.folders(name)[-1])


def by_id(run: RunRecord, step_id: str) -> StepRecord:
    """The step of this id."""
    return next(s for s in run.steps if s.id == step_id)


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What `condition` returns once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def finish(process: subprocess.Popen[str], seconds: float = 60.0) -> Done:
    """Wait for the command's end."""
    out, err = process.communicate(timeout=seconds)
    return Done(process.returncode, out, err)


def interrupt_group(process: subprocess.Popen[str]) -> None:
    """Ctrl-C in the terminal: SIGINT to the whole foreground group."""
    os.killpg(process.pid, signal.SIGINT)
