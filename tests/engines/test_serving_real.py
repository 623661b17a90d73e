"""Plans against logs of real starts on an H200: weights and blocks exactly, what is estimated within a few per cent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nemolab import models
from nemolab.client.endpoint import Endpoint
from nemolab.client.outcome import CheckStatus, ProbeCheck, ProbeReport
from nemolab.core.finding import Severity
from nemolab.engines import serving_prepare, serving_run, trouble, vllm
from nemolab.engines.logs import LogReport, read_log
from nemolab.engines.serving import Answer
from nemolab.engines.serving_run import Asked, Running
from nemolab.engines.serving_spec import ServeSpec

FIXTURES = Path(__file__).parent / "fixtures"
# Log, model, and the settings of the launch beside one H200.
NANO = {"max_num_batched_tokens": 16_384}
MILLION = {
    **NANO, "max_model_len": 1 << 20, "gpu_memory_utilization": 0.8, "mamba_cache_mode": "align",
    "max_running_requests": 16,
}  # fmt: skip
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("vllm-0.22.0-h200-nano-dummy", "nano-bf16", {**NANO, "kv_cache_dtype": "fp8", "max_running_requests": 128}),
    ("vllm-0.22.0-h200-ultra-depth9", "ultra-bf16@9", {"max_num_batched_tokens": 32_768, "max_running_requests": 64}),
    ("vllm-0.22.0-h200-nano-1m-fp8", "nano-bf16", {**MILLION, "kv_cache_dtype": "fp8"}),
    ("vllm-0.22.0-h200-nano-1m-bf16", "nano-bf16", MILLION),
]


def report(name: str) -> LogReport:
    return read_log((FIXTURES / f"{name}.log").read_text(), vllm.LOG)


@pytest.mark.parametrize(("log", "model", "options"), CASES)
def test_the_plan_is_what_the_engine_printed(log: str, model: str, options: dict[str, Any]) -> None:
    printed = {name: float(q.value) for name, q in report(log).capacity.items()}
    asked = models.request(model, "h200", **{"max_model_len": 262_144, "gpu_memory_utilization": 0.9, **options})
    planned = serving_prepare.in_log(models.plan(asked))
    assert planned["attention_block"] == printed["attention_block"]
    assert planned["weights"] == pytest.approx(printed["weights"], rel=0.002)
    assert planned["kv_cache"] == pytest.approx(printed["kv_cache"], rel=0.05)
    exact = serving_prepare.in_log(models.plan(asked.but(available_kv=int(printed["kv_cache"] * 2**30))))
    assert exact["kv_tokens"] == pytest.approx(printed["kv_tokens"], rel=0.0005), "the log rounds to 0.01 GiB"


@pytest.mark.parametrize(("log", "model", "options"), CASES)
def test_the_phases_of_a_real_start_are_all_timed(log: str, model: str, options: dict[str, Any]) -> None:
    seen = {phase.name: phase.seconds for phase in report(log).phases}
    assert {"weights", "torch.compile", "Mamba kernel warm-up and profiling", "CUDA graphs"} <= seen.keys()
    assert max(seen, key=lambda name: seen[name] or 0.0) == "Mamba kernel warm-up and profiling"


def test_a_newer_release_is_read_and_planned_alike() -> None:
    seen = report("vllm-0.26.0-h200-miniature")
    assert seen.version == "0.26.0"
    assert seen.ready
    assert [phase.name for phase in seen.phases][-3:] == ["KV cache and graph memory", "CUDA graphs", "API server"]
    printed = {name: float(q.value) for name, q in seen.capacity.items()}
    asked = models.request(
        "miniature",
        "h200",
        max_model_len=65_536,
        mamba_cache_mode="align",
        available_kv=4 << 30,
        engine_version="0.26.0",
    )
    planned = serving_prepare.in_log(models.plan(asked))
    assert planned["attention_block"] == printed["attention_block"]
    assert planned["kv_tokens"] == pytest.approx(printed["kv_tokens"], rel=0.001)


def test_a_tokenizer_without_think_tokens_is_named() -> None:
    found = trouble.diagnose((FIXTURES / "vllm-0.22.0-no-think-tokens.log").read_text())
    assert found.causes[0].code == "L-131"
    assert "<think>" in found.causes[0].cause


def test_servers_that_start_side_by_side_are_a_cause_of_no_memory() -> None:
    found = trouble.diagnose((FIXTURES / "vllm-0.22.0-side-by-side.log").read_text())
    codes = [cause.code for cause in found.causes if cause.evidence == "stated"]
    assert "L-129" in codes
    fix = next(cause.fix for cause in found.causes if cause.code == "L-129")
    assert "one after the other" in fix


def test_where_the_engine_is_installed_stays_out_of_findings() -> None:
    text = (FIXTURES / "vllm-0.22.0-h200-nano-dummy.log").read_text().replace("<site>", "/home/me/env/site-packages")
    said = [finding.message for finding in read_log(text, vllm.LOG).findings()]
    assert any("vllm/model_executor/layers" in message for message in said)
    assert not any("/home/me" in message for message in said)


def running(log: str) -> Running:
    seen = report(log)
    return Running(
        "started", "vllm", "0.22.0", "1", "http://127.0.0.1:1/v1", "m", None, 200.0, seen.phases, dict(seen.capacity)
    )


def test_a_cache_that_is_smaller_than_planned_is_a_finding_and_other_numbers_too() -> None:
    prepared = serving_prepare.prepare(
        ServeSpec("vllm", "ultra_bf16_depth9_1xh200_vllm", settings=("model_dir=/models/ultra",))
    )
    here = running("vllm-0.22.0-h200-ultra-depth9")
    assert "S-202" not in codes_of(prepared, here)
    for name in ("kv_cache", "weights", "attention_block"):
        wrong = replace(prepared, expected={**prepared.expected, name: prepared.expected[name] * 1.1})
        found = [f for f in serving_run.outcome(wrong, here, Asked()).findings if f.code == "S-202"]
        assert len(found) == 1
        assert found[0].message.startswith(name.replace("_", " "))
        assert ("--available-kv-gib" in found[0].fix) is (name == "kv_cache")
    both = {name: prepared.expected[name] * 1.1 for name in ("kv_cache", "weights")}
    wrong = replace(prepared, expected={**prepared.expected, **both})
    found = [f for f in serving_run.outcome(wrong, here, Asked()).findings if f.code == "S-202"]
    assert [f.message.partition(":")[0] for f in found] == ["weights"], "nobody else took memory: it is another model"


def codes_of(prepared: serving_prepare.Prepared, here: Running) -> set[str]:
    return {finding.code for finding in serving_run.outcome(prepared, here, Asked()).findings}


def probed(**failed: CheckStatus) -> ProbeReport:
    names = ("health", "chat", "no-thinking", "max-tokens")
    checks = tuple(
        ProbeCheck(name, name, failed.get(name.replace("-", "_"), CheckStatus.PASSED), "so", 0.1) for name in names
    )
    return ProbeReport(Endpoint("http://127.0.0.1:1/v1", "m"), checks, "", "", None, None, None, None, None)


def test_without_weights_only_what_the_server_does_can_fail() -> None:
    spec = ServeSpec("vllm", "ultra_bf16_depth9_1xh200_vllm", settings=("model_dir=/models/ultra",))
    noise = serving_prepare.prepare(spec)
    trained = replace(noise, settings=tuple(row for row in noise.settings if row["setting"] != "load-format"))
    assert noise.without_weights
    assert not trained.without_weights
    here = running("vllm-0.22.0-h200-ultra-depth9")
    first = Answer("crisi crisi", "", "length", 20, 512, 2.0)
    words, server = probed(no_thinking=CheckStatus.FAILED), probed(max_tokens=CheckStatus.FAILED)
    good = serving_run.outcome(noise, here, Asked(first, words, {}))
    assert good.sound
    assert "no weights" in good.why
    said = next(finding for finding in good.findings if finding.code == "A-no-thinking")
    assert said.severity is Severity.INFO
    assert not serving_run.outcome(noise, here, Asked(first, server, {})).sound
    assert not serving_run.outcome(trained, here, Asked(first, words, {})).sound
    assert not serving_run.outcome(noise, here, Asked(replace(first, completion_tokens=0), words, {})).sound
