"""Known troubles are found in the lines that engines print, and what is found is ranked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemolab.core.errors import UsageError
from nemolab.core.finding import Severity
from nemolab.engines import cold_start, state, trouble
from nemolab.engines.logs import read_log
from nemolab.engines.params_trouble import results_of
from nemolab.engines.registry import ENGINES, log_rules

FIXTURES = Path(__file__).parent / "fixtures"
PLANNER_LOGS = Path(__file__).parents[1] / "models" / "logs"


def fixture(name: str) -> str:
    return (FIXTURES / f"vllm-0.22.0-{name}.log").read_text()


# Issue, engine, a line as the issue or the engine's source words it, the symptom that must be seen, a word of its fix.
# Troubles without a row leave no line in a log: wrong answers, slow answers, a machine that resets, a proxy that cuts.
LINES = [
    ("Nemotron#289", "vllm", "ptxas error : Feature 'cvt with .rs.f16x2' not supported on .target 'sm_90a'", "L-109",
     "flashinfer"),
    ("TensorRT-LLM#14575", "trtllm", "[TRT-LLM] [E] Failed to initialize cutlass TMA WS grouped gemm. Error: Error "
     "Internal", "L-403", "MTP"),
    ("TensorRT-LLM#14575", "trtllm", "ptxas: Feature '.rs' with cvt not supported on .target 'sm_121a' cvt.rs.f16x2",
     "L-404", "stochastic"),
    ("vllm#35065", "vllm", "NotImplementedError: No NvFp4 MoE backend supports the deployment configuration.", "L-108",
     "precision"),
    ("vllm#33417", "vllm", "RuntimeError: FlashInfer-CUTLASS MoE kernel does not support current device sm_120",
     "L-116", "--moe-backend"),
    ("vllm#33416", "vllm", "ValueError: NvFp4 MoE backend 'FLASHINFER_CUTLASS' does not support the deployment "
     "configuration since kernel does not support current device.", "L-116", "--moe-backend"),
    ("vllm#43908", "vllm", "RuntimeError: size_n = 672 is not divisible by tile_n_size = 64", "L-117", "half"),
    ("vllm#49949", "vllm", "size_k = 256, is not divisible by b_scales.size(1) = 15", "L-117", "half"),
    ("vllm#49041", "vllm", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "L-008",
     "prefill"),
    ("transformers#48017", "vllm", "AttributeError: 'NemotronHConfig' object has no attribute 'num_hidden_layers'",
     "L-009", "layers_block_type"),
    ("flashinfer#5267", "sglang", "ptxas fatal: cvt.rs.f16x2.f32 not supported on .target 'sm_121'", "L-310",
     "flashinfer"),
    ("sglang#20375", "sglang", "ValueError: Unknown quantization method: modelopt_mixed.", "L-305", "modelopt_mixed"),
    ("vllm#37854", "vllm", "ValueError: ModelOpt currently only supports: ['FP8', 'NVFP4'] quantizations", "L-118",
     "0.17.1"),
    ("vllm#39809", "vllm", "ValueError: FLASHINFER_TRTLLM: kernel does not support no act_and_mul", "L-119", "align"),
    ("vllm#39809", "vllm", "NotImplementedError: NemotronHMTP currently does not support 'all' prefix caching, please "
     "use '--mamba-cache-mode=align' instead", "L-130", "align"),
    ("retail-shopping-assistant#95", "vllm", "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks "
     "(524)", "L-103", "524"),
    ("NVIDIA-NeMo/RL#2620", "vllm", "max_num_seqs (1024) exceeds available Mamba cache blocks (658)", "L-103", "658"),
    ("TensorRT-LLM#13179", "trtllm", "RuntimeError: run out of mamba cache blocks", "L-401", "max_batch_size"),
    ("sglang#19169", "sglang", "ValueError: --mamba-scheduler-strategy extra_buffer with --disable-radix-cache needs "
     "speculative decoding", "L-303", "no_buffer"),
    ("SGLang 0.5.13", "sglang", "ValueError: mamba extra_buffer is not compatible with --disable-radix-cache. Overlap "
     "scheduling is already supported with no_buffer + disable_radix_cache.", "L-303", "no_buffer"),
    ("SGLang 0.5.14", "sglang", "AssertionError: no_buffer do not support overlap schedule. Try to set "
     "disable_overlap_schedule=True.", "L-313", "--disable-overlap-schedule"),
    ("sglang#27418", "sglang", "ValueError: Speculative decoding for NemotronHForCausalLM is not compatible with radix "
     "cache when using --mamba-scheduler-strategy no_buffer.", "L-304", "extra_buffer"),
    ("sglang#31094", "sglang", "WARNING --mamba-scheduler-strategy is deprecated", "L-351", "radix-cache-strategy"),
    ("sglang#31094", "sglang", "AttributeError: 'ServerArgs' object has no attribute 'mamba_scheduler_strategy'",
     "L-309", "radix-cache-strategy"),
    ("retail-shopping-assistant#217", "nim", "INFO prefix caching is disabled for hybrid models", "L-551",
     "NIM_ENABLE_KV_CACHE_REUSE"),
    ("vllm#36734", "vllm", "In Mamba cache align mode, block_size (8304) must be <= max_num_batched_tokens (8192).",
     "L-104", "8304"),
    ("qwen38-27b-rtx3090#25", "vllm", "WARNING Mamba cache mode is set to 'none' when prefix caching is disabled",
     "L-159", "--enable-prefix-caching"),
    ("anyscale/templates#1086", "vllm", "vllm: error: unrecognized arguments: --swap-space 0", "L-110", "--help"),
    ("vllm#50012", "vllm", "Smaller values produce incorrect output. Use num_speculative_tokens=dspark_block_size or "
     "larger (e.g. 7).", "L-120", "block"),
    ("vllm#52107", "vllm", "SpecDecoding metrics: Mean acceptance length: 1.00, Accepted throughput: 0.00 tokens/s, "
     "Drafted throughput: 30.00 tokens/s, Accepted: 0 tokens, Drafted: 300 tokens, Per-position acceptance rate: 0.000,"
     " Avg Draft acceptance rate: 0.0%", "L-156", "without speculation"),
    ("vllm#30436", "vllm", "AttributeError: 'GPUModelRunner' object has no attribute 'drafter'", "L-121", "1"),
    ("TensorRT-LLM#10417", "trtllm", "  File auto_deploy/transform/library/multi_stream_moe.py", "L-407", "false"),
    ("spark-vllm-docker#234", "vllm", "KeyError: \"Reasoning parser 'super_v3' not found. Available parsers: qwen3\"",
     "L-122", "plugin"),
    ("spark-vllm-docker#234", "vllm", "ERROR Failed to load module 'super_v3_reasoning_parser' from /m/super_v3.py",
     "L-123", "mount"),
    ("dynamo#7225", "dynamo", "WARN dynamo_parsers: Unknown reasoning parser type nemotron3, falling back", "L-601",
     "nemotron3"),
    ("NemoClaw#7127", "vllm", "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY]", "L-010",
     "expandable_segments"),
    ("NemoClaw#7127", "vllm", "INFO Available KV cache memory: -3.42 GiB", "L-129", "drafter"),
    ("dgx-spark-playbooks#97", "vllm", "kernel: NVRM: RM 0x51 NV_ERR_NO_MEMORY", "L-010", "autotune"),
    ("dgx-spark-playbooks#107", "vllm", "RuntimeError: execute failed: err 715 != CUDA_SUCCESS :: "
     "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER", "L-124", "fp8"),
    ("Nemotron#262", "vllm", "ImportError: libtorch_cuda.so: undefined symbol: ncclCommWindowRegister", "L-011",
     "pinned"),
    ("NemoClaw#11045", "vllm", "NotFoundError: The model `nemotron` does not exist.", "L-157", "served"),
    ("NemoClaw#7899", "vllm", "WARNING Using KV cache scaling factor 1.0 for fp8_e4m3. If this is unintended, verify",
     "L-158", "compare"),
    ("NemoClaw#6883", "vllm", "OSError: [Errno 28] No space left on device", "L-002", "space"),
    ("NemoClaw#6883", "vllm", "OSError: [Errno 98] Address already in use", "L-001", "port"),
    ("NemoClaw#10524", "vllm", "pynvml.NVMLError_NotSupported: Not Supported", "L-012", "N/A"),
    ("vllm#38489", "vllm", "AssertionError: Error in memory profiling. Initial free memory 60.1 GiB, current free "
     "memory 71.3 GiB.", "L-125", "one after the other"),
    ("dynamo#10741", "vllm", "ValueError: Hybrid KV cache manager is disabled but failed to convert the KV cache specs "
     "to one unified type.", "L-126", "--no-disable-hybrid-kv-cache-manager"),
    ("dynamo#13755", "vllm", "ValueError: Connector DynamoConnector does not support HMA but HMA is enabled.", "L-127",
     "connector"),
    ("vllm#40674", "vllm", "NotImplementedError: NixlConnector does not support pipeline parallelism", "L-128",
     "--pipeline-parallel-size 1"),
    ("nemotron-voice-agent#89", "nim", "ERROR Could not match a profile in manifest at /opt/nim/etc", "L-501",
     "NIM_MODEL_PROFILE"),
    ("state-spaces/mamba#503", "sglang", "CUDA error: an illegal memory access was encountered", "L-008", "prefill"),
    ("TensorRT-LLM#17926", "trtllm", "[host:1] *** Process received signal ***  Signal: Segmentation fault (11)",
     "L-402", "avg_seq_len"),
    ("vllm#20407", "sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "L-302",
     "tensor parallel"),
    ("model cards", "sglang", "ValueError: User-specified context_length (1048576) is greater than the derived "
     "context_length (262144). This may lead to incorrect model outputs or CUDA errors. To allow overriding this "
     "maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1", "L-301", "SGLANG_ALLOW"),
    ("model cards", "trtllm", "[TRT-LLM] [W] Specified self.max_seq_len=1048576 is larger than what the model can "
     "support (262144). Setting max_seq_len to 262144. ", "L-450", "TLLM_ALLOW"),
    ("Nemotron#289", "sglang", "ValueError: Stochastic rounding for the Mamba SSM cache with --mamba-backend triton "
     "requires SM100 with CUDA >= 12.8", "L-306", "flashinfer"),
]  # fmt: skip


@pytest.mark.parametrize(("issue", "engine", "line", "code", "fix"), LINES, ids=[f"{r[0]}-{r[3]}" for r in LINES])
def test_a_known_trouble_is_found_with_its_fix(issue: str, engine: str, line: str, code: str, fix: str) -> None:
    found = trouble.diagnose(f"INFO something else\n(Worker pid=1) ERROR 11-30 11:18:25 [x.py:1] {line}\n", engine)
    seen = {cause.code: cause for cause in found.causes}
    assert code in seen, f"{issue}: found {sorted(seen)}"
    assert fix in seen[code].fix
    assert seen[code].number == 2
    first = found.causes[0]
    assert first.code == code, f"{issue}: {first.code} ranks above {code}"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_healthy_start_of_one_engine_alarms_none(engine: str) -> None:
    """Every rule is held against the logs of healthy starts: a rule that fires there would be an error everywhere."""
    for text in (fixture("ready"), (FIXTURES / "llamacpp-2026.10-ready.log").read_text()):
        report = read_log(text, log_rules(engine))
        assert report.failures == (), [seen.line for seen in report.failures]


def test_fastapi_drift_is_the_cause_though_the_log_says_ready() -> None:
    found = trouble.diagnose(fixture("fastapi-drift"))
    assert found.report.ready
    assert found.failed
    assert found.causes[0].code == "L-102"
    assert "lock" in found.causes[0].fix
    assert found.sentence.startswith("Every request answers 500")


def test_leftover_process_ranks_above_its_aftermath() -> None:
    found = trouble.diagnose(fixture("leftover-process"))
    codes = [cause.code for cause in found.causes]
    assert codes[0] == "L-101"
    assert codes.index("L-190") < codes.index("L-153"), "before the warnings, after the causes"
    assert found.causes[codes.index("L-190")].evidence == "aftermath"
    assert not found.report.ready


def test_a_failure_that_any_engine_can_have_ranks_above_the_aftermath() -> None:
    text = "ERROR [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried\nRuntimeError: Engine core " \
           "initialization failed. See root cause above.\n"  # fmt: skip
    found = trouble.diagnose(text, "vllm")
    assert [cause.code for cause in found.causes][:1] == ["L-003"]
    assert found.report.cause is not None
    assert found.report.cause.symptom.code == "L-003"


@pytest.mark.parametrize("name", ["vllm-0.22.0-h200-nano1m", "vllm-0.22.0-h200-miniature-256k"])
def test_real_starts_have_no_cause(name: str) -> None:
    found = trouble.diagnose((PLANNER_LOGS / f"{name}.log").read_text())
    assert [c.code for c in found.causes if c.evidence in ("stated", "aftermath")] == []


def test_cold_start_says_what_caches_save() -> None:
    cold = fixture("ready").replace("Directly load the compiled graph", "Compiled the graph").replace(
        "torch.compile took 2.13 s", "torch.compile took 18.19 s"
    )  # fmt: skip
    savings = {saving.phase: saving for saving in cold_start.savings(read_log(cold, log_rules("vllm")))}
    assert savings["torch.compile"].saves_s == pytest.approx(18.19 - 2.13, abs=0.01)
    assert savings["torch.compile"].mount == "~/.cache/vllm"
    assert savings["Mamba kernel warm-up and profiling"].variable == "TRITON_CACHE_DIR"
    assert savings["weights"].saves_s is None, "nobody measured it"


def test_a_warm_start_promises_nothing_more() -> None:
    report = read_log(fixture("ready"), log_rules("vllm"))
    savings = {saving.phase: saving for saving in cold_start.savings(report)}
    assert savings["torch.compile"].warm
    assert savings["torch.compile"].saves_s == 0
    assert savings["Mamba kernel warm-up and profiling"].saves_s is None
    assert cold_start.sentence(report) == "110 s in all, 60 s of them Mamba kernel warm-up and profiling."


def test_a_log_that_just_ends_names_the_phase() -> None:
    text = fixture("ready")
    cut = text[: text.index("Initial profiling/warmup run took")].rpartition("\n")[0]
    found = trouble.diagnose(cut)
    assert found.stopped_at == "Mamba kernel warm-up and profiling"
    derived = next(cause for cause in found.causes if cause.code == "L-905")
    assert "60 to 128 s of silence here are normal" in derived.fix
    assert found.failed


def test_memory_lost_after_the_start_has_another_cause() -> None:
    found = trouble.diagnose(fixture("ready") + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n")
    assert {"L-003", "L-901"} <= {cause.code for cause in found.causes}


def test_the_old_token_count_is_explained() -> None:
    text = fixture("ready").replace("KV cache size: 11,621,544 tokens", "KV cache size: 2,905,386 tokens")
    assert "L-904" in {cause.code for cause in trouble.diagnose(text).causes}
    assert "L-904" not in {cause.code for cause in trouble.diagnose(fixture("ready")).causes}


def test_text_file_or_the_newest_log_of_the_lab(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(fixture("leftover-process"))
    by_file = trouble.read(path=str(file))
    assert by_file == trouble.read(log=fixture("leftover-process"))
    with pytest.raises(UsageError, match="which one"):
        trouble.read(log="x", path="y")
    with pytest.raises(UsageError, match="no log"):
        trouble.read()
    logs = state.folder() / "logs"
    logs.mkdir(parents=True)
    (logs / "20260101-000000-000000-vllm-1.log").write_text("old")
    (logs / "20260102-000000-000000-vllm-1.log").write_text(fixture("leftover-process"))
    assert trouble.read() == by_file
    with pytest.raises(UsageError, match="cannot read"):
        trouble.read(path=str(tmp_path / "none.log"))
    with pytest.raises(UsageError, match="empty"):
        trouble.diagnose(" \n")


def test_findings_and_results_of_a_diagnosis() -> None:
    found = trouble.diagnose(fixture("leftover-process"))
    findings = [cause.as_finding() for cause in found.causes]
    assert findings[0].severity is Severity.ERROR
    assert findings[0].where == "log line 23"
    assert all(finding.fix and finding.source for finding in findings)
    results = results_of(found)
    assert (results.code, results.failed, results.engine, results.ready) == ("L-101", True, "vllm", False)


# --- phases of engines that we have no log of our own of: lines as their sources and public logs have them ------------

SGLANG = """\
[2026-06-12 10:00:00] server_args=ServerArgs(model_path='m', context_length=262144)
[2026-06-12 10:00:10 TP0] Init torch distributed begin.
[2026-06-12 10:00:11 TP0] Init torch distributed ends. elapsed=0.50 s, mem usage=0.10 GB
[2026-06-12 10:00:11 TP0] Load weight begin. avail mem=138.00 GB
[2026-06-12 10:01:12 TP0] Load weight end. elapsed=61.23 s, type=NemotronHForCausalLM, quant=modelopt_fp4, \
avail mem=60.00 GB, mem usage=75.00 GB.
[2026-06-12 10:01:13 TP0] Mamba Cache is allocated. max_mamba_cache_size: 64, conv_state size: 0.10GB, \
ssm_state size: 12.00GB
[2026-06-12 10:01:13 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 367404, K size: 8.23 GB, \
V size: 8.23 GB
[2026-06-12 10:01:14 TP0] Memory pool end. avail mem=12.34 GB
[2026-06-12 10:01:15 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=12.30 GB
[2026-06-12 10:01:18 TP0] Capture cuda graph end. Time elapsed: 3.21 s. mem usage=0.50 GB. avail mem=9.00 GB.
[2026-06-12 10:01:19 TP0] max_total_num_tokens=367404, chunked_prefill_size=8192, max_prefill_tokens=16384, \
max_running_requests=48, context_len=262144, available_gpu_mem=9.00 GB
[2026-06-12 10:01:20] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[2026-06-12 10:01:24] The server is fired up and ready to roll!
"""
TRTLLM = """\
[12/20/2025-04:20:00] [TRT-LLM] [I] Starting TensorRT-LLM version: 1.3.0rc17
[12/20/2025-04:20:30] [TRT-LLM] [I] Prefetching 40.10GB checkpoint files.
[12/20/2025-04:20:36] [TRT-LLM] [I] Model init total -- 5.18s
[12/20/2025-04:20:37] [TRT-LLM] [I] max_seq_len=8224, max_num_requests=64, max_num_tokens=8192, max_batch_size=64
[12/20/2025-04:21:10] [TRT-LLM] [I] [Autotuner] Autotuning process starts ...
[12/20/2025-04:21:37] [TRT-LLM] [I] [Autotuner] Autotuning process ends
[12/20/2025-04:21:37] [TRT-LLM] [I] Creating CUDA graph instances for 11 batch sizes.
[12/20/2025-04:21:50] [TensorRT-LLM][INFO] [MemUsageChange] Allocated 78.30 GiB for max tokens in paged KV cache \
(3731744).
[12/20/2025-04:21:55] INFO:     Started server process [1]
[12/20/2025-04:21:56] INFO:     Application startup complete.
"""


def test_sglang_phases_and_capacity() -> None:
    report = trouble.diagnose(SGLANG).report
    assert (report.engine, report.ready, report.ready_s) == ("sglang", True, 84)
    took = {phase.name: phase.seconds for phase in report.phases}
    assert took["weights"] == 61.23
    assert took["CUDA graphs"] == 3.21
    assert took["process group"] == 0.5
    assert took["first request of its own"] == 4
    capacity = {name: quantity.value for name, quantity in report.capacity.items()}
    assert (
        capacity.items() >= {"kv_tokens": 367404, "mamba_slots": 64, "ssm_state": 12.0, "max_model_len": 262144}.items()
    )
    assert not report.failures


def test_sglang_later_spelling_of_the_same_lines() -> None:
    text = SGLANG.replace("Capture cuda graph begin", "Capture target decode CUDA graph begin").replace(
        "Capture cuda graph end. Time elapsed: 3.21 s. mem usage=0.50 GB. avail mem=9.00 GB.",
        "Capture target decode CUDA graph end. bs=[1, 2, 4], elapsed=3.21 s, mem usage=0.50 GB, avail mem=9.00 GB.",
    )
    took = {phase.name: phase.seconds for phase in trouble.diagnose(text).report.phases}
    assert took["CUDA graphs"] == 3.21


def test_trtllm_phases_and_capacity() -> None:
    report = trouble.diagnose(TRTLLM).report
    assert (report.engine, report.version, report.ready) == ("trtllm", "1.3.0rc17", True)
    took = {phase.name: phase.seconds for phase in report.phases}
    assert took["weights"] == 5.18
    assert took["autotuning"] == 27
    assert list(took)[-1] == "API server"
    assert report.capacity["kv_tokens"].value == 3731744
    assert report.capacity["max_batch_size"].value == 64


def test_nim_and_dynamo_are_told_from_the_vllm_inside() -> None:
    nim = "== NVIDIA Inference Microservice LLM NIM ==\n" + fixture("ready")
    assert trouble.diagnose(nim).report.engine == "nim"
    assert trouble.diagnose("INFO dynamo.vllm: worker starts\n" + fixture("ready")).report.engine == "dynamo"
    assert trouble.diagnose(fixture("ready")).report.engine == "vllm"


def test_the_notebook_takes_a_pasted_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import papermill

    from nemolab.core import paths
    from nemolab.core.step import FOLDER, NAME

    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv(NAME, "trouble")
    papermill.execute_notebook(
        str(paths.notebooks() / "90_troubleshoot.ipynb"),
        str(tmp_path / "trouble.ipynb"),
        parameters={"log": fixture("fastapi-drift")},
        progress_bar=False,
    )
    values = json.loads((tmp_path / "trouble.results.json").read_text())["values"]
    assert values["code"]["value"] == "L-102"
    assert values["failed"]["value"] is True
    assert values["engine"]["value"] == "vllm"
