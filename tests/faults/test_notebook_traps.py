"""Traps of notebooks that were measured elsewhere, each with the cure here, on a real kernel."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import papermill
import pytest
from nbclient.exceptions import CellExecutionError
from notebook_report import TEMPLATE, execute
from papermill.exceptions import PapermillExecutionError

from nemolab.core.errors import UsageError
from nemolab.core.step import Step
from nemolab.notebook import params, source
from nemolab.notebook.example import ExampleParams

KEY = "nvapi-" + "a" * 40
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def sockets() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="nemolab-") as folder:
        yield Path(folder)


def _with(cell_id: str, code: str) -> Any:
    document = json.loads(json.dumps(source.read(TEMPLATE)))
    cell = next(cell for cell in document["cells"] if cell["id"] == cell_id)
    cell["source"] = [*cell["source"], "\n" + code]
    return document


def _texts(nb: Any) -> str:
    return json.dumps([cell.get("outputs", []) for cell in nb["cells"]])


def test_a_parameter_name_cannot_carry_code() -> None:
    # papermill pastes names into the notebook unchecked; whatever hands it parameters binds them first.
    with pytest.raises(UsageError, match="not a parameter name"):
        params.bind(ExampleParams, {"x=1;import os;os.abort()": 1})
    with pytest.raises(UsageError, match="not a parameter name"):
        params.bind(ExampleParams, {"class": 1})


def test_plain_papermill_with_a_secret_stops_before_anything_runs_and_does_not_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # papermill itself has by then written the key into the injected cell and the metadata; no output adds to it.
    monkeypatch.setenv("NEMOLAB_STEP_FOLDER", str(tmp_path))
    out = tmp_path / "out.ipynb"
    with pytest.raises(PapermillExecutionError) as caught:
        papermill.execute_notebook(
            TEMPLATE, out, parameters={"api_key": KEY, "repeats": 5}, kernel_name="python3", progress_bar=False
        )
    assert "api_key: its name says that it holds a secret" in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY not in _texts(source.read(out))
    assert not list(tmp_path.rglob("*.results.json"))


def test_a_key_as_the_value_of_a_known_parameter_is_refused_unseen() -> None:
    with pytest.raises(UsageError) as caught:
        params.bind(ExampleParams, {"repeats": KEY})
    assert "has the shape of a key (NVIDIA API key)" in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """Folder, source and executed notebook of a headless run with progress and a hostile model."""
    folder = tmp_path_factory.mktemp("run")
    document = _with(
        "check-parameters",
        f"for _ in progress.track(range(200), 'many'):\n    pass\nshow.text({HOSTILE!r}, label='The model')\n"
        f"show.table([{{'answer': {HOSTILE!r}}}])",
    )
    with tempfile.TemporaryDirectory(prefix="nemolab-") as sockets:
        return folder, document, execute(document, Step(folder, "04_rate", False, None), Path(sockets))


def _outputs(nb: Any) -> Any:
    return next(cell for cell in nb.cells if cell.id == "check-parameters").outputs


def test_a_headless_run_leaves_no_widget_and_no_progress(live: tuple[Path, Any, Any]) -> None:
    nb = live[2]
    assert "widgets" not in nb.metadata
    assert "jupyter.widget" not in _texts(nb)
    assert not [o for cell in nb.cells for o in cell.get("outputs", []) if o.output_type == "stream"]
    assert len(_outputs(nb)) == 3  # what params.check, show.text and show.table show


def test_model_text_never_becomes_html(live: tuple[Path, Any, Any]) -> None:
    outputs = _outputs(live[2])
    assert outputs[1].data == {"text/plain": f"The model:\n{HOSTILE}"}
    assert not [o for o in outputs if "<script" in o.data.get("text/html", "")]


def test_a_replay_makes_no_call_and_no_file(live: tuple[Path, Any, Any], sockets: Path) -> None:
    folder, document, nb = live
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again = execute(document, Step(folder, "04_rate", True, None), sockets)
    assert _texts(again) == _texts(nb)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_an_error_of_the_lab_is_one_message_without_a_traceback(tmp_path: Path, sockets: Path) -> None:
    with pytest.raises(CellExecutionError) as caught:
        execute(source.read(TEMPLATE), Step(tmp_path, "04_rate", False, None), sockets, {"repeats": 0})
    assert "UsageError: ExampleParams: a parameter is wrong\n  repeats = 0" in str(caught.value)
    assert "site-packages" not in str(caught.value)
    assert ", line " not in str(caught.value)
