"""A notebook run by plain papermill, as a step or in replay."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import papermill
import pytest

from nemolab.core import paths
from nemolab.core.step import FOLDER, NAME, REPLAY


@dataclass(frozen=True)
class Done:
    """What a notebook left: values of its results, codes of its findings, and its outputs as plain text."""

    values: dict[str, Any]
    codes: set[str]
    text: list[str]


def run_notebook(name: str, folder: Path, *, replay: bool = False, **parameters: Any) -> Done:
    """Run notebook `name`, its results and recordings in `folder`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        patch.setenv(NAME, name)
        patch.setenv(REPLAY, "1" if replay else "0")
        done = papermill.execute_notebook(
            str(paths.notebooks() / f"{name}.ipynb"),
            None,
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            request_save_on_cell_execute=False,
        )
    outputs = [output for cell in done.cells for output in cell.get("outputs", ())]
    text = ["".join(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in outputs]
    document = json.loads((folder / f"{name}.results.json").read_text())
    values = {key: entry["value"] for key, entry in document["values"].items()}
    return Done(values, {finding["code"] for finding in document["findings"]}, text)
