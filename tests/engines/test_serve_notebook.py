"""Notebook 25_serve_llamacpp as a person runs it: it serves, and leaves no process, no port and no state file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.serve_notebook import free_port, left, run

from nemolab.engines import process

pytestmark = pytest.mark.live


def test_launching_from_the_notebook_again_and_again_leaves_nothing(tmp_path: Path) -> None:
    """Twice here, on one port; `tests/bench/serve_notebook.py` does it fifty times."""
    port = free_port()
    for number in ("first", "second"):
        folder = tmp_path / number
        folder.mkdir()
        assert run(folder, port).left == ()


def test_the_look_sees_a_server_that_was_to_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would prove nothing. The server outlives its kernel, is found whole, and is stopped."""
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    port = free_port()
    found = run(tmp_path, port, keep_running=True).left
    try:
        (server,) = process.running()
        kinds = [thing.split(":")[0] for thing in found]
        assert {f"process {server.pid}", f"process {server.supervisor}"} <= set(kinds)
        assert f"a listener on port {port}" in kinds
        assert any(kind.startswith("state file") for kind in kinds)
    finally:
        for server in process.running():
            process.stop(server)
    assert left(tmp_path, port) == ()
