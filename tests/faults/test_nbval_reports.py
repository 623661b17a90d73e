"""nbval in replay tells an intact report from a damaged one. One pytest over many broken copies of one report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from notebook_report import report

ROOT = Path(__file__).parents[2]
NAME = "04_rate"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def _cell(document: Any, name: str) -> Any:
    return next(cell for cell in document["cells"] if cell["id"] == name)


def _number(document: Any, folder: Path) -> None:
    shown = _cell(document, "results")["outputs"][0]["data"]["application/vnd.nemolab.results.v1+json"]
    shown["values"]["rate"]["value"] += 1
    _results_file(document, folder)


def _text(document: Any, folder: Path) -> None:
    data = _cell(document, "verdict")["outputs"][0]["data"]
    data["text/plain"] = "".join(data["text/plain"]).replace("PASSED", "FAILED")


def _figure(document: Any, folder: Path) -> None:
    figure = _cell(document, "rates")["outputs"][0]["data"]["application/vnd.plotly.v1+json"]
    figure["data"][0]["y"][0] *= 2


def _parameter(document: Any, folder: Path) -> None:
    cell = _cell(document, "injected-parameters")
    cell["source"] = [line.replace("repeats = 5", "repeats = 6") for line in cell["source"]]


def _deleted(document: Any, folder: Path) -> None:
    document["cells"].remove(_cell(document, "rates"))


def _truncated(document: Any, folder: Path) -> None:
    del document["cells"][-2:]


def _results_file(document: Any, folder: Path) -> None:
    file = folder / f"{NAME}.results.json"
    stored = json.loads(file.read_text())
    stored["values"]["rate"]["value"] += 1
    file.write_text(json.dumps(stored))


def _unrun(document: Any, folder: Path) -> None:
    cell = _cell(document, "rates")
    cell["outputs"], cell["execution_count"] = [], None


def _stripped(document: Any, folder: Path) -> None:
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None


def _picture(document: Any, folder: Path) -> None:
    _cell(document, "rates")["outputs"][0]["data"]["image/png"] = PNG


def _order(document: Any, folder: Path) -> None:
    _cell(document, "verdict")["outputs"].reverse()


def _skipped(document: Any, folder: Path) -> None:
    _figure(document, folder)
    _cell(document, "rates")["metadata"]["tags"] = ["nbval-skip", "raises-exception"]


def _recording(document: Any, folder: Path) -> None:
    file = next((folder / "recordings" / NAME).glob("*.json"))
    stored = json.loads(file.read_text())
    stored["value"][-1]["rates"] = [9e9] * 5
    file.write_text(json.dumps(stored))


def _side_effect(document: Any, folder: Path) -> None:
    _cell(document, "check-parameters")["source"].append(f"\nopen('{NAME}.results.json', 'a').write(' ') and None")


# Copy -> what is done to it. Faults in different cells share a copy, for each copy costs a kernel.
COPIES: dict[str, tuple[Callable[[Any, Path], None], ...]] = {
    "intact": (),
    "intact-too": (),
    "values": (_number, _text, _figure),
    "kinds": (_picture, _order),
    "parameter": (_parameter,),
    "deleted": (_deleted,),
    "truncated": (_truncated,),
    "unrun": (_unrun,),
    "stripped": (_stripped,),
    "results-file": (_results_file,),
    "skipped": (_skipped,),
    "recording": (_recording,),
    "side-effect": (_side_effect,),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Copy -> test item -> what came of it, from one `pytest -n 2` without --dist over all the copies."""
    base = tmp_path_factory.mktemp("reports")
    with tempfile.TemporaryDirectory(prefix="nemolab-") as sockets:
        report(base / "intact", NAME, Path(sockets), {"repeats": 5})
    for name, faults in COPIES.items():
        folder = base / name
        if name != "intact":
            shutil.copytree(base / "intact", folder)
        path = folder / f"{NAME}.ipynb"
        for break_it in faults:
            document = json.loads(path.read_text())
            break_it(document, folder)
            path.write_text(json.dumps(document))
    xml = base / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", f"--junitxml={xml}", f"--rootdir={base}"]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), f"--confcutdir={ROOT}", "-p", "conftest", str(base)],
        cwd=ROOT, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert xml.exists(), done.stdout + done.stderr
    found: dict[str, dict[str, str]] = {}
    for case in ET.parse(xml).iter("testcase"):
        folder = case.get("classname", "").split(".")[0]
        bad = [
            f"{child.tag}: {child.get('message', '')} {child.text or ''}" for child in case if child.tag != "skipped"
        ]
        found.setdefault(folder, {})[case.get("name", "")] = "\n".join(bad) or "passed"
    return found


@pytest.mark.parametrize("copy", ["intact", "intact-too"])
def test_an_intact_report_passes_cell_by_cell(outcomes: dict[str, dict[str, str]], copy: str) -> None:
    assert set(outcomes[copy].values()) == {"passed"}
    assert len(outcomes[copy]) == 1 + 7  # whole, and every code cell


@pytest.mark.parametrize(
    ("copy", "item", "reason"),
    [
        ("values", "Cell 6", "the replay does not reproduce the results"),
        ("values", "Cell 6", "values.rate.value"),
        ("values", "Cell 5", "text/plain"),
        ("values", "Cell 4", "application/vnd.plotly.v1+json"),
        ("kinds", "Cell 4", "image/png"),
        ("kinds", "Cell 5", "mismatch"),
        ("parameter", "Cell 3", "repeats was 5, is 6"),
        ("deleted", "whole", "cells are missing or were not run"),
        ("truncated", "whole", "the last cell is not the one tagged `results`"),
        ("unrun", "whole", "cells are missing or were not run"),
        ("stripped", "whole", "nothing to compare with"),
        ("results-file", "whole", "values.rate.value"),
        ("skipped", "Cell 4", "application/vnd.plotly.v1+json"),
        ("recording", "Cell 3", "the recording was edited"),
        ("side-effect", "Cell 6", "the replay changed"),
    ],
)
def test_a_damaged_report_fails_and_says_why(
    outcomes: dict[str, dict[str, str]], copy: str, item: str, reason: str
) -> None:
    assert reason in outcomes[copy][item]
