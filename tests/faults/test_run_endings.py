"""Every way in which a step can end, in one run of side-by-side steps: status, message, what the notebook file says."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tinylab import Done, TinyLab, by_id, notebook, step

from nemolab.core.status import Status
from nemolab.runbook.record import RunRecord

SECRET = "a-value-that-nobody-may-see"
KEY = "nv" + "api-" + "x" * 40  # joined here, so that the file itself holds no key
AFTER = "print('after')"

# step id -> (cells, last cell or None for the usual one, settings of the step)
CASES: dict[str, tuple[list[str], str | None, dict[str, Any]]] = {
    "fine": (
        ["print(p.n)"],
        None,
        {"with": {"n": 3}, "expect": {"total": 3, "ok": True, "label": "in [small, large]"}},
    ),
    "cell_slow": (["print('before')", "import time\ntime.sleep(60)", AFTER], None, {"cell_timeout": 8}),
    "step_slow": (["import time\ntime.sleep(60)", AFTER], None, {"timeout": 12}),
    "kernel_killed": (["print('before')", "import os\nos.kill(os.getpid(), 9)", AFTER], None, {}),
    "worker_killed": (["import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(60)", AFTER], None, {}),
    "raises": (
        ["from nemolab.core.errors import NemolabError", "raise NemolabError('no room', fix='make some')"],
        None,
        {},
    ),
    "leaves": (["import sys\nsys.exit(0)", AFTER], None, {}),
    "silent": ([], "print('published nothing')", {}),
    "finds": (
        ["from nemolab.core.finding import Finding, Severity"],
        "full = Finding('H-1', Severity.ERROR, 'The disk is full.', 'Free it.')\n"
        "results.publish(TinyResults(total=1), findings=[full])",
        {"expect": {"total": "> 5"}},
    ),
    "leaks": (
        ["import os", "print('nv' + 'api-' + 'x' * 40)", "print('it is', os.environ[p.api_key_env])"],
        None,
        {"with": {"api_key_env": "MY_SERVICE"}},
    ),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[TinyLab, Done, RunRecord]:
    """All cases in one run."""
    lab = TinyLab(tmp_path_factory.mktemp("endings"))
    steps = []
    for name, (cells, publish, more) in CASES.items():
        lab.write(name, notebook(*cells, **({"publish": publish} if publish else {})))
        steps.append({**step(name, name, needs=[], on_fail="fine"), **more})
    steps.append(step("after", "fine", needs=["raises"]))
    lab.book(steps)
    done = lab.nemolab("run", "book", "--jobs", "4", MY_SERVICE=SECRET)
    return lab, done, lab.last()


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("fine", Status.PASSED, ""),
        ("cell_slow", Status.TIMED_OUT, "cell 5 ran longer than 8 s"),
        ("step_slow", Status.TIMED_OUT, "the step ran longer than 12 s"),
        ("kernel_killed", Status.KILLED, "the kernel died in cell 5"),
        ("worker_killed", Status.KILLED, "the worker was killed by SIGKILL"),
        ("raises", Status.ERROR, "cell 5: NemolabError: no room"),
        ("leaves", Status.ERROR, "cell 4: SystemExit: 0"),
        ("silent", Status.ERROR, "it published no results"),
        ("finds", Status.FAILED, "total is 1, expected > 5; H-1: The disk is full."),
        ("leaks", Status.FAILED, "N-900: The executed notebook showed a secret (NVIDIA API key)"),
        ("after", Status.NOT_RUN, "raises did not pass (error)"),
    ],
)
def test_status(ran: tuple[TinyLab, Done, RunRecord], name: str, status: Status, reason: str) -> None:
    found = by_id(ran[2], name)
    assert found.status is status, found.reason
    assert found.reason.startswith(reason)
    assert f"_{name}: {status.value}" in ran[1].err  # and whoever watched was told


def test_run_has_the_gravest_status_and_its_exit_code(ran: tuple[TinyLab, Done, RunRecord]) -> None:
    _, done, run = ran
    assert (run.status, done.code) == (Status.KILLED, 4)
    assert "Traceback" not in done.all
    assert "go on: nemolab run --resume" in done.out
    assert "help: notebooks/fine.ipynb" in done.out
    assert "  fix: make some\n" in done.out
    assert run.pid is None


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("cell_slow", ["ran", "ran", "ran", "timed out", "not run", "not run"]),
        ("kernel_killed", ["ran", "ran", "ran", "killed", "not run", "not run"]),
        ("raises", ["ran", "ran", "ran", "error", "not run"]),
        ("leaves", ["ran", "ran", "error", "not run", "not run"]),
    ],
)
def test_notebook_tells_what_ran(ran: tuple[TinyLab, Done, RunRecord], name: str, states: list[str]) -> None:
    """papermill writes `completed` on each of these cells."""
    lab, _, run = ran
    document = json.loads((lab.folders()[-1] / f"{by_id(run, name).name}.ipynb").read_text())
    code = [
        c
        for c in document["cells"]
        if c["cell_type"] == "code" and "injected-parameters" not in c["metadata"].get("tags", [])
    ]
    assert [c["metadata"].get("nemolab", {}).get("state", "ran") for c in code] == states
    assert "completed" not in json.dumps(document)
    if "before" in json.dumps(CASES[name][0]):
        assert "before\n" in json.dumps(document).replace("\\n", "\n")  # what the cells before left is there


def test_failure_is_recorded_with_its_fix(ran: tuple[TinyLab, Done, RunRecord]) -> None:
    failure = by_id(ran[2], "raises").failure
    assert failure is not None
    assert (failure.kind, failure.message, failure.fix, failure.cell) == ("NemolabError", "no room", "make some", 5)
    assert "NemolabError" in failure.traceback
    assert "\x1b" not in failure.traceback


def test_no_file_keeps_a_secret(ran: tuple[TinyLab, Done, RunRecord]) -> None:
    lab, done, run = ran
    assert "N-900: The executed notebook showed a secret (value of MY_SERVICE)" in by_id(run, "leaks").reason
    files = [path for path in lab.folders()[-1].rglob("*") if path.is_file()]
    assert any(path.suffix == ".html" for path in files)
    for secret in (SECRET, KEY):
        assert secret not in done.all
        assert not [path.name for path in files if secret in path.read_text()]


def test_nothing_is_left_behind(ran: tuple[TinyLab, Done, RunRecord]) -> None:
    lab, _, run = ran
    folder = lab.folders()[-1]
    names = {path.name for path in folder.iterdir()}
    assert not {name for name in names if name.startswith(".")}
    assert not [pid for pid in _processes() if str(folder) in _environment(pid)]
    assert {f"{s.name}.ipynb" for s in run.steps if s.status is not Status.NOT_RUN} <= names


def test_resume_runs_what_did_not_pass(ran: tuple[TinyLab, Done, RunRecord]) -> None:
    lab, _, run = ran
    lab.write("raises", notebook("print('mended')"))
    fine = step("fine", "fine", needs=[], **CASES["fine"][2])
    lab.book([fine, step("raises", "raises", needs=[]), step("after", "fine", needs=["raises"])])
    done = lab.nemolab("run", "--resume", run.run_id, "--jobs", "4", MY_SERVICE=SECRET)
    after = lab.last()
    assert (done.code, after.status, after.run_id) == (0, Status.PASSED, run.run_id)
    assert by_id(after, "fine").started == by_id(run, "fine").started  # kept, not measured again
    assert by_id(after, "raises").started != by_id(run, "raises").started
    assert by_id(after, "after").status is Status.PASSED
    assert len(lab.folders()) == 1


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""
