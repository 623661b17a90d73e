"""A run that is stopped from outside: Ctrl-C, SIGTERM, SIGKILL, a second runner, a full disk. Resume goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tinylab import TinyLab, by_id, finish, interrupt_group, notebook, step, wait_for

from nemolab.core.status import Status
from nemolab.runbook import record, store

# Runs until a file lies beside the checkout; says by another file that it runs.
WAITS = """
import os, time
from pathlib import Path
root = Path(os.environ["NEMOLAB_ROOT"])
(root / f"{p.text}.runs").write_text(str(os.getpid()))
while not (root / "go").exists():
    time.sleep(0.05)
"""


@pytest.fixture
def lab(tmp_path: Path) -> TinyLab:
    made = TinyLab(tmp_path / "lab")
    made.write("tiny", notebook())
    made.write("waits", notebook("print('before')", WAITS))
    made.book([step("first"), {**step("waits", "waits"), "with": {"text": "waits"}}, step("last")])
    return made


def kernel(lab: TinyLab, name: str = "waits") -> int:
    """Pid of the kernel in the cell that waits, once it is there."""
    path = lab.root / f"{name}.runs"
    return int(wait_for(lambda: path.exists() and path.read_text()))


def gone(pid: int) -> bool:
    """Whether the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def resumed(lab: TinyLab, run_id: str) -> record.RunRecord:
    """Resume and return the record, in the same folder."""
    (lab.root / "go").touch()
    done = lab.nemolab("run", "--resume", run_id)
    assert done.code == 0, done.all
    assert len(lab.folders()) == 1
    return lab.last()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_a_cell(lab: TinyLab, number: signal.Signals) -> None:
    process = lab.spawn("run", "book")  # Ctrl-C in a terminal reaches the whole group
    pid = kernel(lab)
    if number == signal.SIGINT:
        interrupt_group(process)
    else:
        process.send_signal(number)
    done = finish(process)
    run = lab.last()
    assert done.code == 130
    assert "Traceback" not in done.all
    assert run.status is Status.INTERRUPTED
    assert [s.status for s in run.steps] == [Status.PASSED, Status.INTERRUPTED, Status.NOT_RUN]
    assert by_id(run, "last").reason == "the run was stopped before it"
    folder = lab.folders()[0]
    assert "before" in (folder / "02_waits.ipynb").read_text()
    assert "interrupted" in (folder / "index.html").read_text()
    wait_for(lambda: gone(pid))
    if number == signal.SIGINT:
        after = resumed(lab, run.run_id)
        assert after.status is Status.PASSED
        assert by_id(after, "first").started == by_id(run, "first").started  # kept


def test_killed_runner_leaves_no_kernel_and_is_not_running(lab: TinyLab) -> None:
    process = lab.spawn("run", "book")
    pid = kernel(lab)
    again = lab.nemolab("run", "--resume", lab.last().run_id)  # while it lives, nobody else may
    assert again.code == 2
    assert f"is being run by pid {process.pid}" in again.err
    process.kill()
    finish(process)
    wait_for(lambda: gone(pid))
    run = lab.last()
    assert run.status is Status.RUNNING  # nobody could write the end
    assert "! " + run.run_id + "  killed" in lab.nemolab("list", "book").out
    told = store.read(lab.folders()[0])
    assert (told.status, by_id(told, "waits").status) == (Status.KILLED, Status.KILLED)
    after = resumed(lab, run.run_id)
    assert after.status is Status.PASSED
    assert by_id(after, "first").started == by_id(run, "first").started


def test_interrupted_between_steps(lab: TinyLab) -> None:
    """The signal comes at the moment when a step has ended and the next has not begun."""
    code = (
        "import os, signal, sys\n"
        "from nemolab.runbook.console import Lines\n"
        "told = Lines.ended\n"
        "def ended(self, step):\n"
        "    told(self, step)\n"
        "    if step.id == 'first': os.kill(os.getpid(), signal.SIGINT)\n"
        "Lines.ended = ended\n"
        "from nemolab.cli import main\n"
        "if __name__ == '__main__':\n"
        "    sys.argv = ['nemolab', 'run', 'book']\n"
        "    main()\n"
    )
    script = lab.root / "between.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], env=lab.env, cwd=lab.root, capture_output=True, text=True)
    run = lab.last()
    assert (done.returncode, run.status) == (130, Status.INTERRUPTED)
    assert [s.status for s in run.steps] == [Status.PASSED, Status.NOT_RUN, Status.NOT_RUN]
    assert run.reasons[0] == "interrupted by Ctrl-C"
    assert not (lab.root / "waits.runs").exists()


def test_two_runs_at_once(lab: TinyLab) -> None:
    lab.book([{**step("waits", "waits"), "with": {"text": "waits"}}])
    both = [lab.spawn("run", "book"), lab.spawn("run", "book")]
    wait_for(lambda: len(lab.folders()) == 2)
    (lab.root / "go").touch()
    assert [finish(process).code for process in both] == [0, 0]
    runs = [record.read(folder) for folder in lab.folders()]
    assert [run.status for run in runs] == [Status.PASSED, Status.PASSED]
    assert runs[0].run_id != runs[1].run_id


FILLS = """
from nemolab.core import step
with open(step.current().folder / "filler", "wb", buffering=0) as file:
    while True:
        file.write(bytes(1024))
"""


def test_disk_full(lab: TinyLab) -> None:
    """On a real file system that is full: the record stays whole, the message is one line, a resume goes on."""
    lab.write("waits", notebook("print('before')", FILLS))
    reports = lab.root / "reports"
    reports.mkdir()
    nemolab = f"{sys.executable} -m nemolab"
    script = (
        f"mount -t tmpfs -o size=512k tmpfs {reports} || exit 77\n"
        f"{nemolab} run book; echo code $?\n"
        f"cp -r {reports}/book {lab.root}/full; rm {reports}/book/*/filler\n"
        f"{nemolab} list book\n"
        f"sed -i 's/while True/while False/' notebooks/waits.ipynb\n"
        f"{nemolab} run --resume $(ls {reports}/book); echo code $?\n"
        f"cp -r {reports}/book {lab.root}/after\n"
    )
    if not shutil.which("unshare"):
        pytest.skip("a file system of our own needs unshare")
    argv = ["unshare", "-Urm", "sh", "-c", script]
    done = subprocess.run(argv, env=lab.env, cwd=lab.root, capture_output=True, text=True, timeout=120)
    if done.returncode in (1, 77) and "code" not in done.stdout:
        pytest.skip(f"mounting a file system of our own is not allowed here: {done.stderr.strip()}")
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert "code 3" in done.stdout
    assert "No space left on device" in said
    (full,) = (lab.root / "full").iterdir()
    run = record.read(full)  # whole
    assert by_id(run, "first").status is Status.PASSED
    assert not [path.name for path in full.iterdir() if path.name.startswith(".run.json")]
    (after,) = (lab.root / "after").iterdir()
    assert "code 0" in done.stdout, said
    assert record.read(after).status is Status.PASSED
    assert by_id(record.read(after), "first").started == by_id(run, "first").started
    assert json.loads((after / "02_waits.results.json").read_text())["values"]["total"]["value"] == 1


def test_stale_pid_is_not_taken_for_the_runner(lab: TinyLab) -> None:
    """A pid alone may be another process's by now."""
    done = lab.nemolab("run", "book", "--until", "first")
    assert done.code == 0
    folder = lab.folders()[0]
    stale = lab.last().model_copy(update={"status": Status.RUNNING, "pid": os.getppid(), "pid_started": "long ago"})
    stale.write(folder)
    assert store.read(folder).status is Status.KILLED
