"""The way to a million tokens on the real engine, every length scaled: the climb, its refusal, the runbook."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from miniserver import miniature

from nemolab.core.status import Status
from nemolab.longctx.enable_climb import ClimbSpec, climb
from nemolab.longctx.failures import Outcome
from nemolab.runbook import record

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


def test_the_engine_refuses_the_rung_that_it_was_not_started_for(tmp_path: Path) -> None:
    with miniature(tmp_path / "state", 1024) as endpoint:
        found = climb(ClimbSpec(endpoint.base_url, rungs=(256, 512, 2048, 4096), context=8192))
    assert found.reached == (256, 512)
    assert found.failed is not None
    assert found.failed.outcome is Outcome.REFUSED_LENGTH
    assert found.left == (4096,)
    assert "both switches" in found.findings[0].fix
    assert found.log  # the lab's own server: its log was read without being named


def test_the_runbook_with_every_length_scaled_by_one_parameter(tmp_path: Path) -> None:
    for name in ("notebooks", "runbooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {**os.environ, "NEMOLAB_ROOT": str(tmp_path), "NEMOLAB_STATE": str(tmp_path / "state")}
    with miniature(tmp_path / "state", 1024) as endpoint:
        values = {"base_url": endpoint.base_url, "scale": 1 / 1024, "haystacks": 1, "wanted_share": 0.3, "budget_s": 1}
        sets = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "nemolab", "run", "one-million", *sets]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == 1, done.stdout + done.stderr  # all passed, and oncall has not answered for it
    [folder] = [path.parent for path in tmp_path.glob("reports/one-million/*/run.json")]
    run = record.read(folder)
    assert [str(step.status) for step in run.steps] == ["skipped", "passed", "passed", str(Status.WAITING)]
    found = {step.id: {name: entry["value"] for name, entry in step.results.items()} for step in run.steps}
    assert found["enable"]["lengths"] == "256,512"
    assert (found["enable"]["state"], found["enable"]["length_tokens"]) == ("climbed", 1_048_576)
    assert found["validate"]["holds_to_tokens"] == found["enable"]["reached_tokens"] == 512
