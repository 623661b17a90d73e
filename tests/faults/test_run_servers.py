"""Servers of a run: handed over by address, named when they die under a step, started again on resume, all stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tinylab import TinyLab, by_id, notebook, step

from nemolab.core.status import Status
from nemolab.engines import state

SERVE = "from engines import fake\nfrom nemolab.engines import process\nserver = process.start(fake())"
USE = "from urllib.request import urlopen\nprint(urlopen(p.text.removesuffix('/v1') + '/health').status)"
KILL = "import os, time\nfrom nemolab.engines import process\n"
KILL += "os.kill(process.running()[0].pid, 9)\ntime.sleep(0.5)\nurlopen(p.text)"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyLab:
    made = TinyLab(tmp_path / "lab")
    monkeypatch.setenv("NEMOLAB_STATE", made.env["NEMOLAB_STATE"])
    made.write("serve", notebook(SERVE, publish="results.publish(TinyResults(total=1, base_url=server.base_url))"))
    made.write("use", notebook(USE))
    made.write("kill", notebook(USE, KILL))
    users = [{**step(name, name), "with": {"text": "${serve.base_url}"}} for name in ("use", "kill")]
    made.book([step("serve", "serve", service=True), *users])
    return made


def test_server_killed_in_the_middle_of_a_step(lab: TinyLab) -> None:
    done = lab.nemolab("run", "book")
    run = lab.last()
    killed = by_id(run, "kill")
    assert [s.status for s in run.steps] == [Status.PASSED, Status.PASSED, Status.KILLED], done.all
    assert killed.reason.startswith("server llamacpp-1 (pid ")
    assert "killed by SIGKILL" in killed.reason
    assert killed.failure is not None
    assert killed.failure.kind == "URLError"  # what the notebook saw stays on record
    assert done.code == 4
    assert state.every() == ()

    lab.write("kill", notebook(USE))
    again = lab.nemolab("run", "--resume", run.run_id)
    after = lab.last()
    assert again.code == 0, again.all
    assert by_id(after, "serve").started != by_id(run, "serve").started  # the server is needed: served again
    assert by_id(after, "use").started == by_id(run, "use").started  # another port is no other measurement
    assert by_id(after, "kill").parameters["text"] == by_id(after, "serve").results["base_url"]["value"]
    assert state.every() == ()

    kept = lab.nemolab("run", "book")
    assert "nothing has changed" in kept.out  # all its users are kept, so the server is not started
