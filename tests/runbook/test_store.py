"""Finding runs by name, one runner a folder, and what a console says."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tinylab import TinyLab

from nemolab.core.errors import UsageError
from nemolab.core.status import Status
from nemolab.runbook import store
from nemolab.runbook.console import Lines, Tail, duration
from nemolab.runbook.record import RunRecord, StepRecord
from nemolab.runbook.verdict import worst


@pytest.fixture
def runs(lab: TinyLab, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three runs of `book` and a replay, oldest first."""
    monkeypatch.setenv("NEMOLAB_ROOT", str(lab.root))
    ids = ["20260101-000000-aaaa", "20260102-000000-bbbb", "20260103-000000-cccc"]
    for run_id in [*ids, ids[0] + store.REPLAY]:
        record = RunRecord(
            run_id=run_id, runbook="book", runbook_path="", runbook_sha256="", title="", status=Status.PASSED,
            started=datetime.now(UTC),
        )  # fmt: skip
        record.write(lab.root / "reports" / "book" / run_id)
    return ids


def test_find(lab: TinyLab, runs: list[str]) -> None:
    folder = lab.root / "reports" / "book"
    assert store.find("book").name == runs[2]
    assert store.find("book~2").name == runs[0]
    assert store.find("20260102").name == runs[1]
    assert store.find(runs[0]).name == runs[0]  # although the replay's id begins like it
    assert store.find(str(folder / runs[1] / "run.json")).name == runs[1]
    for name, says in (
        ("202601", "may be"),
        ("book~3", "has 3 runs"),
        ("bock", "no run 'bock'"),
        ("../book", "no run"),
    ):
        with pytest.raises(UsageError, match=says):
            store.find(name)


def test_no_two_runs_share_a_folder(lab: TinyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_ROOT", str(lab.root))
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    names = {store.create("book", now).name for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("20260102-030405-") for name in names)


def test_one_runner_a_folder(tmp_path: Path) -> None:
    with store.locked(tmp_path), pytest.raises(UsageError, match="is being run by pid"), store.locked(tmp_path):
        pass
    with store.locked(tmp_path):  # and free again
        pass
    assert not list(tmp_path.iterdir())


def test_tail_gives_the_newest_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    tail = Tail(path)
    assert tail.latest() is None
    lines = [json.dumps({"label": "ladder", "done": n, "total": 3, "note": ""}) for n in (1, 2, 3)]
    path.write_text("\n".join(lines[:2]) + "\n" + lines[2][:5])
    assert tail.latest() == "ladder 2/3"
    assert tail.latest() is None
    path.write_text("\n".join(lines) + "\nnot JSON\n")
    assert tail.latest() == "ladder 3/3"


def test_lines_say_how_a_step_ended() -> None:
    out = io.StringIO()
    step = StepRecord(id="a", name="01_a", title="A", notebook="", status=Status.FAILED, reason="x is 1", seconds=75)
    Lines(out).ended(step)
    Lines(out).ended(step.model_copy(update={"status": Status.PASSED, "reason": "", "kept_from": "earlier"}))
    said = "x 01_a: failed in 1 min 15 s: x is 1\n+ 01_a: passed (kept from earlier)\n"
    assert out.getvalue() == said
    assert duration(3700) == "1 h 01 min"


def test_the_gravest_status_is_the_runs() -> None:
    assert worst([Status.PASSED, Status.SKIPPED]) is Status.PASSED
    assert worst([Status.PASSED, Status.NOT_RUN, Status.WAITING]) is Status.WAITING
    assert worst([Status.FAILED, Status.NOT_RUN, Status.TIMED_OUT, Status.ERROR]) is Status.TIMED_OUT
    assert worst([]) is Status.PASSED
