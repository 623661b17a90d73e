"""The climb: to the top of a good server, to the first failure of a bad one, and why it failed there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oracle import Oracle, serving
from run_notebook import run_notebook

from nemolab.core.errors import UsageError
from nemolab.engines import profile as profiles
from nemolab.longctx import enable, enable_look
from nemolab.longctx.enable_climb import ROOM, Climb, ClimbSpec, climb, passed, rows
from nemolab.longctx.failures import Outcome
from nemolab.runbook import commands

FIXTURES = Path(__file__).parents[1] / "engines" / "fixtures"
RUNGS = (400, 900, 1600)
ENABLE = "50_enable_long_context"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of the lab is known."""
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))


def go(oracle: Oracle, **more: Any) -> Climb:
    with serving(oracle) as endpoint:
        return climb(ClimbSpec(**{"base_url": endpoint.base_url, "rungs": RUNGS} | more))


def test_a_good_server_is_climbed_to_the_top_to_the_token() -> None:
    oracle, steps = Oracle(), list[object]()
    with serving(oracle) as endpoint:
        found = climb(ClimbSpec(endpoint.base_url, rungs=RUNGS), lambda *at: steps.append(at))
    assert (found.reached, found.failed, found.left, found.findings) == (RUNGS, None, (), ())
    assert [row.counted for row in found.rows] == list(RUNGS)
    assert passed(found)
    assert found.sentence == "The needle was found at every length up to 1,600 tokens."
    assert all(body["cache_prompt"] is False for body in oracle.bodies[2:])  # the first two calibrate
    assert steps[-1] == (3, 3, None)


def test_lengths_are_named_once_on_the_axis_and_as_the_parameter_has_them() -> None:
    found = enable.look_at(enable.EnableSpec("ultra_nvfp4_4xb200_vllm:long-context"))
    climbed = go(Oracle(), rungs=(512, 900, 4096), context=5000)
    made = enable_look.figure(found, climbed)
    assert [trace.name for trace in made.data] == ["planned", "measured"]
    assert list(made.data[1].x) == [512, 900, 4096]
    assert made.layout.xaxis.ticktext == ("512", "900", "4K", "64K", "256K", "512K", "1M")
    top = climbed.rows[-1]
    near = replace(climbed, rows=(replace(top, length=1_048_064),))
    assert enable_look.figure(found, near).layout.xaxis.ticktext == ("4K", "64K", "256K", "512K", "1M")


def test_the_longest_rung_leaves_room_for_the_answer() -> None:
    found = go(Oracle(refuses_beyond=1600), context=1600)
    assert found.reached == (400, 900, 1600 - ROOM)
    with pytest.raises(UsageError, match="no room for an answer"):
        go(Oracle(), context=ROOM)


@pytest.mark.parametrize(
    ("oracle", "outcome", "hint"),
    [
        (Oracle(refuses_beyond=1000), Outcome.REFUSED_LENGTH, "both switches"),
        (Oracle(corrupts_beyond=1000), Outcome.WRONG_NOT_IN_CONTEXT, "51_validate_long_context"),
        (Oracle(truncates_at=1000), Outcome.TRUNCATED, "--allow-auto-truncate"),
        (Oracle(body_limit=5000), Outcome.NOT_SENT, "size limit of bodies"),
        (Oracle(prefill_s_per_1000=6, cuts_idle_after_s=2.05), Outcome.IDLE_CUT, "idle limits of proxies"),
        (Oracle(dies_at=5), Outcome.ENGINE_DIED, "out of memory"),
        (Oracle(retries=True), Outcome.RETRIED, "retries off"),
    ],
)
def test_it_ends_at_the_first_failure_and_says_where_to_look(oracle: Oracle, outcome: Outcome, hint: str) -> None:
    found = go(oracle, rungs=(400, 900, 1600, 2400))
    assert found.failed is not None
    assert found.failed.outcome is outcome
    assert hint in found.findings[0].fix
    assert found.findings[0].code == "X-CLIMB"
    assert len(found.rows) + len(found.left) == 4
    assert found.left  # nothing was asked beyond
    assert not passed(found)
    table = rows(found, (400, 900, 1600, 2400))
    assert [row["class"] for row in table].count("not asked") == len(found.left)
    assert "log was not read" in found.findings[1].message


def test_the_servers_log_names_the_cause() -> None:
    log = FIXTURES / "vllm-0.22.0-leftover-process.log"
    found = go(Oracle(dies_at=4), log=str(log))
    assert found.log
    assert "another process holds" in found.findings[1].message
    silent = go(Oracle(dies_at=4), log=str(FIXTURES / "vllm-0.22.0-ready.log"))
    assert [finding.message for finding in silent.findings[1:]] == ["the server's log names no cause"]
    with pytest.raises(UsageError, match="no such log"):
        go(Oracle(), log="/nowhere/server.log")


def test_without_a_server_nothing_is_asked() -> None:
    found = climb(ClimbSpec(rungs=RUNGS, context=1000))
    assert (found.rows, found.left, passed(found)) == ((), (400, 488), True)
    assert [row["why"] for row in rows(found, (400, 488))] == ["no server"] * 2


def test_the_notebook_renders_without_a_server(tmp_path: Path) -> None:
    done = run_notebook(ENABLE, tmp_path)
    assert (done.values["state"], done.values["sound"], done.values["reached_tokens"]) == ("rendered", True, None)
    assert done.values["lengths"] == "4096,65536,262144,1048064"
    assert any("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" in text and "--max-model-len 1048576" in text for text in done.text)


def test_the_notebook_climbs_and_can_be_replayed(tmp_path: Path) -> None:
    with serving(Oracle(refuses_beyond=2000)) as endpoint:
        asked: dict[str, Any] = {"base_url": endpoint.base_url, "scale": 1 / 256, "proxy_idle_s": 60.0}
        live = run_notebook(ENABLE, tmp_path, **asked)
    assert (live.values["sound"], live.values["lengths"]) == (False, "256,1024")
    assert (live.values["failed_at_tokens"], live.values["failed_class"]) == (4096 - ROOM, "refused for length")
    assert live.values["hops_too_short"] == 1
    assert {"X-CLIMB", "X-HOP", "X-LOG"} <= live.codes
    assert any(text.startswith("FAILED: The needle was found up to 1,024 tokens, then") for text in live.text)
    assert run_notebook(ENABLE, tmp_path, replay=True, **asked) == live


def dry_run(profile: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and output of a dry run with a server named, so that no step is left out but the host check."""
    sets = {"profile": profile, "base_url": "http://127.0.0.1:1/v1"}
    code = commands.dry_run("one-million", sets, until=None, fresh=True)
    return code, capsys.readouterr().out


@pytest.mark.parametrize("name", [p.full_name for p in profiles.every() if p.goal == "long-context"])
def test_the_runbook_dry_runs_for_every_long_variant(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, output = dry_run(name, capsys)
    assert code == 0, output
    assert "sign-off by oncall" in output
    assert f'with profile = "{name}"' in output


def test_a_dry_run_refuses_a_profile_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="no variant '1m'"):
        dry_run("ultra_nvfp4_4xb200_vllm:1m", capsys)


def test_a_dry_run_lints_the_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (profiles.folder() / "nano_bf16_1xh200_vllm.yaml", *profiles.folder().glob("_*.yaml")):
        (tmp_path / path.name).write_text(path.read_text().replace("VLLM_ALLOW_LONG_MAX_MODEL_LEN: 1", "VLLM_X: 1"))
    code, output = dry_run(f"{tmp_path / 'nano_bf16_1xh200_vllm.yaml'}:long-context", capsys)
    assert code == 1, output
    assert "error R-LONG" in output


def test_the_runbook_for_any_machine_dry_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.dry_run("long", {}, until=None, fresh=True) == 0
    output = capsys.readouterr().out
    assert "with scale = 0.125" in output
    assert "sign-off" not in output  # it ends by itself
