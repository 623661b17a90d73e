"""Notebooks 60 and 61 by plain papermill: live, in replay, and where they must say no."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import papermill
import pytest
from run_notebook import run_notebook

from nemolab.engines import llamacpp, process
from nemolab.miniature.config import MiniatureConfig


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[process.Server]:
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    started = llamacpp.serve(llamacpp.Options(ctx=2048, parallel=1))
    yield started
    process.stop(started)


def test_60_shows_the_shipped_training(tmp_path: Path) -> None:
    live = run_notebook("60_train_miniature", tmp_path)
    assert live.values["parameters"] == MiniatureConfig().parameters
    assert live.values["longest"] == 16_384
    assert any("Nine of ten answers are right" in text for text in live.text)
    assert run_notebook("60_train_miniature", tmp_path, replay=True).values == live.values


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_60_without_torch_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(papermill.PapermillExecutionError, match="uv sync --extra train"):
        run_notebook("60_train_miniature", tmp_path, train="smoke")


@pytest.mark.live
def test_61_examines_and_replays(server: process.Server, tmp_path: Path) -> None:
    asked = {"base_url": server.base_url, "model": server.model, "lengths": "512", "texts": "1", "short": 2}
    live = run_notebook("61_evaluate_miniature", tmp_path, **asked)
    assert live.values["asked"] == 18
    assert live.values["to_8k"] == 1
    assert live.values["good"] is True
    process.stop(server)
    again = run_notebook("61_evaluate_miniature", tmp_path, replay=True, **asked)
    assert again.values == live.values


def test_61_without_a_server_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(papermill.PapermillExecutionError, match="nemolab serve miniature"):
        run_notebook("61_evaluate_miniature", tmp_path)
