"""Two identical runs give identical bytes, and what did not run is marked so."""

from __future__ import annotations

import copy
import json
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from nemolab.core.status import Status
from nemolab.runbook import normalise as n


def executed(*, noise: int) -> Any:
    """A notebook as papermill leaves it; `noise` varies all that differs between two identical runs."""
    code = new_code_cell(
        "print('a')",
        id="c1",
        execution_count=1,
        metadata={
            "tags": ["x"],
            "execution": {"iopub.execute_input": f"2026-01-0{noise}T00:00:00Z"},
            "papermill": {"duration": 0.1 * noise, "status": "completed"},
        },
    )
    pieces = ["on", "e\n", "two\n"] if noise == 1 else ["one\ntwo\n"]
    errs = [new_output("stream", name="stderr", text="warn\n")]
    outs = [new_output("stream", name="stdout", text=piece) for piece in pieces]
    code.outputs = [
        *(errs + outs if noise == 1 else outs + errs),
        new_output("display_data", data={"text/plain": f"<a.B object at 0x7f00deadbee{noise}>"}, metadata={"k": noise}),
        new_output(
            "display_data",
            data={"application/vnd.jupyter.widget-view+json": {"model_id": str(noise)}, "text/plain": "HBox()"},
        ),
    ]
    nb = new_notebook(
        cells=[
            new_markdown_cell("# T", id="m"),
            new_code_cell("a = 1", id=f"random{noise}", execution_count=2, metadata={"tags": ["injected-parameters"]}),
            code,
        ],
        metadata={
            "kernelspec": {"name": "python3", "display_name": f"Python {noise}", "language": "python"},
            "language_info": {"name": "python", "version": f"3.{noise}"},
            "papermill": {"output_path": f"/x/{noise}.ipynb", "parameters": {"api": "secret"}},
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}},
            "nemolab": {"params": "a:B"},
        },
    )
    return nb


def test_two_identical_runs_give_equal_bytes_and_lose_nothing() -> None:
    first, second = (n.to_text(n.normalise(executed(noise=i))) for i in (1, 2))
    assert first == second
    assert "\r" not in first
    assert first.endswith("}\n")
    nb = nbformat.reads(first, as_version=4)
    nbformat.validate(nb)
    assert [cell.id for cell in nb.cells] == ["m", "injected-parameters", "c1"]
    assert nb.metadata["nemolab"] == {"params": "a:B"}
    assert set(nb.metadata) == {"kernelspec", "language_info", "nemolab"}
    stdout, stderr, display = nb.cells[2].outputs
    assert (stdout.name, stdout.text) == ("stdout", "one\ntwo\n")
    assert (stderr.name, stderr.text) == ("stderr", "warn\n")
    assert display.data == {"text/plain": "<a.B object at 0x…>"}
    assert nb.cells[2].metadata == {"tags": ["x"]}


def test_the_input_is_left_alone_and_a_second_pass_changes_nothing() -> None:
    nb = executed(noise=1)
    before = copy.deepcopy(nb)
    once = n.normalise(nb)
    assert nb == before
    assert n.normalise(once) == once
    assert n.to_text(n.normalise(nbformat.reads(n.to_text(once), as_version=4))) == n.to_text(once)


def test_cells_after_the_failed_one_are_marked_not_run_whatever_papermill_wrote() -> None:
    cells = [new_code_cell(f"x = {i}", id=f"c{i}", metadata={"papermill": {"status": "completed"}}) for i in range(4)]
    cells[0].execution_count, cells[1].execution_count = 1, 2
    cells[3].source = ""
    nb = n.normalise(new_notebook(cells=cells), failed_cell="c1", ended=Status.TIMED_OUT)
    assert [n.state(cell) for cell in nb.cells] == ["ran", "timed out", "not run", "ran"]
    assert "papermill" not in json.dumps(nb)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/run/7/recordings/x.json", "<run>/recordings/x.json"),
        ("/run/77/x", "/run/77/x"),
        ("http://x/run/7/a", "http://x/run/7/a"),
        ("File /tmp/ipykernel_31/1234.py:3", "File <cell>:3"),
        ("\ud83d half", "? half"),
    ],
)
def test_places_of_this_machine_are_replaced(text: str, clean: str) -> None:
    cell = new_code_cell("1", id="c", execution_count=1)
    cell.outputs = [
        new_output("stream", name="stdout", text=text),
        new_output("display_data", data={"application/x+json": {"deep": [text]}}),
        new_output("error", ename="E", evalue=text, traceback=["\x1b[31m" + text + "\x1b[0m"]),
    ]
    nb = n.normalise(new_notebook(cells=[cell]), hide={"/run/7": "<run>"})
    stream, display, error = nb.cells[0].outputs
    assert stream["text"] == clean
    assert display["data"]["application/x+json"]["deep"] == [clean]
    assert (error["evalue"], error["traceback"]) == (clean, [clean])


def test_home_and_checkout_are_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    home = tmp_path / "someone"
    checkout = home / "lab"
    checkout.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NEMOLAB_ROOT", str(checkout))
    cell = new_code_cell("1", id="c", execution_count=1)
    cell.outputs = [new_output("stream", name="stdout", text=f"{checkout}/a {home}/b")]
    assert n.normalise(new_notebook(cells=[cell])).cells[0].outputs[0]["text"] == "./a ~/b"


def test_papermills_error_banner_is_dropped() -> None:
    banner = new_markdown_cell("An Exception", metadata={"tags": ["papermill-error-cell-tag"]})
    assert len(n.normalise(new_notebook(cells=[banner, new_markdown_cell("x", id="m")])).cells) == 1


def test_code_digest_ignores_parameters_and_outputs_and_sees_every_edit() -> None:
    source = new_notebook(cells=[new_code_cell("print('a')", id="c1"), new_markdown_cell("text")])
    run = executed(noise=1)
    assert n.code_sha256(source) == n.code_sha256(run) == n.code_sha256(json.loads(n.to_text(n.normalise(run))))
    run.cells[2].source += " "
    assert n.code_sha256(source) != n.code_sha256(run)
