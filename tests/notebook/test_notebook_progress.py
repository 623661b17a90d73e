"""Progress: a file when headless, a widget that goes when a person is there, never an output."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from nemolab.notebook import frontend, progress

WORK = """
from nemolab.notebook import progress, show
with progress.bar(2, "ladder") as bar:
    bar.advance(note="one")
    bar(2)
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[BlockingKernelClient]:
    """A kernel as a Jupyter server starts it."""
    with tempfile.TemporaryDirectory(prefix="nemolab-") as sockets:
        manager = KernelManager(transport="ipc", ip=f"{sockets}/k", connection_file=f"{sockets}/k.json")
        removed = ("NEMOLAB_STEP", "NEMOLAB_PROGRESS", "NEMOLAB_HEADLESS")
        environment = {k: v for k, v in os.environ.items() if k not in removed}
        manager.start_kernel(env={**environment, "JPY_SESSION_NAME": "notebooks/40_load_ladder.ipynb"})
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        yield client
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client: BlockingKernelClient, code: str, person: bool) -> list[tuple[str, Any]]:
    """Messages of one execution: type and content."""
    found: list[tuple[str, Any]] = []
    client.execute_interactive(
        code, allow_stdin=person, timeout=60, output_hook=lambda m: found.append((m["msg_type"], m["content"]))
    )
    assert not [content for kind, content in found if kind == "error"]
    return [(kind, content) for kind, content in found if kind not in ("status", "execute_input")]


def _left(messages: list[tuple[str, Any]]) -> list[Any]:
    """Outputs that a front end is left with."""
    outputs: list[Any] = []
    for kind, content in messages:
        if kind in ("display_data", "stream"):
            outputs.append(content)
        elif kind == "update_display_data":
            for output in outputs:
                if output["transient"].get("display_id") == content["transient"]["display_id"]:
                    output["data"] = content["data"]
        elif kind == "clear_output":
            outputs.clear()
    return outputs


def test_a_person_sees_a_widget_and_is_left_with_nothing(kernel: BlockingKernelClient) -> None:
    messages = _run(kernel, WORK, person=True)
    views = [c for k, c in messages if k == "display_data" and "application/vnd.jupyter.widget-view+json" in c["data"]]
    assert len(views) == 1
    assert _left(messages) == []
    closed = [content for kind, content in messages if kind == "comm_close"]
    opened = [content for kind, content in messages if kind == "comm_open"]
    assert len(closed) >= 3  # box, bar and text; their layouts and styles go with the kernel
    assert {c["comm_id"] for c in closed} <= {c["comm_id"] for c in opened}


def test_outputs_of_the_cell_before_the_bar_stay(kernel: BlockingKernelClient) -> None:
    messages = _run(kernel, "from nemolab.notebook import show\nshow.note('kept')" + WORK, person=True)
    assert [output["data"].get("text/plain") for output in _left(messages)] == ["kept", None]


def test_papermill_started_from_jupyterlab_is_no_person(kernel: BlockingKernelClient) -> None:
    assert _run(kernel, WORK, person=False) == []


@pytest.mark.parametrize(
    ("environment", "there"),
    [
        ("", True),
        ("environ['NEMOLAB_STEP'] = '04_load'", False),
        ("environ['NEMOLAB_HEADLESS'] = '1'", False),
        ("environ.pop('JPY_SESSION_NAME')", False),
        ("environ.pop('JPY_SESSION_NAME'); environ['VSCODE_PID'] = '1'", True),
    ],
)
def test_when_a_person_is_there(kernel: BlockingKernelClient, environment: str, there: bool) -> None:
    code = "import os\nfrom os import environ\nfrom nemolab.notebook import frontend\n_before = dict(environ)\n"
    code += "for _n in [n for n in environ if n.startswith('VSCODE_')]: del environ[_n]\n"
    code += f"{environment}\nprint(frontend.person_is_there())\nenviron.clear(); environ.update(_before)"
    assert _run(kernel, code, person=True)[0][1]["text"].strip() == str(there)


def test_a_kernel_knows_its_notebook(kernel: BlockingKernelClient) -> None:
    code = "from nemolab.notebook import frontend\nprint(frontend.notebook_name())"
    assert _run(kernel, code, person=True)[0][1]["text"].strip() == "40_load_ladder"


def test_headless_progress_goes_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEMOLAB_STEP", "04_load")
    monkeypatch.setenv("NEMOLAB_PROGRESS", str(tmp_path / "p.jsonl"))
    assert list(progress.track([5, 6, 7], "ladder")) == [5, 6, 7]
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert (lines[0]["done"], lines[0]["total"], lines[0]["step"], lines[0]["label"]) == (0, 3, "04_load", "ladder")
    assert (lines[-1]["done"], lines[-1]["total"]) == (3, 3)
    assert capsys.readouterr() == ("", "")


def test_a_full_disk_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_PROGRESS", "/dev/full")
    assert list(progress.track(range(2), "x")) == [0, 1]


def test_the_bar_is_a_callback_that_corrects_the_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_PROGRESS", str(tmp_path / "p.jsonl"))
    with progress.bar(None, "download") as bar:
        bar(5, 5, "last")
    last = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[-1])
    assert (last["done"], last["total"], last["note"]) == (5, 5, "last")


def test_lines() -> None:
    assert progress.line("ladder", 3, 8, "16 streams") == "ladder 3/8  16 streams"
    assert progress.line("read", 3, None) == "read 3"
    assert progress.line("read", 0, None) == "read"


def test_outside_a_kernel_nobody_is_there() -> None:
    assert not frontend.person_is_there()
