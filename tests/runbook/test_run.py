"""The life of a run on real kernels: run, wait, sign, resume, keep, change, replay, list."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tinylab import TinyLab, by_id, notebook, step

from nemolab.core.status import Status
from nemolab.runbook import record
from nemolab.runbook.check import check_report


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_life_of_a_run(lab: TinyLab) -> None:
    measured = notebook(
        "took = replay.recorded(measure)(0.05 * p.n)\nprint(took)", publish="results.publish(TinyResults(total=took))"
    )
    lab.write("measure", measured)
    lab.write("tiny", notebook())
    steps = [
        step("measure", "measure", exclusive=True, sign_off=["oncall"]),
        {**step("after"), "with": {"rates": ["${measure.total}"], "n": "${count}"}},
        step("beside", needs=[]),
    ]
    count = {"type": "int", "default": 1, "help": "how many"}
    lab.book(steps, parameters={"count": count}, time="1 min", risk="none")

    plan = lab.nemolab("run", "book", "--dry-run")
    assert "01_measure  notebooks/measure.ipynb  run: no earlier run" in plan.out
    assert "sign-off by oncall" in plan.out
    assert lab.folders() == []

    first = lab.nemolab("run", "book", "--by", "Grace")
    run = lab.last()
    assert (first.code, run.status, run.by) == (1, Status.WAITING, "Grace"), first.all
    assert [s.status for s in run.steps] == [Status.WAITING, Status.NOT_RUN, Status.PASSED]
    assert by_id(run, "after").reason == "measure waits for sign-off by oncall"
    again = lab.nemolab("run", "book")
    assert (again.code, len(lab.folders())) == (1, 1)  # nothing to do before somebody signs
    assert f"nemolab sign-off {run.run_id} measure --role ROLE" in first.out

    wrong = lab.nemolab("sign-off", run.run_id, "measure", "--role", "boss", "--by", "Ada")
    assert (wrong.code, "it asks for oncall" in wrong.err) == (2, True)
    signed = lab.nemolab("sign-off", run.run_id[:-1], "measure", "--role", "oncall", "--by", "Ada", "--note", "fine")
    assert (signed.code, signed.out) == (0, f"signed; `nemolab run --resume {run.run_id}` goes on\n")

    resumed = lab.nemolab("run", "--resume", run.run_id)
    whole = lab.last()
    assert (resumed.code, whole.status, len(lab.folders())) == (0, Status.PASSED, 1), resumed.all
    assert by_id(whole, "measure").started == by_id(run, "measure").started
    assert by_id(whole, "measure").kept_from is None  # it was measured in this very run
    assert by_id(whole, "measure").sign_offs[0].by == "Ada"
    assert by_id(whole, "after").parameters["rates"] == [by_id(whole, "measure").results["total"]["value"]]
    assert [f.message for f in check_report(lab.folders()[0])] == []

    kept = lab.nemolab("run", "book")
    assert (kept.code, len(lab.folders())) == (0, 1)
    assert "A tiny book: passed" in kept.out
    assert f"{run.run_id}/index.html" in kept.out

    other = lab.nemolab("run", "book", "--set", "count=2")
    changed = lab.last()
    assert (other.code, len(lab.folders())) == (0, 2), other.all
    assert by_id(changed, "measure").kept_from == run.run_id
    assert by_id(changed, "after").kept_from is None
    assert by_id(changed, "after").parameters["n"] == 2
    assert changed.command == ("nemolab", "run", "runbooks/book.yaml", "--set", "count=2")
    assert [f.message for f in check_report(lab.folders()[1])] == []
    assert lab.nemolab("run", "book").out == kept.out  # the older run still holds for the older question

    before = contents(lab.folders()[0])
    replays = []
    for _ in range(2):
        done = lab.nemolab("run", "--replay", run.run_id)
        assert done.code == 0, done.all
        assert "nothing is measured" in done.err
        replays.append(contents(lab.root / "reports" / "book" / f"{run.run_id}-replay"))
    assert replays[0] == replays[1]
    assert contents(lab.folders()[0]) == before
    assert replays[0]["01_measure.results.json"] == before["01_measure.results.json"]
    replayed = record.read(lab.root / "reports" / "book" / f"{run.run_id}-replay")
    assert (replayed.replay_of, replayed.status) == (run.run_id, Status.PASSED)

    path = lab.folders()[0] / "02_after.ipynb"
    whole_text = path.read_text()
    path.write_text(whole_text.replace(" differ from ", " equal "))
    assert path.read_text() != whole_text
    path = lab.folders()[0] / "01_measure.results.json"
    path.write_text(path.read_text().replace('"value": 0.', '"value": 1.'))
    tampered = lab.nemolab("run", "--replay", run.run_id)
    assert tampered.code == 3
    assert "the replay does not reproduce the results" in tampered.out
    assert "after: the replay does not reproduce what cell 4 (c2) shows" in tampered.out

    listed = lab.nemolab("list").out
    assert "A tiny book (1 min)" in listed
    assert changed.run_id in listed
    runs = lab.nemolab("list", "book").out
    assert f"+ {run.run_id}  passed" in runs
    assert "replay" not in runs


def test_a_corrected_notebook_takes_the_measurements_of_the_run_before(lab: TinyLab) -> None:
    cell = "took = replay.recorded(measure)(0.05 * p.n)\nprint(round(took, 6) * {})"
    publish = "results.publish(TinyResults(total=took * {}))"
    lab.write("tiny", notebook(cell.format(1), publish=publish.format(1)))
    lab.book([step("a")])
    assert lab.nemolab("run", "book").code == 0
    measured = lab.last()
    lab.write("tiny", notebook(cell.format(2), publish=publish.format(2)))

    done = lab.nemolab("run", "--recorded", measured.run_id)
    derived = lab.last()
    assert (done.code, derived.status) == (0, Status.PASSED), done.all
    assert (derived.measured_in, derived.measured) == (measured.run_id, measured.started)
    total = by_id(measured, "a").results["total"]["value"]
    assert by_id(derived, "a").results["total"]["value"] == 2 * total
    first, second = (sorted((folder / "recordings").rglob("*.json")) for folder in lab.folders())
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert [f.message for f in check_report(lab.folders()[1])] == []
    assert "Measured before." in (lab.folders()[1] / "index.html").read_text()
    assert f"of run {measured.run_id} of" in (lab.folders()[1] / "01_a.html").read_text()

    chained = lab.nemolab("run", "--recorded", str(lab.folders()[1]))  # the first run may lie elsewhere by now
    assert (chained.code, lab.last().measured_in, lab.last().measured) == (0, measured.run_id, measured.started)
    assert "anew" not in chained.all
    page = (lab.folders()[2] / "index.html").read_text()
    assert ("nemolab run runbooks/book.yaml" in page, "Not all:" in page) == (True, False)

    fresh = lab.nemolab("run", "book")  # a plain run keeps nothing of them: their measurements are another run's
    assert (fresh.code, by_id(lab.last(), "a").kept_from) == (0, None), fresh.all
    assert by_id(lab.last(), "a").results["total"]["value"] != 2 * total

    other = cell.format(3).replace("0.05 * p.n", "0.07 * p.n")  # another question: asked anew, and said so
    lab.write("tiny", notebook(other, publish=publish.format(1)))
    asked = lab.nemolab("run", "--recorded", measured.run_id)
    mixed = by_id(lab.last(), "a")
    assert (asked.code, mixed.anew) == (0, tuple(mixed.recordings))
    assert "measured anew, on this machine: measure-" in asked.all
    assert "<b>Not all:</b> measure-" in (lab.folders()[4] / "index.html").read_text()
    assert mixed.results["total"]["value"] != total
    again = lab.nemolab("run", "--recorded", lab.last().run_id)
    assert (again.code, f"--recorded {measured.run_id}, themselves" in again.err) == (2, True)
    assert lab.nemolab("run", "--recorded", measured.run_id, "--fresh").code == 2


def test_two_runs_measured_what_a_third_reports(lab: TinyLab) -> None:
    """A GPU was lost in between: the second run measured the rest, and the report says which and where."""
    cell = "took = sum(replay.recorded(measure)(0.01 * k) for k in {})"
    publish = "results.publish(TinyResults(total=took * p.n))"
    lab.book([step("a") | {"with": {"n": "${n}"}}], parameters={"n": {"type": "int", "default": 1, "help": "a number"}})
    for numbers in ("[1, 2]", "[2, 3]"):
        lab.write("tiny", notebook(cell.format(numbers), publish=publish))
        assert lab.nemolab("run", "book", "--fresh").code == 0
    first, second = lab.folders()
    one, two = (json.loads((folder / "run.json").read_text()) for folder in (first, second))
    two["host"] |= {"kernel": "another"}
    (second / "run.json").write_text(json.dumps(two))
    lab.write("tiny", notebook(cell.format("[1, 2, 3]"), publish=publish))

    done = lab.nemolab("run", "--recorded", str(first), "--recorded", str(second), "--set", "n=2")
    merged = by_id(lab.last(), "a")
    assert (done.code, merged.anew) == (0, ()), done.all
    assert lab.last().parameters["n"] == 2
    assert lab.last().measured_in == one["run_id"]
    assert lab.last().command[:6] == ("nemolab", "run", "--recorded", one["run_id"], "--recorded", two["run_id"])
    assert [(m.run_id, m.host["kernel"]) for m in lab.last().measured_also] == [(two["run_id"], "another")]
    assert len(merged.recordings) == 3
    assert list(merged.also.values()) == [two["run_id"]], "what both hold is the first's"
    page = (lab.folders()[2] / "index.html").read_text()
    [name] = merged.also
    assert f"From run {two['run_id']} of" in page
    assert f"came {Path(name).name}" in page
    assert "its machine was another: kernel another" in page
    assert f"and of run {two['run_id']} of" in (lab.folders()[2] / "01_a.html").read_text()
    assert [f.message for f in check_report(lab.folders()[2])] == []

    shutil.rmtree(second)  # a run on recordings is a source like those that measured
    again = lab.nemolab("run", "--recorded", str(lab.folders()[1]))
    assert (again.code, by_id(lab.last(), "a").also) == (0, merged.also), again.all
    assert lab.last().measured_also[0].run_id == two["run_id"]
    assert lab.last().command == ("nemolab", "run", "--recorded", one["run_id"], "--recorded", two["run_id"])
    assert "its machine was another" in (lab.folders()[2] / "index.html").read_text()


def test_runs_of_two_runbooks_are_not_mixed(lab: TinyLab) -> None:
    lab.write("tiny", notebook())
    lab.book([step("a")])
    assert lab.nemolab("run", "book").code == 0
    book = lab.folders()[0]
    other = book.parents[1] / "other" / book.name
    shutil.copytree(book, other)
    record = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps(record | {"runbook": "other"}))
    mixed = lab.nemolab("run", "--recorded", str(book), "--recorded", str(other))
    assert (mixed.code, "that is a run of other, not of book" in mixed.err) == (2, True), mixed.all


def test_a_run_on_recordings_goes_on_as_one(lab: TinyLab) -> None:
    measure = notebook(
        "took = replay.recorded(measure)(0.05 * p.n)", publish="results.publish(TinyResults(total=took))"
    )
    lab.write("measure", measure)
    lab.write("tiny", notebook())
    lab.book([step("a", "measure"), step("b")])
    assert lab.nemolab("run", "book").code == 0
    measured = lab.last()
    lab.write("tiny", notebook("1 / 0"))
    assert lab.nemolab("run", "--recorded", measured.run_id).code == 3
    lab.write("tiny", notebook())

    resumed = lab.nemolab("run", "--resume", lab.last().run_id)
    assert (resumed.code, lab.last().measured_in) == (0, measured.run_id), resumed.all
    assert [s.anew for s in lab.last().steps] == [(), ()]
    assert [f.message for f in check_report(lab.folders()[1])] == []


# jupyter_client's default path of IPC sockets is relative: kernels side by side answer each other, or hang.
PRIVATE = """
import json, os
from ipykernel.connect import get_connection_file
info = json.loads(open(get_connection_file()).read())
folder = os.path.dirname(info["ip"])
print(info["transport"], os.path.isabs(folder), oct(os.stat(folder).st_mode & 0o777))
"""


def test_independent_steps_run_side_by_side_and_exclusive_ones_alone(lab: TinyLab) -> None:
    lab.write("tiny", notebook(PRIVATE, "import time\ntime.sleep(1.5)"))
    lab.book([step("a", needs=[]), step("b", needs=[]), step("alone", needs=[], exclusive=True)])
    assert lab.nemolab("run", "book", "--jobs", "3").code == 0
    for path in lab.folders()[0].glob("*.ipynb"):
        assert "ipc True 0o700" in path.read_text()
    spans = {
        s.id: (s.started.timestamp(), s.started.timestamp() + (s.seconds or 0)) for s in lab.last().steps if s.started
    }
    (a, a_end), (b, b_end), (alone, alone_end) = spans["a"], spans["b"], spans["alone"]
    assert max(a, b) < min(a_end, b_end)  # together
    assert alone >= max(a_end, b_end) - 0.5 or alone_end <= min(a, b) + 0.5


def test_a_run_of_a_runbook_elsewhere_goes_on_when_told_where(lab: TinyLab, tmp_path: Path) -> None:
    lab.write("tiny", notebook("1 / 0"))
    lab.book([step("a")])
    elsewhere = tmp_path / "elsewhere" / "book.yaml"
    elsewhere.parent.mkdir()
    (lab.root / "runbooks" / "book.yaml").rename(elsewhere)
    assert lab.nemolab("run", str(elsewhere)).code == 3
    run_id = lab.last().run_id
    lab.write("tiny", notebook())
    lost = lab.nemolab("run", "--resume", run_id)
    assert (lost.code, "Traceback" in lost.err) == (2, False)
    lab.book([step("a")], name="other")
    wrong = lab.nemolab("run", "other", "--resume", run_id)
    assert (wrong.code, "that is a run of book, not of other" in wrong.err) == (2, True)
    assert lab.nemolab("run", str(elsewhere), "--resume", run_id).code == 0
    assert (lab.last().run_id, lab.last().status) == (run_id, Status.PASSED)


def test_usage(lab: TinyLab) -> None:
    lab.write("tiny", notebook())
    lab.book([step("a")])
    for args, says in (
        ([], "say what to run: RUNBOOK, --resume RUN, --replay RUN or --recorded RUN"),
        (["--resume", "x", "--replay", "y"], "exclude each other"),
        (["book", "--set", "n"], "'n' is not NAME=VALUE"),
        (["--resume", "nothing"], "no run 'nothing'"),
        (["boook"], "did you mean 'book'"),
        (["book", "--until", "b"], "no step 'b'"),
    ):
        done = lab.nemolab("run", *args)
        assert (done.code, "Traceback" in done.err) == (2, False)
        assert says in done.err
    assert not (lab.root / "reports").exists()
