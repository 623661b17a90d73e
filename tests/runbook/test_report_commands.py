"""`nemolab report` and `nemolab diff` on runs in a reports folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sample_run
from click.testing import CliRunner

from nemolab.cli.report import diff, report
from nemolab.core.errors import UsageError
from nemolab.runbook.store import find


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with two runs of the quickstart, the second one slower."""
    root = tmp_path_factory.mktemp("checkout")
    folder = root / "reports" / "quickstart"
    for run_id, factor in (("20261130-091500-aaaa", 1.0), ("20261201-091500-bbbb", 0.5)):
        sample_run.passed(folder / run_id)
        with sample_run.edited(folder / run_id / "run.json") as run:
            run["run_id"] = run_id
            run["steps"][3]["results"]["throughput"]["value"] *= factor
            run["steps"][3]["results"]["ttft_p95"]["value"] *= 1.05
    return root


@pytest.fixture
def reports(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its runs of the quickstart."""
    monkeypatch.setenv("NEMOLAB_ROOT", str(checkout))
    return checkout / "reports" / "quickstart"


def call(command: Any, *args: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, args, standalone_mode=False, catch_exceptions=False)
    return int(result.return_value), result.output


@pytest.mark.parametrize(
    ("name", "run_id"),
    [
        ("quickstart", "20261201-091500-bbbb"),
        ("quickstart~0", "20261201-091500-bbbb"),
        ("quickstart~1", "20261130-091500-aaaa"),
        ("20261130", "20261130-091500-aaaa"),
        ("20261201-091500-bbbb", "20261201-091500-bbbb"),
    ],
)
def test_a_run_is_meant_by_runbook_id_or_path(reports: Path, name: str, run_id: str) -> None:
    assert find(name).name == run_id
    assert find(str(reports / run_id)) == reports / run_id


@pytest.mark.parametrize("name", ["quickstart~2", "nothing", "2026", "../x"])
def test_what_means_no_run_or_several_is_refused(reports: Path, name: str) -> None:
    with pytest.raises(UsageError):
        find(name)


def test_report_writes_the_pages_and_prints_where(reports: Path) -> None:
    code, said = call(report, "quickstart")
    assert code == 0
    assert "20261201-091500-bbbb: passed" in said
    assert (reports / "20261201-091500-bbbb" / "index.html").is_file()
    _, path = call(report, "quickstart", "--open")
    assert Path(path.strip()) == reports / "20261201-091500-bbbb" / "index.html"


def test_diff_says_direction_unit_and_noise(reports: Path) -> None:
    code, said = call(diff, "quickstart~1", "quickstart")
    assert code == 0
    rows = {line.split()[0]: line for line in said.splitlines() if line.startswith("  ")}
    assert "-50.0%" in rows["throughput"]
    assert "tokens/s" in rows["throughput"]
    assert "! worse" in rows["throughput"]
    assert "= same within noise" in rows["ttft_p95"]
    assert said.splitlines()[-1] == "1 worse, 4 same within noise"


def test_diff_fails_only_when_asked_to(reports: Path) -> None:
    assert call(diff, "quickstart~1", "quickstart", "--fail-on-worse")[0] == 1
    assert call(diff, "quickstart", "quickstart~1", "--fail-on-worse")[0] == 0
    code, said = call(diff, "quickstart~1", "quickstart", "--json")
    assert code == 0
    assert json.loads(said)["regressed"] is True
