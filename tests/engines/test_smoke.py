"""The stack check: passes on a good stack, and says what is wrong on a bad one. Nothing is left running either way."""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.engines import FAKE, closed

from nemolab import models
from nemolab.client.outcome import CheckStatus
from nemolab.core.errors import UsageError
from nemolab.core.finding import Severity
from nemolab.engines import identity, llamacpp, process, smoke, smoke_launch, smoke_look
from nemolab.engines.params_smoke import SmokeParams, results_of
from nemolab.engines.smoke import SmokeReport, Stop
from nemolab.engines.smoke_launch import SmokeSpec
from nemolab.models import checkpoints, dummy

SMALL = SmokeSpec(lengths=(512,), needles=2)


def stub(tmp_path: Path, *lines: str, exit_code: int | None = 1) -> Path:
    """An interpreter in the engine's place: prints a log, and ends or hangs. For faults no real engine shows here."""
    arguments = [item for line in lines for item in ("--line", line)]
    arguments += ["--exit", str(exit_code)] if exit_code is not None else []
    path = tmp_path / "python"
    quoted = " ".join(f"'{argument}'" for argument in arguments)
    path.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{FAKE}' {quoted}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.live
def test_a_good_stack_passes_from_flags_to_stop() -> None:
    seen: list[str] = []
    report = smoke.run(SMALL, progress=lambda done, total, note: seen.append(note or ""))
    assert report.passed, report.findings()
    assert report.stop is not None
    assert report.stop.clean
    assert report.found.successes == report.found.n == 2
    assert {stage.partition(":")[0] for stage in seen} == {"start", "probe", "needles", "stop"}
    results = results_of(report, [])
    assert (results.passed, results.answers_apart, results.counts, results.metrics) == (True, True, True, True)
    assert all(row["passed"] for row in smoke_look.step_rows(report))
    assert "serves this architecture as it should" in smoke_look.sentence(report)
    for worse in _worse(report):
        assert not worse.passed
        assert not all(row["passed"] for row in smoke_look.step_rows(worse))
        assert "not everything is right" in smoke_look.sentence(worse)
        assert any(finding.severity is Severity.ERROR for finding in worse.findings())


def _worse(report: SmokeReport) -> list[SmokeReport]:
    """The same report with one thing wrong."""
    assert report.probe is not None
    assert report.stop is not None
    missed = replace(report.needles[0], found=False, said="something else")
    check = replace(report.probe.checks[2], status=CheckStatus.FAILED)
    checks = (*report.probe.checks[:2], check, *report.probe.checks[3:])
    return [
        replace(report, needles=(missed, *report.needles[1:])),
        replace(report, probe=replace(report.probe, checks=checks)),
        replace(report, stop=replace(report.stop, process_gone=False)),
        replace(report, stop=replace(report.stop, port_closed=False)),
        replace(report, stop=replace(report.stop, left=1)),
    ]


@pytest.mark.live
def test_a_missing_parser_fails_the_stack() -> None:
    """Thoughts that stay in the answer are what a wrong or missing reasoning parser gives."""
    report = smoke.run(SmokeSpec(extra_args="--reasoning-format none --port 0", lengths=(512,), needles=2))
    assert report.started
    assert not report.passed
    assert not results_of(report, []).answers_apart
    assert any("tags in the content" in finding.message for finding in report.findings())
    assert "not everything is right" in smoke_look.sentence(report)


@pytest.mark.live
def test_a_flag_that_the_engine_does_not_know() -> None:
    report = smoke.run(SmokeSpec(extra_args="--no-such-flag 1"))
    assert not report.started
    assert report.failure[0].code == "L-207"
    assert "--no-such-flag" in report.failure[0].message
    assert "did not start" in smoke_look.sentence(report)
    assert smoke_look.step_rows(report)[0]["passed"] is False


@pytest.mark.live
def test_a_server_that_runs_already_is_asked_and_left_alone() -> None:
    server = llamacpp.serve(llamacpp.Options(ctx=4096, parallel=2))
    try:
        report = smoke.run(SmokeSpec(base_url=server.base_url, lengths=(512,), needles=2))
        assert report.attached
        assert report.passed, report.findings()
        assert report.stop is None
        assert results_of(report, []).stopped is None
        assert not closed(server.port), "it still runs"
    finally:
        process.stop(server)


def test_vllm_is_started_through_the_named_interpreter(tmp_path: Path) -> None:
    python = stub(tmp_path)
    spec = SmokeSpec("vllm", python=str(python), extra_args="--mamba-cache-mode align", env=("A_NAME=x y",))
    made = smoke_launch.launch(spec, tmp_path)
    assert made.argv[:4] == (str(python), "-m", "vllm.entrypoints.cli.main", "serve")
    assert made.argv[-2:] == ("--mamba-cache-mode", "align")
    assert Path(made.argv[4], "config.json").exists(), "the miniature's own folder"
    assert "--reasoning-parser" in made.argv
    assert made.argv[made.argv.index("--host") + 1] == "127.0.0.1"
    assert int(made.argv[made.argv.index("--port") + 1]) == made.port > 0
    assert dict(made.env)["A_NAME"] == "x y"


def test_sglang_is_started_through_the_named_interpreter(tmp_path: Path) -> None:
    python = stub(tmp_path)
    made = smoke_launch.launch(SmokeSpec("sglang", python=str(python)), tmp_path)
    assert made.argv[:4] == (str(python), "-m", "sglang.launch_server", "--model-path")


def test_the_tokenizer_must_have_what_the_parser_looks_for(tmp_path: Path) -> None:
    dummy.write(models.find("nano-bf16"), tmp_path / "nano", checkpoints.MINIATURE)
    words = tmp_path / "nano/tokenizer.json"
    words.write_text(words.read_text().replace('"<think>"', '"<a>"').replace('"</think>"', '"</a>"'))
    spec = SmokeSpec("vllm", "nano_bf16_1xh200_vllm", python=sys.executable, model=str(tmp_path / "nano"))
    with pytest.raises(UsageError, match="no <think> and </think>, which the reasoning parser nemotron_v3") as found:
        smoke_launch.launch(spec, tmp_path)
    assert found.value.where == str(words)
    assert smoke_launch.launch(replace(spec, settings=("args.reasoning-parser=null",)), tmp_path)


def test_the_folder_must_hold_the_profiles_model(tmp_path: Path) -> None:
    dummy.write(models.find("nano-bf16"), tmp_path / "nano", checkpoints.MINIATURE)
    dummy.write(models.find("ultra-bf16@9"), tmp_path / "cut", checkpoints.MINIATURE)
    spec = SmokeSpec("vllm", "nano_bf16_1xh200_vllm", python=sys.executable)
    made = smoke_launch.launch(replace(spec, model=str(tmp_path / "nano")), tmp_path)
    assert str(tmp_path / "nano") in made.argv
    with pytest.raises(UsageError, match=r"not nano-bf16: 9 layers, not 52.*hidden_size 8192, not 2688") as found:
        smoke_launch.launch(replace(spec, model=str(tmp_path / "cut")), tmp_path)
    assert found.value.where == str(tmp_path / "cut")
    cut = replace(spec, profile="ultra_bf16_depth9_1xh200_vllm")
    assert smoke_launch.launch(replace(cut, model=str(tmp_path / "cut")), tmp_path)
    with pytest.raises(UsageError, match="has no repository"):  # and is not the miniature, which has none either
        smoke_launch.launch(cut, tmp_path)
    (tmp_path / "cut" / "config.json").write_text("{}")  # the engine's log will say what is wrong with it
    assert smoke_launch.launch(replace(spec, model=str(tmp_path / "cut")), tmp_path)


def test_what_cannot_be_tried_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_CACHE", str(tmp_path))
    for spec, message in (
        (SmokeSpec("vllm"), "vllm is not installed here"),
        (SmokeSpec("vllm", python=str(tmp_path / "none")), "no interpreter there"),
        (SmokeSpec("vllm", profile="miniature_sglang"), "a profile of sglang"),
        (SmokeSpec(extra_args="--a 'b"), "extra_args"),
        (SmokeSpec(env=("NOT A NAME=1",)), "not a variable"),
    ):
        with pytest.raises(UsageError, match=message):
            smoke.run(spec)
    assert process.running() == ()


def test_settings_change_the_profile_and_null_takes_a_flag_away(tmp_path: Path) -> None:
    changes = ("args.mamba-radix-cache-strategy=null", "args.mamba-scheduler-strategy=extra_buffer")
    spec = SmokeSpec("sglang", settings=changes, engine_version="0.5.13", python=str(stub(tmp_path)))
    argv = smoke_launch.launch(spec, tmp_path).argv
    assert "--mamba-radix-cache-strategy" not in argv
    assert argv[argv.index("--mamba-scheduler-strategy") + 1] == "extra_buffer"
    old = replace(spec, settings=())
    errors = [f.message for f in smoke_launch.check(old).findings if f.severity is Severity.ERROR]
    assert any("mamba-radix-cache-strategy" in message for message in errors), "0.5.13 does not know the new name"
    assert not [f for f in smoke_launch.check(spec).findings if f.severity is Severity.ERROR]


def test_lint_sees_the_extra_flags() -> None:
    checked = smoke_launch.check(SmokeSpec("vllm", extra_args="--mamba-cache-mod align --no-such-flag"))
    assert any("no-such-flag" in f.message for f in checked.findings if f.severity is Severity.ERROR)
    assert {row["from"] for row in checked.rows()} >= {"miniature_vllm", "extra_args"}


def test_a_flag_and_its_value_are_one_row() -> None:
    words = "--max-num-seqs 4 --seed -1 --no-flag --dtype=half --names a b"
    rows = smoke_launch.check(SmokeSpec("vllm", extra_args=words)).rows()
    found = [(row["setting"], row["value"]) for row in rows if row["from"] == "extra_args"]
    assert found == [
        ("--max-num-seqs", "4"),
        ("--seed", "-1"),
        ("--no-flag", ""),
        ("--dtype", "half"),
        ("--names", "a b"),
    ]
    clean = smoke_launch.check(SmokeSpec("vllm"))
    assert not [f for f in clean.findings if f.severity is Severity.ERROR]


def test_a_start_that_fails_is_a_report_with_its_cause(tmp_path: Path) -> None:
    line = "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (658)"
    report = smoke.run(SmokeSpec("vllm", python=str(stub(tmp_path, f"(EngineCore pid=1) ERROR [core.py:1] {line}"))))
    assert not report.started
    assert report.failure[0].code == "L-103"
    assert not report.passed
    assert results_of(report, []).started is False
    assert process.running() == ()


def test_no_needle_asked_is_no_pass() -> None:
    assert not SmokeReport("vllm", started=True).passed
    assert not results_of(SmokeReport("vllm"), []).passed


def test_parameters_become_a_spec() -> None:
    spec = SmokeParams(engine="vllm", lengths=[1024], env=["A=1"], settings=["image=x"]).spec()
    assert (spec.engine, spec.lengths, spec.env, spec.settings) == ("vllm", (1024,), ("A=1",), ("image=x",))


def test_memory_is_somebody_elses_when_nothing_of_the_server_runs() -> None:
    def said(stop: Stop) -> list[tuple[str, Severity]]:
        return [(f.code, f.severity) for f in SmokeReport("vllm", started=True, stop=stop).findings()]

    beside = Stop(1.0, True, True, 14_416)
    assert said(beside) == [("S-104", Severity.WARNING)]
    assert beside.clean
    leftover = Stop(1.0, True, True, 63_000, left=1)
    assert said(leftover) == [("S-103", Severity.ERROR)]
    assert not leftover.clean
    assert said(Stop(1.0, True, True, 100)) == []
    assert [code for code, _ in said(Stop(1.0, False, True))] == ["S-103"]


def test_what_a_server_started_is_found_in_any_session() -> None:
    mark = f"test-{time.monotonic_ns()}"
    with subprocess.Popen(
        ["sleep", "60"], env={"PATH": "/usr/bin:/bin", identity.MARK: mark}, start_new_session=True
    ) as escaped:
        try:
            deadline = time.monotonic() + 10
            while not (found := identity.marked(mark)) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert found == (escaped.pid,)
            assert identity.marked(mark[:-1]) == ()
        finally:
            escaped.kill()
    assert identity.marked(mark) == ()
