"""Serve notebooks: what they show of a profile, how a server is brought up, and that they share the lib, not cells."""

from __future__ import annotations

import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.engines import FAKE, closed

from nemolab.core import paths
from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.engines import llamacpp, params_serve, process, serving_run
from nemolab.engines.logs import Quantity
from nemolab.engines.params_serve import ServeParams, results_of
from nemolab.engines.process import StartError
from nemolab.engines.serving_prepare import Prepared, prepare
from nemolab.engines.serving_run import Asked, Running
from nemolab.engines.serving_spec import ServeSpec
from nemolab.notebook import source
from nemolab.notebook.lint import copied_share
from nemolab.notebook.rules.subject import Subject

ALL: tuple[type[ServeParams], ...] = (
    params_serve.ServeVllmParams,
    params_serve.ServeSglangParams,
    params_serve.ServeTrtllmParams,
    params_serve.ServeNimParams,
    params_serve.ServeDynamoParams,
)
MINIATURE = ServeSpec("vllm", "miniature_vllm")


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(MINIATURE)


def test_copied_share_of_the_serve_notebooks() -> None:
    """Between each other, and with all other notebooks of engines: at most 5 % of the code lines."""
    found = [Subject(path, source.read(path)) for path in sorted(paths.notebooks().glob("2?_*.ipynb"))]
    assert {subject.path.name[:2] for subject in found} >= {"20", "21", "22", "23", "24", "25", "29"}
    share, where = copied_share(found)
    assert share <= 0.05, where


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.engine)
def test_the_default_of_each_notebook_is_sound(model: type[ServeParams]) -> None:
    spec = model().spec()
    assert (spec.engine, spec.target) == (model.engine, "render")
    ready = prepare(spec)
    assert ready.engine == model.engine
    assert not ready.open_errors, ready.findings
    assert ready.fits is not False
    assert all(row["why"] != "-" and row["source"] != "-" for row in ready.settings), "each setting has its reason"
    assert all(row["value"] not in ("", "True", "False") for row in ready.settings), "each has its value, in words"
    assert ready.files
    assert ready.rows("install")
    assert len(ready.about) >= 4
    outcome = serving_run.outcome(ready, serving_run.bring_up(spec), Asked())
    assert outcome.sound, outcome.why
    results = results_of(ready, Running("rendered", spec.engine), Asked(), outcome.sound)
    assert (results.state, results.ready, results.base_url) == ("rendered", False, "")


def test_tables_keep_their_columns_and_are_never_empty(prepared: Prepared) -> None:
    assert list(prepared.rows("settings")[0]) == ["setting", "value", "why", "source"]
    assert replace(prepared, disagreements=()).rows("disagreements") == [
        {"about": "-", "who says what": "-", "chosen here": "-"}
    ]


def test_settings_change_the_profile_and_its_files() -> None:
    changed = prepare(replace(MINIATURE, settings=("args.max-num-seqs=3", "shm_gib=5")))
    assert {"setting": "max-num-seqs", "value": "3"}.items() <= next(
        row for row in changed.settings if row["setting"] == "max-num-seqs"
    ).items()
    text = "".join(changed.files.values())
    assert "--max-num-seqs 3" in text
    assert "--shm-size 5g" in text
    with pytest.raises(UsageError, match="not a setting"):
        prepare(replace(MINIATURE, settings=("max-num-seqs",)))


def test_an_error_of_lint_makes_the_launch_unsound() -> None:
    broken = prepare(replace(MINIATURE, settings=("args.no-such-flag=1",)))
    assert broken.open_errors
    outcome = serving_run.outcome(broken, Running("rendered", "vllm"), Asked())
    assert not outcome.sound
    assert "refused or break later" in outcome.why


def test_a_profile_of_another_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="a profile of sglang"):
        prepare(ServeSpec("vllm", "miniature_sglang"))


def test_attach_wants_an_address() -> None:
    with pytest.raises(UsageError, match="base_url is not set"):
        serving_run.bring_up(replace(MINIATURE, target="attach"))


@pytest.mark.live
def test_attach_asks_and_leaves_the_server_alone(prepared: Prepared) -> None:
    server = llamacpp.serve(llamacpp.Options(ctx=4096, parallel=2))
    try:
        running = serving_run.bring_up(replace(MINIATURE, target="attach", base_url=server.base_url))
        asked = serving_run.ask(running)
        outcome = serving_run.outcome(prepared, running, asked)
        assert outcome.sound, outcome.why
        assert "S-201" in {finding.code for finding in outcome.findings}, "llama.cpp answers in vLLM's place"
        results = results_of(prepared, running, asked, outcome.sound)
        assert (results.state, results.ready, results.engine) == ("attached", True, "llamacpp")
        assert results.thinks is True
        assert results.calls_tools is True
        assert serving_run.metric_rows(asked)[0]["metric"] == "running"
        assert "7421906" in serving_run.answer_text(asked)
        assert serving_run.release(running) == "The server ran before, and is left alone."
        assert not closed(server.port)
    finally:
        process.stop(server)


def test_a_process_that_fails_names_the_cause_and_leaves_nothing(tmp_path: Path) -> None:
    python = tmp_path / "python"
    line = "ERROR 11-30 11:18:25 [core.py:1] ValueError: No available memory for the cache blocks."
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{FAKE}' --line '{line}' --exit 1\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(StartError) as caught:
        serving_run.bring_up(replace(MINIATURE, target="process", python=str(python)))
    assert caught.value.cause is not None
    assert caught.value.cause.symptom.code == "L-106"
    assert process.running() == ()


def test_a_container_engine_starts_no_process() -> None:
    with pytest.raises(UsageError, match="does not run as one process here"):
        serving_run.bring_up(ServeSpec("nim", "miniature_nim", target="process"))


def test_the_plan_is_held_against_the_log(prepared: Prepared) -> None:
    """The measured start of the miniature, 262,144 tokens: the block is the planner's to the token."""
    printed = {"attention_block": Quantity(272, "tokens"), "weights": Quantity(0.01, "GiB")}
    rows = serving_run.comparison(prepared, Running("started", "vllm", capacity=printed))
    block = next(row for row in rows if row["value"] == "attention block")
    assert (block["planned"], block["in the log"], block["off by"]) == (272.0, 272.0, "+0.00%")
    assert {row["value"] for row in rows} == {"attention block", "weights"}


def test_a_server_without_content_is_not_sound(prepared: Prepared) -> None:
    running = Running("attached", "vllm", base_url="http://127.0.0.1:1/v1", model="m")
    assert not serving_run.outcome(prepared, running, Asked()).sound


def test_what_does_not_fit_is_not_sound(prepared: Prepared) -> None:
    finding = Finding("M-MEMORY", Severity.ERROR, "no", "less")
    small = replace(prepared, fits=False, plan_sentence="does not hold it", findings=(finding,), open_errors=1)
    outcome = serving_run.outcome(small, Running("rendered", "vllm"), Asked())
    assert (outcome.sound, outcome.why) == (False, "does not hold it")
