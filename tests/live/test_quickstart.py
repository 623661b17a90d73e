"""The quickstart, live: the real engine, the real miniature, every notebook, the report, keeping and replay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from nemolab.core.files import sha256
from nemolab.engines import process
from nemolab.runbook import record
from nemolab.runbook.check import check_report

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Lab:
    """A checkout of its own, so that a test's runs are not the developer's."""

    root: Path

    def nemolab(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "NEMOLAB_ROOT": str(self.root)}
        command = [sys.executable, "-m", "nemolab", *arguments]
        done = subprocess.run(command, env=environment, cwd=self.root, capture_output=True, text=True, timeout=500)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def runs(self) -> list[Path]:
        return sorted(path.parent for path in self.root.glob("reports/quickstart/*/run.json"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("checkout")
    for name in ("notebooks", "runbooks"):
        (root / name).symlink_to(ROOT / name)
    return Lab(root)


@pytest.fixture(scope="module")
def run(lab: Lab) -> Path:
    lab.nemolab("run", "runbooks/quickstart.yaml")
    [folder] = lab.runs()
    return folder


def test_every_step_passes_and_says_what_it_measured(run: Path) -> None:
    done = record.read(run)
    assert done.status == "passed"
    assert [step.id for step in done.steps] == ["host", "serve", "probe", "load", "validate"]
    assert {step.status for step in done.steps} == {"passed"}
    values = {step.id: {name: entry["value"] for name, entry in step.results.items()} for step in done.steps}
    assert values["serve"]["engine"] == "llamacpp"
    assert values["probe"]["failed"] == 0
    assert values["load"]["output_tokens_per_s"] > 0
    assert values["validate"]["length_error_tokens"] == 0
    assert values["validate"]["longest_tokens"] == 8192


def test_the_report_is_whole(run: Path) -> None:
    assert [finding for finding in check_report(run) if finding.severity == "error"] == []
    assert (run / "index.html").stat().st_size < 1_000_000


def test_no_server_is_left(run: Path) -> None:
    assert [state for state in process.running() if state.run == run.name] == []


def test_nothing_changed_means_nothing_is_run(lab: Lab, run: Path) -> None:
    before = {path: sha256(path.read_bytes()) for path in run.iterdir() if path.is_file()}
    done = lab.nemolab("run", "runbooks/quickstart.yaml")
    assert run.name in done.stdout + done.stderr
    assert lab.runs() == [run]
    assert before == {path: sha256(path.read_bytes()) for path in run.iterdir() if path.is_file()}


def test_two_replays_give_the_same_bytes(lab: Lab, run: Path) -> None:
    digests = []
    for _ in range(2):
        lab.nemolab("run", "--replay", run.name)
        [folder] = [path for path in lab.runs() if path != run]
        pages = sorted(path for path in folder.iterdir() if path.suffix in (".html", ".ipynb"))
        assert len(pages) == 11
        digests.append({path.name: sha256(path.read_bytes()) for path in pages})
        assert "Replay" in (folder / "index.html").read_text()
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()
    assert digests[0] == digests[1]


def test_diff_of_a_run_with_itself_finds_nothing(lab: Lab, run: Path) -> None:
    done = lab.nemolab("diff", run.name, run.name, "--json")
    steps = json.loads(done.stdout)["steps"]
    assert [step["id"] for step in steps] == ["host", "serve", "probe", "load", "validate"]
    assert not any(value["matters"] for step in steps for value in step["values"])
