"""Notebook 40 against a server of known timing: live, in replay, and where it must say no."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from known_server import Known, serving
from run_notebook import run_notebook

NAME = "40_load_ladder"


def test_a_good_server_live_and_in_replay(tmp_path: Path) -> None:
    with serving(Known(ttft_s=0.02)) as endpoint:
        asked: dict[str, Any] = {"base_url": endpoint.base_url, "model": "known", "stages": "1,2"}
        live = run_notebook(NAME, tmp_path, **asked)
    assert live.values["errors"] == 0
    assert live.values["good_level"] == 2
    assert live.values["output_tokens_per_s"] > 100
    assert any(text.startswith("PASSED: Peaks at") for text in live.text)
    assert run_notebook(NAME, tmp_path, replay=True, **asked) == live  # the server is gone


def test_an_open_ladder_on_a_server_that_fails(tmp_path: Path) -> None:
    with serving(Known(ttft_s=0.02, fails=lambda number: number > 20)) as endpoint:
        done = run_notebook(
            NAME, tmp_path, base_url=endpoint.base_url, model="known", mode="open", stages="20,40", output_tokens=4
        )
    assert done.values["errors"] > 2
    assert {"L-ERRORS", "L-NOTE"} <= done.codes
    assert any(text.startswith("FAILED: ") for text in done.text)


def test_parameters_out_of_range_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    known = Known()
    with serving(known) as endpoint, pytest.raises(Exception, match="requests_per_stage"):
        run_notebook(NAME, tmp_path, base_url=endpoint.base_url, model="known", requests_per_stage=0)
    assert not known.bodies
