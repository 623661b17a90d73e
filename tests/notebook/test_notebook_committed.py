"""A committed run shown inside a notebook: the same figures and numbers, under a banner, with no HTML out of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sample_run

from nemolab.core.errors import UsageError
from nemolab.notebook import committed, frontend, html, replay, results, show


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for module in (frontend, show, committed):
        monkeypatch.setattr(module, "emit", found.append)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample_run.passed(tmp_path)
    return tmp_path


def _load(run: replay.CommittedRun) -> str:
    return next(step["id"] for step in run.record["steps"] if "throughput" in step["results"])


def test_figures_are_shown_again_under_a_banner(folder: Path, shown: list[dict[str, Any]]) -> None:
    run = replay.open_run(folder)
    run.show_step(_load(run))
    banner, *outputs = shown
    assert (
        f"Replay of run {run.record['run_id']} from 2026-11-30 on x86-64 (2 cores), 1 x NVIDIA H200. "
        in (banner["text/plain"])
    )
    assert "Nothing is measured here." in banner["text/plain"]
    original = [data for data in run.outputs(_load(run)) if show.PLOTLY in data]
    assert [o[show.PLOTLY] for o in outputs if show.PLOTLY in o] == [data[show.PLOTLY] for data in original]
    assert original


def test_values_are_the_results(folder: Path) -> None:
    run = replay.open_run(folder)
    assert run.values(_load(run))["throughput"] == sample_run.LADDER.throughput


def test_the_summary_names_every_step(folder: Path, shown: list[dict[str, Any]]) -> None:
    run = replay.open_run(folder)
    run.summary()
    assert shown[0][show.VERDICT]["status"] == "passed"
    assert [row[0] for row in shown[1][html.MIME]["rows"]] == [step["id"] for step in run.record["steps"]]


def test_html_in_the_file_is_not_shown_and_results_do_not_pass_for_ours(
    folder: Path, shown: list[dict[str, Any]]
) -> None:
    run = replay.open_run(folder)
    path = next(folder.glob("*load*.ipynb"))
    document = json.loads(path.read_text())
    for cell in document["cells"]:
        for output in cell.get("outputs", ()):
            if "data" in output:
                output["data"]["text/html"] = "<script>alert(1)</script>"
    path.write_text(json.dumps(document))
    run.show_step(_load(run), only=("figure", "table", "findings", "verdict", "results", "text"))
    assert not [output for output in shown if "<script" in output.get("text/html", "")]
    assert not [output for output in shown if results.MIME in output]
    assert [output for output in shown if html.MIME in output]


def test_what_is_not_there_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = replay.open_run(folder)
    with pytest.raises(UsageError, match="no step 'nothing'"):
        run.values("nothing")
    monkeypatch.setenv("NEMOLAB_ROOT", str(folder))
    with pytest.raises(UsageError, match="no run 'quickstart'"):
        replay.open_run("quickstart")


def test_a_run_is_found_by_name_examples_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_ROOT", str(tmp_path))
    for name in ("quickstart/20261201-1", "quickstart/20261202-2", "quickstart/20261203-3-replay"):
        sample_run.passed(tmp_path / "reports" / name)
    assert replay.open_run("quickstart").folder.name == "20261202-2"
    assert replay.open_run("20261201").folder.name == "20261201-1"
    sample_run.passed(tmp_path / "reports" / "examples" / "quickstart-cpu")
    assert replay.open_run("quickstart").folder.name == "quickstart-cpu"
