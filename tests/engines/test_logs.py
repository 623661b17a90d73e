"""Logs of real engines, read: phases, capacity, warnings, causes."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemolab.core.errors import UsageError
from nemolab.core.finding import Severity
from nemolab.engines import llamacpp, vllm
from nemolab.engines.log_rules import COMMON
from nemolab.engines.logs import LogReader, read_log
from nemolab.engines.registry import ENGINES, explain, log_rules

FIXTURES = Path(__file__).parent / "fixtures"
READY = (FIXTURES / "vllm-0.22.0-ready.log").read_text()


def test_vllm_phases_and_capacity() -> None:
    report = read_log(READY, vllm.LOG)
    took = {phase.name: phase.seconds for phase in report.phases}
    assert list(took) == [
        "imports and configuration",
        "engine process",
        "weights",
        "torch.compile",
        "Mamba kernel warm-up and profiling",
        "KV cache and graph memory",
        "CUDA graphs",
        "API server",
    ]
    assert took["weights"] == pytest.approx(1.129, abs=0.001), "what the engine states, not the time between lines"
    assert took["torch.compile"] == pytest.approx(2.13)
    assert took["Mamba kernel warm-up and profiling"] == pytest.approx(60.06)
    assert took["CUDA graphs"] == 6
    capacity = {name: quantity.value for name, quantity in report.capacity.items()}
    assert capacity["kv_tokens"] == 11_621_544
    assert capacity["max_concurrency"] == 11.08
    assert capacity["attention_block"] == 2096
    assert capacity["kv_cache"] == 67.13
    assert capacity["max_model_len"] == 1_048_576
    assert (report.engine, report.version, report.ready) == ("vllm", "0.22.0", True)
    assert report.ready_s is not None
    assert report.ready_s == pytest.approx(110, abs=3), "measured: 110 s with warm compile caches"
    assert not report.failures


def test_vllm_warnings_are_explained_once_each() -> None:
    report = read_log(READY, vllm.LOG)
    warned = {seen.symptom.code: seen for seen in report.warnings}
    assert set(warned) == {"L-150", "L-151", "L-152", "L-153", "L-154"}
    assert warned["L-152"].times > 3
    assert "E=128,N=1856,device_name=NVI" in warned["L-150"].line
    findings = report.findings()
    assert all(f.severity is Severity.WARNING and f.fix and f.source and f.where for f in findings)


def test_vllm_leftover_process_is_the_cause_and_not_its_aftermath() -> None:
    report = read_log((FIXTURES / "vllm-0.22.0-leftover-process.log").read_text(), vllm.LOG)
    assert [seen.symptom.code for seen in report.failures] == ["L-101", "L-190"]
    assert report.cause is not None
    assert "77.54 of 139.8 GiB" in report.cause.cause
    assert "128.62 GiB are wanted" in report.cause.cause
    assert not report.ready
    assert report.phases[-1].seconds is None, "it had not ended"


def test_vllm_that_looks_ready_but_answers_500() -> None:
    reader = LogReader(vllm.LOG)
    reader.feed((FIXTURES / "vllm-0.22.0-fastapi-drift.log").read_text())
    assert reader.report().ready
    assert reader.fatal is not None
    assert reader.fatal.symptom.code == "L-102"


def test_llamacpp_phases_and_capacity() -> None:
    report = read_log((FIXTURES / "llamacpp-2026.10-ready.log").read_text(), llamacpp.LOG)
    assert [phase.name for phase in report.phases] == [
        "process start",
        "fit to memory",
        "model file",
        "weights",
        "context",
        "warm-up",
        "slots",
    ]
    assert {name: quantity.value for name, quantity in report.capacity.items()}.items() >= {
        "n_ctx": 16384,
        "n_ctx_slot": 8192,
        "slots": 2,
        "threads": 1,
        "kv_cache": 32.0,
        "recurrent_state": 1.57,
        "weights": 5.48,
    }.items()
    assert (report.engine, report.ready) == ("llamacpp", True)
    assert report.version.startswith("2026.10.")
    assert (report.warnings, report.failures) == ((), ())


def test_llamacpp_cut_file() -> None:
    report = read_log((FIXTURES / "llamacpp-2026.10-cut-file.log").read_text(), llamacpp.LOG)
    assert report.cause is not None
    assert report.cause.symptom.code == "L-201"
    assert "blk." in report.cause.cause


# Messages as the engines word them: issues and sources named with each symptom.
LINES = [
    ("ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (658)", "L-103", "--max-num-seqs 658"),
    ("AssertionError: In Mamba cache align mode, block_size (2096) must be <= max_num_batched_tokens (2048).", "L-104",
     "--max-num-batched-tokens 2096"),
    ("ValueError: To serve at least one request with the models's max seq len (262144), (24.00 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (8.04 GiB). Based on the available memory, the estimated "
     "maximum model length is 87840. Try", "L-105", "--max-model-len 87840"),
    ("ValueError: To serve at least one request with the model's max seq len (4096), (0.58 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (0.47 GiB).", "L-105", "--max-model-len"),
    ("ValueError: No available memory for the cache blocks. Try increasing", "L-106", "tensor parallel"),
    ("Value error, User-specified max_model_len (1048576) is greater than the derived max_model_len (max_position_"
     "embeddings=262144 or model_max_length=None in model's config.json). This may lead to incorrect model outputs or "
     "CUDA errors. To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1", "L-107",
     "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"),
    ("OSError: [Errno 24] Too many open files", "L-004", "nofile"),
    ("NotImplementedError: No NvFp4 MoE backend supports the deployment configuration.", "L-108", "precision"),
    ("ptxas x.ptx; error : Feature 'cvt with .rs.f16x2' not supported on .target 'sm_90a'", "L-109", "flashinfer"),
    ("vllm: error: unrecognized arguments: --swap-space 0", "L-110", "--help"),
    ("vllm: error: argument --kv-cache-dtype: invalid choice: 'fp16' (choose from auto, float16)", "L-111", "name"),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 266.00 MiB.", "L-003", "leftover"),
    ("OSError: [Errno 28] No space left on device", "L-002", "free space"),
    ("OSError: [Errno 98] error while attempting to bind on address: address already in use", "L-001", "port"),
    ("ModuleNotFoundError: No module named 'flashinfer'", "L-007", "lock"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "fix"), LINES, ids=[f"{code}-{i}" for i, (_, code, _) in enumerate(LINES)])
def test_failures_with_cause_and_fix(line: str, code: str, fix: str) -> None:
    report = explain(f"INFO something\n(EngineCore pid=1) ERROR 11-30 11:18:25 [core.py:1165] {line}\n")
    assert report.cause is not None
    assert report.cause.symptom.code == code
    assert fix in report.cause.fix


def test_the_engine_is_found_by_what_only_it_prints() -> None:
    assert explain(READY).engine == "vllm"
    assert explain((FIXTURES / "llamacpp-2026.10-cut-file.log").read_text()).engine == "llamacpp"
    assert explain("nothing of the kind").engine == ""
    with pytest.raises(UsageError, match="unknown engine"):
        log_rules("triton")


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, len(READY) - 1), max_size=30))
def test_the_same_report_however_the_log_arrives(cuts: list[int]) -> None:
    reader = LogReader(vllm.LOG)
    edges = [0, *sorted(cuts), len(READY)]
    for begin, end in pairwise(edges):
        reader.feed(READY[begin:end])
    reader.finish()
    assert reader.report() == read_log(READY, vllm.LOG)


def test_a_key_in_the_log_is_not_quoted() -> None:
    key = "nvapi-" + "x" * 40
    reader = LogReader(llamacpp.LOG)
    reader.feed(f"PermissionError: permission denied: '/m' with {key}\n")
    seen = reader.report().failures[0]
    assert key not in seen.line
    assert key not in "".join(reader.tail)


def test_codes_are_unique_and_every_symptom_is_complete() -> None:
    for engine in ENGINES:
        rules = log_rules(engine)
        symptoms = (*rules.failures, *rules.warnings, *COMMON)
        assert len({s.code for s in symptoms}) == len(symptoms)
        for symptom in symptoms:
            assert symptom.cause
            assert symptom.fix
            assert symptom.source
            wanted = set(re.findall(r"\{(\w+)\}", symptom.cause + symptom.fix))
            assert wanted <= set(symptom.pattern.groupindex), symptom.code


SGLANG = (FIXTURES / "sglang-0.5.13-h200-miniature.log").read_text()


def test_sglang_start_as_it_was_on_a_gpu() -> None:
    report = explain(SGLANG)
    assert (report.engine, report.ready, report.ready_s) == ("sglang", True, 127)
    took = {phase.name: phase.seconds for phase in report.phases}
    assert took["process group"] == 0.26
    assert took["weights"] == 0.07
    assert took["CUDA graphs"] == 67.82, "not what the piecewise graphs took"
    assert took["piecewise CUDA graphs"] == 13.76
    assert took["first request of its own"] == 10
    values = {name: quantity.value for name, quantity in report.capacity.items()}
    assert values == {
        "weights": 0.01,
        "mamba_slots": 8673,
        "conv_state": 0.15,
        "ssm_state": 6.35,
        "kv_tokens": 3787607,
        "chunked_prefill_size": 8192,
        "max_running_requests": 16,
        "max_model_len": 65536,
        "left": 123.85,
    }


def test_piecewise_graphs_alone_are_not_the_others() -> None:
    lines = [line for line in SGLANG.split("\n") if "Capture cuda graph begin" not in line]
    phases = [phase.name for phase in explain("\n".join(lines)).phases]
    assert "piecewise CUDA graphs" in phases
    assert "CUDA graphs" not in phases


def test_mamba_groups_that_sglang_does_not_read() -> None:
    report = explain((FIXTURES / "sglang-0.5.13-mamba-groups.log").read_text())
    assert not report.ready
    assert report.cause is not None
    assert report.cause.symptom.code == "L-312"
    assert "mamba_n_groups" in report.cause.fix
    assert [seen.symptom.code for seen in report.failures] == ["L-312", "L-390"], "the aftermath comes last"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.log")), ids=lambda path: path.stem)
def test_a_log_that_got_ready_names_no_failure(path: Path) -> None:
    """Engines print the settings they were started with, the names of all their options in one line."""
    report = explain(path.read_text())
    if report.ready and "drift" not in path.stem:
        assert not report.failures


ECHOES = {
    "sglang": "[2026-11-30 19:46:15] server_args=ServerArgs({})",
    "vllm": "(APIServer pid=637) INFO 11-30 19:59:01 [utils.py:278] non-default args: {{'model_tag': '/model', {}}}",
}


@pytest.mark.parametrize("engine", sorted(ECHOES))
def test_settings_that_are_printed_are_no_symptoms_and_show_no_key(engine: str) -> None:
    rules = log_rules(engine)
    words = [re.sub(r"\\|\(\?[^)]*\)|[()\[\]?*+^$]", "", symptom.pattern.pattern) for symptom in rules.failures]
    known = "extra_buffer', disable_radix_cache=False, api_key='swordfish', x={'api_key': ['marlin']}"
    reader = LogReader(rules)
    for line in (known, *words):
        reader.feed(ECHOES[engine].format(line) + "\n")
    report = reader.report()
    assert not report.failures
    assert not report.warnings
    assert "swordfish" not in "".join(reader.tail)
    assert "marlin" not in "".join(reader.tail)
