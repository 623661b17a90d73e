"""The way to a million tokens on the real engine, every length scaled: the climb, its refusal, the runbook."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from miniserver import miniature

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


def test_the_runbook_with_every_length_scaled(tmp_path: Path) -> None:
    for name in ("notebooks", "runbooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    small = {"scale": 1 / 1024, "ctx": 1536, "haystacks": 1, "questions": 2, "budget_s": 5}
    sets = [part for name, value in small.items() for part in ("--set", f"{name}={value}")]
    environment = {**os.environ, "NEMOLAB_ROOT": str(tmp_path), "NEMOLAB_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-m", "nemolab", "run", "long", *sets]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    run = record.read(next(tmp_path.glob("reports/long/*/run.json")).parent)
    values = {step.id: {name: entry["value"] for name, entry in step.results.items()} for step in run.steps}
    assert values["enable"]["lengths"] == "256,1024"
    assert (values["enable"]["state"], values["enable"]["length_tokens"]) == ("climbed", 1_048_576)
    assert values["validate"]["longest_tokens"] == values["enable"]["reached_tokens"] == 1024
