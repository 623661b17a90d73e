"""The static check finds nothing in a whole report, and says so when it cannot compare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sample_run
from nbformat.v4 import new_code_cell, new_output

from nemolab.core import paths
from nemolab.core.finding import Severity
from nemolab.core.status import Status
from nemolab.runbook import check, record, report
from nemolab.runbook.record import Failure


@pytest.fixture(autouse=True)
def nothing_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkout without the notebooks that the samples name."""
    monkeypatch.setenv("NEMOLAB_ROOT", str(tmp_path / "checkout"))


def codes(folder: Path) -> list[str]:
    return [finding.code for finding in check.check_report(folder)]


def test_whole_reports_have_no_findings(tmp_path: Path) -> None:
    for name in ("passed", "mixed"):
        getattr(sample_run, name)(tmp_path / name)
        report.write(tmp_path / name)
        assert check.check_report(tmp_path / name) == []


def test_no_record_and_a_run_that_goes_on(tmp_path: Path) -> None:
    assert codes(tmp_path) == ["P-001"]
    sample_run.Run(tmp_path).finish(Status.RUNNING, ended=None)
    assert "P-001" in codes(tmp_path)
    report.write(tmp_path)
    assert "its runner died" in (tmp_path / "index.html").read_text()  # a running run is rendered truthfully
    assert codes(tmp_path) == ["P-001"]
    (tmp_path / "run.json").write_text("{")
    assert codes(tmp_path) == ["P-001"]


def test_a_report_that_was_never_written(tmp_path: Path) -> None:
    sample_run.passed(tmp_path)
    assert set(codes(tmp_path)) == {"P-010", "P-014"}


def test_a_passed_step_with_an_exception_or_a_cell_that_did_not_run(tmp_path: Path) -> None:
    nb = sample_run.small_notebook("Bad")
    nb.cells[1].outputs = [new_output("error", ename="E", evalue="e", traceback=[])]
    nb.cells.append(new_code_cell("later()", id="c2"))
    run = sample_run.Run(tmp_path)
    run.add("bad", "Bad", nb)
    run.finish()
    report.write(tmp_path)
    assert sorted(codes(tmp_path)) == ["P-004", "P-017"]


def test_the_same_in_a_step_that_failed_with_it_is_as_it_should_be(tmp_path: Path) -> None:
    nb = sample_run.small_notebook("Bad")
    nb.cells[1].outputs = [new_output("error", ename="E", evalue="e", traceback=[])]
    nb.cells.append(new_code_cell("later()", id="c2"))
    run = sample_run.Run(tmp_path)
    run.add("bad", "Bad", nb, status=Status.ERROR, failure=Failure(kind="E", message="e", cell=1, cell_id="c1"))
    run.finish(Status.ERROR)
    report.write(tmp_path)
    assert codes(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [
        ("nvapi-" + "a" * 30, "P-015", Severity.ERROR),
        ("hf_" + "A1" * 12, "P-015", Severity.ERROR),
        ("model at /home/someone/model.gguf", "P-016", Severity.WARNING),
        ("C:\\Users\\someone\\x", "P-016", Severity.WARNING),
        ("POST /v1/chat/completions to http://a/home/b, ~/home/x", "", Severity.INFO),
    ],
)
def test_secrets_and_places_are_found(tmp_path: Path, text: str, code: str, severity: Severity) -> None:
    run = sample_run.Run(tmp_path)
    run.add("leak", "Leak", sample_run.small_notebook("Leak", output=text))
    run.finish()
    report.write(tmp_path)
    found = check.check_report(tmp_path)
    assert [(f.code, f.severity, f.where) for f in found] == ([(code, severity, "01_leak.ipynb")] if code else [])
    assert all("nvapi-aaa" not in f.message for f in found)


def test_host_facts_that_name_the_machine(tmp_path: Path) -> None:
    sample_run.Run(tmp_path).finish(host={"system": {"hostname": "gpu-17"}})
    report.write(tmp_path)
    assert codes(tmp_path) == ["P-016"]


def test_sign_offs_that_are_missing_or_dead_under_a_pass(tmp_path: Path) -> None:
    run = sample_run.Run(tmp_path)
    sample_run.add_ladder(run, key="a newer key")
    run.finish()
    report.write(tmp_path)
    assert codes(tmp_path) == ["P-020", "P-020"]


def test_html_of_another_version_is_compared_by_checksum(tmp_path: Path) -> None:
    sample_run.passed(tmp_path)
    report.write(tmp_path)
    for page in tmp_path.glob("*.html"):
        html = page.read_text()
        page.write_text(re.sub(r'(name="generator" content=")[^"]*', r"\1nemolab 0.0.1 (old)", html))
    (tmp_path / report.SUMS).write_text(report.sums(tmp_path, record.read(tmp_path)))
    found = check.check_report(tmp_path)
    assert [(f.code, f.severity) for f in found] == [("P-012", Severity.WARNING)]
    page.write_text(page.read_text().replace("Passed", "passed"))
    assert codes(tmp_path) == ["P-014", "P-012"]


def test_a_notebook_that_changed_since_is_told_and_no_error(tmp_path: Path) -> None:
    sample_run.passed(tmp_path / "run")
    report.write(tmp_path / "run")
    source = paths.root() / "notebooks" / "10_check_host.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes((tmp_path / "run" / "01_host.ipynb").read_bytes())
    assert codes(tmp_path / "run") == []
    source.write_text(source.read_text().replace("check()", "check(1)"))
    found = check.check_report(tmp_path / "run")
    assert [(f.code, f.severity) for f in found] == [("P-019", Severity.INFO)]


def test_charts_that_cannot_be_drawn_are_told(tmp_path: Path) -> None:
    figure = {"data": [{"type": "surface", "z": [[1]]}], "layout": {}}
    output = new_output("display_data", data={"application/vnd.plotly.v1+json": figure, "text/plain": "x"})
    nb = sample_run.small_notebook("3D")
    nb.cells[1].outputs = [output]
    run = sample_run.Run(tmp_path)
    run.add("three", "3D", nb)
    run.finish()
    report.write(tmp_path)
    assert codes(tmp_path) == ["P-018"]
    assert "surface cannot be drawn offline" in (tmp_path / "index.html").read_text()
