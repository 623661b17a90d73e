"""Which steps are kept: keys, services, expectations judged anew, damaged files. Records are made, nothing runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tinylab import TinyLab, by_id, notebook, step

from nemolab.core.files import sha256, write_json
from nemolab.core.status import Status
from nemolab.runbook import begin_end, contracts, keeping, plan, spec
from nemolab.runbook.plan import Plan
from nemolab.runbook.record import RunRecord, SignOff


class Kept:
    """A checkout with one finished run of a plan, as the runner would have left it."""

    def __init__(self, lab: TinyLab, steps: list[dict[str, Any]]) -> None:
        self.lab, self.folder = lab, lab.root / "reports" / "book" / "20260101-000000-aaaa"
        self.folder.mkdir(parents=True)
        self.made = self.plan(steps)
        self.run = self._finished(self.made)

    def plan(self, steps: list[dict[str, Any]], **sets: Any) -> Plan:
        return plan.make(spec.load(self.lab.book(steps)), sets)

    def why(self, made: Plan) -> dict[str, str]:
        """Step -> why it must run, "" if kept."""
        decisions = keeping.decide(made, self.run, self.folder)
        assert all(bool(d.why) is (d.kept is None) for d in decisions.values())
        return {step_id: d.why for step_id, d in decisions.items()}

    def put(self, step_id: str, **update: Any) -> None:
        steps = tuple(s.model_copy(update=update) if s.id == step_id else s for s in self.run.steps)
        self.run = self.run.model_copy(update={"steps": steps})

    def _finished(self, made: Plan) -> RunRecord:
        run = begin_end.new_record(made, self.folder.name, command=(), by="")
        results, done = dict[str, dict[str, Any]](), dict[str, Any]()
        for planned in made.steps:
            model = planned.contract.results(total=1, base_url="http://127.0.0.1:5/v1")  # type: ignore[call-arg]
            values = model.as_document()
            (self.folder / f"{planned.name}.ipynb").write_text(planned.id)
            write_json(self.folder / f"{planned.name}.results.json", {"values": values})
            needed = {need: done[need].key for need in planned.needs}
            done[planned.id] = by_id(run, planned.id).model_copy(
                update={
                    "status": Status.PASSED,
                    "key": planned.key(results, needed, made.services),
                    "results": values,
                    "notebook_sha256": sha256(planned.id.encode()),
                }
            )
            results[planned.id] = keeping.values_of(done[planned.id])
        steps = tuple(done[s.id] for s in run.steps)
        return run.model_copy(update={"status": Status.PASSED, "steps": steps, "ended": datetime.now(UTC)})


CHAIN = [
    step("plan"),
    step("serve", service=True),
    {**step("probe"), "with": {"text": "${serve.base_url}"}},
    {**step("load", expect={"total": ">= 1"}), "with": {"text": "${serve.base_url}", "n": 5}},
]


@pytest.fixture
def kept(lab: TinyLab, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setenv("NEMOLAB_ROOT", str(lab.root))
    lab.write("tiny", notebook())
    lab.write("other", notebook())
    return Kept(lab, CHAIN)


def changed(number: int, **more: Any) -> list[dict[str, Any]]:
    return [{**s, **more} if i == number else s for i, s in enumerate(CHAIN)]


def test_nothing_changed(kept: Kept) -> None:
    assert set(kept.why(kept.plan(CHAIN)).values()) == {""}


def test_a_changed_parameter_runs_the_step_and_the_server_it_needs(kept: Kept) -> None:
    why = kept.why(kept.plan(changed(3, **{"with": {"text": "${serve.base_url}", "n": 6}})))
    assert why == {
        "plan": "",
        "serve": "its server is needed by load",
        "probe": "",
        "load": "code, library or parameters changed",
    }


def test_what_is_beneath_changes_all_above(kept: Kept) -> None:
    why = kept.why(kept.plan(changed(0, **{"with": {"n": 2}})))
    assert why["plan"] == "code, library or parameters changed"
    assert all(why.values())


def test_code_counts_and_text_does_not(kept: Kept) -> None:
    document = notebook()
    document["cells"][0]["source"] = "# Another title\n"
    kept.lab.write("tiny", document)
    assert set(kept.why(kept.plan(CHAIN)).values()) == {""}
    kept.lab.write("tiny", notebook("print(1)"))
    assert all(kept.why(kept.plan(CHAIN)).values())


def test_the_library_counts(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts, "library_sha256", lambda: "another")
    assert all(kept.why(kept.plan(CHAIN)).values())


def test_expectations_are_judged_anew_without_measuring(kept: Kept) -> None:
    stricter = kept.plan(changed(3, expect={"total": "> 1"}))
    assert kept.why(stricter)["load"] == "it did not meet its expectations"
    kept.put("load", status=Status.FAILED)
    looser = kept.plan(changed(3, expect={"total": "> 0"}))
    decision = keeping.decide(looser, kept.run, kept.folder)["load"]
    assert decision.kept is not None
    assert decision.kept.status is Status.PASSED
    assert [e.expected for e in decision.kept.expectations] == ["> 0"]


@pytest.mark.parametrize("status", [Status.ERROR, Status.TIMED_OUT, Status.KILLED, Status.INTERRUPTED, Status.NOT_RUN])
def test_what_did_not_end_well_runs_again(kept: Kept, status: Status) -> None:
    kept.put("probe", status=status)
    why = kept.why(kept.plan(CHAIN))
    assert why["probe"] == f"it ended {status.value!r}"
    assert why["load"] == "probe runs again"
    assert why["plan"] == ""


@pytest.mark.parametrize("name", ["03_probe.ipynb", "03_probe.results.json"])
def test_damaged_files_are_not_kept(kept: Kept, name: str) -> None:
    path = kept.folder / name
    path.write_text(path.read_text().replace("127", "128") + " ")
    path.write_text("{}" if name.endswith("json") else path.read_text())
    assert kept.why(kept.plan(CHAIN))["probe"] == f"{name} is missing or changed"
    path.unlink()
    assert kept.why(kept.plan(CHAIN))["probe"] == f"{name} is missing or changed"


def test_a_sign_off_lives_as_long_as_the_key(kept: Kept) -> None:
    asks = changed(0, sign_off=["oncall"])
    decision = keeping.decide(kept.plan(asks), kept.run, kept.folder)["plan"]
    assert decision.kept is not None
    assert (decision.kept.status, decision.kept.reason) == (Status.WAITING, "waits for sign-off by oncall")
    signed = SignOff(role="oncall", by="Ada", at=datetime.now(UTC), key=by_id(kept.run, "plan").key)
    kept.put("plan", sign_offs=(signed,))
    decision = keeping.decide(kept.plan(asks), kept.run, kept.folder)["plan"]
    assert decision.kept is not None
    assert decision.kept.status is Status.PASSED
    kept.put("plan", sign_offs=(signed.model_copy(update={"key": "of something else"}),))
    decision = keeping.decide(kept.plan(asks), kept.run, kept.folder)["plan"]
    assert decision.kept is not None
    assert decision.kept.status is Status.WAITING


def test_a_step_of_another_number_runs_again(kept: Kept) -> None:
    why = kept.why(kept.plan([step("new", needs=[]), *changed(0, needs=[])]))
    assert why["plan"] == "it was 01_plan and is now 02_plan"


def test_key_has_every_part(kept: Kept, tmp_path: Path) -> None:
    from nemolab.runbook.keys import step_key

    parts: dict[str, Any] = {"code": "c", "library": "l", "parameters": {"n": 1}, "needs": {"a": "k"}}
    others = [{"code": "d"}, {"library": "m"}, {"parameters": {"n": 2}}, {"needs": {"a": "j"}}, {"needs": {"b": "k"}}]
    keys = {step_key(**parts), *(step_key(**{**parts, **other}) for other in others)}
    assert len(keys) == 6
    assert step_key(**parts) == step_key(**dict(reversed(parts.items())))
