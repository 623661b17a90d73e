"""An edit of any one part of a report is found, by the check that is meant to find it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_run
from click.testing import CliRunner

from nemolab.cli.report import check_report as command
from nemolab.core.finding import Severity
from nemolab.runbook import check, record, report

NOTEBOOK = "04_load.ipynb"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "run"
    sample_run.passed(folder)
    report.write(folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEMOLAB_ROOT", str(tmp_path / "checkout"))
    copy = tmp_path / "run"
    shutil.copytree(original, copy)
    assert check.check_report(copy) == []
    return copy


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def forge(folder: Path) -> None:
    """What a forger who knows the format would do after an edit: hash again, write the HTML and the sums again."""
    run = record.read(folder)
    steps = []
    for step in run.steps:
        path = folder / f"{step.name}.ipynb"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        steps.append(step.model_copy(update={"notebook_sha256": digest}))
    run.model_copy(update={"steps": tuple(steps)}).write(folder)
    report.write(folder)


def notebook(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with sample_run.edited(folder / NOTEBOOK) as nb:
            change(nb)

    return edit


def run_json(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with sample_run.edited(folder / "run.json") as run:
            change(run)

    return edit


def cell(nb: dict[str, Any], id: str) -> dict[str, Any]:
    return next(c for c in nb["cells"] if c["id"] == id)


def shown_number(nb: dict[str, Any]) -> None:
    data = cell(nb, "results")["outputs"][-1]["data"]
    data["application/vnd.nemolab.results.v1+json"]["values"]["throughput"]["value"] = 9999.0


def text(nb: dict[str, Any]) -> None:
    cell(nb, "do")["outputs"][0]["text"] = ["stage 1 of 5 went very well\n"]


def figure(nb: dict[str, Any]) -> None:
    data = cell(nb, "look")["outputs"][0]["data"]["application/vnd.plotly.v1+json"]["data"][0]
    data["y"] = [1] * len(data["y"])


def parameter(nb: dict[str, Any]) -> None:
    cell(nb, "injected-parameters")["source"] = ['base_url = "http://127.0.0.1:9/v1"\n']


def deleted_cell(nb: dict[str, Any]) -> None:
    nb["cells"].remove(cell(nb, "do"))


def edited_code(nb: dict[str, Any]) -> None:
    cell(nb, "do")["source"] = ["stages = []\n"]


def truncated(folder: Path) -> None:
    path = folder / NOTEBOOK
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def recorded_number(run: dict[str, Any]) -> None:
    run["steps"][3]["results"]["throughput"]["value"] = 9999.0


def verdict(run: dict[str, Any]) -> None:
    run["steps"][3]["expectations"][1].update(expected="<= 50", met=True)


def met(run: dict[str, Any]) -> None:
    run["steps"][3]["expectations"][0]["met"] = False


def run_status(run: dict[str, Any]) -> None:
    run["steps"][0]["status"] = "failed"


def sign_off(run: dict[str, Any]) -> None:
    run["steps"][3]["key"] = "another"


def results_file(folder: Path) -> None:
    replace(folder / "04_load.results.json", "1184.2", "9999.0")


def deleted(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def html(old: str, new: str, page: str = "index.html") -> Callable[[Path], None]:
    return lambda folder: replace(folder / page, old, new)


RECORDING = "recordings/04_load/ladder.run-0a1b.json"

# What is edited, which code finds it, and which one still does after a forger has made all hashes right again (None:
# only a replay can, which computes it again).
EDITS: dict[str, tuple[Callable[[Path], None], str, str | None]] = {
    "number in the notebook": (notebook(shown_number), "P-006", "P-006"),
    "text in the notebook": (notebook(text), "P-003", None),
    "figure in the notebook": (notebook(figure), "P-003", None),
    "parameter in the notebook": (notebook(parameter), "P-005", "P-005"),
    "cell deleted": (notebook(deleted_cell), "P-004", "P-004"),
    "code edited": (notebook(edited_code), "P-004", "P-004"),
    "notebook truncated": (truncated, "P-004", "P-004"),
    "notebook deleted": (deleted(NOTEBOOK), "P-003", None),
    "number in the record": (run_json(recorded_number), "P-006", "P-006"),
    "verdict in the record": (run_json(verdict), "P-007", "P-007"),
    "one verdict in the record": (run_json(met), "P-007", "P-007"),
    "status of the run": (run_json(run_status), "P-002", "P-002"),
    "key of a sign-off": (run_json(sign_off), "P-020", "P-020"),
    "results file": (results_file, "P-006", "P-006"),
    "results file deleted": (deleted("04_load.results.json"), "P-006", "P-006"),
    "recording deleted": (deleted(RECORDING), "P-008", "P-008"),
    "recording edited": (lambda f: replace(f / RECORDING, "2", "5"), "P-008", "P-008"),
    "recording added": (lambda f: shutil.copy(f / RECORDING, f / "recordings/04_load/x.json"), "P-009", "P-009"),
    "number in the HTML": (html("1,184", "9,999"), "P-011", None),
    "text in the HTML": (html("come", "came", "04_load.html"), "P-011", None),
    "figure in the HTML": (html("243.9", "43.9", "04_load.html"), "P-011", None),
    "script in the HTML": (html('"use strict"', 'alert(1);"use strict"'), "P-011", None),
    "page deleted": (deleted("04_load.html"), "P-010", None),
    "page added": (lambda f: shutil.copy(f / "index.html", f / "05_more.html"), "P-011", None),
    "checksums deleted": (deleted("SHA256SUMS"), "P-014", None),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_found(folder: Path, name: str) -> None:
    edit, code, _ = EDITS[name]
    edit(folder)
    found = check.check_report(folder)
    assert code in [finding.code for finding in found]
    assert all(finding.fix and finding.where for finding in found)
    if code != "P-009":  # a stray recording is no lie
        assert any(finding.severity is Severity.ERROR for finding in found)


@pytest.mark.parametrize("name", [name for name, (_, _, after) in EDITS.items() if after])
def test_what_follows_from_something_else_is_found_even_with_all_hashes_made_right(folder: Path, name: str) -> None:
    edit, _, code = EDITS[name]
    edit(folder)
    forge(folder)
    assert code in [finding.code for finding in check.check_report(folder)]


def test_the_command_says_so_and_exits_with_1(folder: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(command, [str(folder)], standalone_mode=False).return_value == 0
    notebook(figure)(folder)
    said = runner.invoke(command, [str(folder)], standalone_mode=False)
    assert said.return_value == 1
    assert "P-003 04_load.ipynb: the executed notebook is not the one of the record" in said.output
    assert "not to be trusted" in said.output
    as_json = json.loads(runner.invoke(command, [str(folder), "--json"], standalone_mode=False).output)
    assert as_json["whole"] is False


def test_writing_the_html_again_does_not_launder_an_edit(folder: Path) -> None:
    notebook(figure)(folder)
    report.write(folder)
    assert [finding.code for finding in check.check_report(folder)] == ["P-003"]
