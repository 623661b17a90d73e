from __future__ import annotations

import pickle
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from nemolab.core import paths
from nemolab.core.contract import Params, Results, Unit
from nemolab.core.errors import ExitCode, NemolabError, UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.core.status import Status


class Speed(Results):
    throughput: Annotated[float, Unit("tokens/s", "higher", noise=0.1)] = Field(description="Tokens a second.")
    note: str = Field(default="", description="A word.")


def test_results_carry_unit_direction_and_help() -> None:
    document = Speed(throughput=12.5).as_document()
    assert document["throughput"] == {
        "value": 12.5,
        "unit": "tokens/s",
        "better": "higher",
        "noise": 0.1,
        "help": "Tokens a second.",
    }
    assert document["note"]["better"] == "none"


def test_contracts_are_frozen_and_strict_about_names() -> None:
    class Port(Params):
        port: int = Field(default=8000, ge=1, le=65535, description="Port.")

    with pytest.raises(ValidationError, match="prot"):
        Port(prot=1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="65535"):
        Port(port=70000)
    with pytest.raises(ValidationError, match="frozen"):
        Port().port = 1  # type: ignore[misc]


def test_every_status_has_its_exit_code() -> None:
    assert {status: status.exit_code for status in Status}  # none is forgotten
    assert Status.PASSED.exit_code == 0
    assert Status.FAILED.exit_code == 1
    assert Status.TIMED_OUT.exit_code == Status.KILLED.exit_code == 4
    assert Status.INTERRUPTED.exit_code == 130


def test_error_says_what_where_and_fix_and_survives_a_process_boundary() -> None:
    error = UsageError("unknown key 'stpes'", where="quickstart.yaml:3", fix="write 'steps'")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "quickstart.yaml:3: unknown key 'stpes'\n  fix: write 'steps'"
    assert (type(again), again.exit_code) == (UsageError, ExitCode.USAGE)
    assert NemolabError("x").exit_code == ExitCode.ERROR


def test_finding_is_json_ready() -> None:
    finding = Finding("R-001", Severity.DISAGREE, "Two pages differ.", flag="--max-model-len")
    assert finding.as_dict()["severity"] == "sources disagree"
    assert finding.as_dict()["where"] is None


def test_root_is_found_from_below_and_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("runbooks", "notebooks", "deep/er"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.delenv("NEMOLAB_ROOT", raising=False)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert paths.root() == tmp_path
    monkeypatch.setenv("NEMOLAB_ROOT", "/elsewhere")
    assert paths.root() == Path("/elsewhere")


def test_a_path_of_the_checkout_is_known_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "runbooks").symlink_to(elsewhere)
    monkeypatch.setenv("NEMOLAB_ROOT", str(root))
    assert paths.inside(root / "runbooks" / "a.yaml") == "runbooks/a.yaml"
    assert paths.inside(elsewhere / "a.yaml") is None
