"""The notebooks about host, files and memory, run by plain papermill: live, in replay, and where they must say no."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import papermill
import pytest

from nemolab import miniature
from nemolab.core import paths
from nemolab.core.step import FOLDER, NAME, REPLAY


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a notebook with parameters; its results file and its outputs' plain text."""

    def call(name: str, *, replay: bool = False, **parameters: Any) -> tuple[dict[str, Any], list[str]]:
        monkeypatch.setenv(FOLDER, str(tmp_path))
        monkeypatch.setenv(NAME, name)
        monkeypatch.setenv(REPLAY, "1" if replay else "0")
        done = papermill.execute_notebook(
            str(paths.notebooks() / f"{name}.ipynb"),
            None,
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            request_save_on_cell_execute=False,
        )
        text = [
            "".join(output.get("data", {}).get("text/plain", output.get("text", "")))
            for cell in done.cells
            for output in cell.get("outputs", ())
        ]
        return json.loads((tmp_path / f"{name}.results.json").read_text()), text

    return call


def values(document: dict[str, Any]) -> dict[str, Any]:
    """Results by name."""
    return {name: entry["value"] for name, entry in document["values"].items()}


def codes(document: dict[str, Any]) -> set[str]:
    """Codes of the findings."""
    return {finding["code"] for finding in document["findings"]}


def test_the_host_is_checked_and_the_report_can_be_replayed(run: Any) -> None:
    live, shown = run("10_check_host", port=0, speed_mib=8)
    assert values(live)["cores"] > 0
    assert values(live)["disk_read"] > 0
    assert run("10_check_host", replay=True, port=0, speed_mib=8) == (live, shown)


def test_a_host_that_cannot_do_it_is_unfit(run: Any) -> None:
    live, shown = run("10_check_host", engine="nim", gpus=64, disk_gb=1e9, port=0, speed_mib=0)
    assert values(live)["fit"] is False
    assert values(live)["disk_read"] is None
    assert {"H-GPU", "H-DISK"} <= codes(live)
    assert any(text.startswith("FAILED: For nim this host is un") for text in shown)


def test_a_partial_download_is_named(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "partial"
    shutil.copytree(miniature.checkpoint_folder(), folder)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    (folder / "chat_template.jinja").unlink()
    live, shown = run("11_check_model_files", folder=str(folder), model="ultra-nvfp4", max_model_len=2 << 20)
    assert values(live)["complete"] is False
    assert values(live)["shards_incomplete"] == 1
    assert {"C-CUT", "C-OTHER", "C-QUANT", "C-TEMPLATE", "C-REVISION"} <= codes(live)
    assert not any(str(folder) in text for text in shown[1:])  # the first lists the parameters that were given
    assert run("11_check_model_files", replay=True, folder=str(folder), model="ultra-nvfp4", max_model_len=2 << 20) == (
        live,
        shown,
    )


def test_a_launch_that_does_not_fit_comes_with_what_would(run: Any) -> None:
    live, shown = run("12_plan_memory", model="ultra-bf16", gpu="h200", tensor_parallel_size=8, max_model_len=262_144)
    found = values(live)
    assert (found["fits"], found["fit"], found["max_concurrency"]) == (False, "does not fit", 0)
    assert found["listed_impossible"] == 5
    assert {"M-MEMORY", "M-LISTED"} == codes(live)
    assert any("16 GPUs, --tensor-parallel-size 16" in text for text in shown)
    assert any(text.startswith("FAILED: ultra-bf16 on 8 x h200 does not hold") for text in shown)
