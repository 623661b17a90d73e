# ruff: noqa: E501  tables, one entry a line
"""Each rule fires on what it is for, and is quiet once the one thing is mended."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from nemolab.lint import Context, Severity, lint_text

ULTRA = "vllm serve nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4 -tp 8"
SUPER = "vllm serve nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4"
NANO = "vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
LIGHT = "vllm serve nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4"
SGL = "python3 -m sglang.launch_server --model-path nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16 --tp-size 8"
TRT = "trtllm-serve nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4 --tp_size 4"
DOCKER = "docker run --gpus all --ipc=host"
MTP = """ --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}'"""
V22, V27, V33 = (Context(engine_version=v) for v in ("0.22.0", "0.27.1", "0.33.0"))
S13, S15, S23 = (Context(engine_version=v) for v in ("0.5.13", "0.5.15", "0.5.23"))
T14 = Context(engine="trtllm", engine_version="1.4.0rc1")
NIM = "docker run --gpus all --shm-size=16GB -v /c:/opt/nim/.cache nvcr.io/nim/nvidia/"
POD = """apiVersion: v1
kind: Pod
spec:
  volumes: [{name: shm, emptyDir: {medium: Memory}}]
  containers:
  - name: a
    image: vllm/vllm-openai:v0.22.0
    args: [nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16]
    startupProbe: {periodSeconds: 10, failureThreshold: 120}
    resources: {limits: {nvidia.com/gpu: 1, memory: 64Gi}}
"""


class Row(NamedTuple):
    code: str
    context: Context
    text: str
    old: str  # what is wrong in the text
    new: str  # what makes it right


def gpu(name: str, count: int, version: str = "0.22.0", model: str | None = None, engine: str | None = None) -> Context:
    return Context(engine, version, model, name, count)


ROWS = [
    Row("R-MEM", gpu("b200", 4), "vllm serve nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16 -tp 4", "BF16", "NVFP4"),
    Row("R-MEM", gpu("h100", 8), f"{ULTRA} -pp 2", " -pp 2", ""),
    Row("R-SEQS", gpu("h100", 2), f"{SUPER} -tp 2 --max-num-seqs 1024", "1024", "16"),
    Row("R-TPALIGN", gpu("h100", 4), f"{SUPER} -tp 4", "-tp 4", "-tp 2"),
    Row("R-TPALIGN", gpu("h100", 4), f"{SUPER} -tp 4", "-tp 4", "-tp 4 --enable-expert-parallel"),
    Row("R-SR-ARCH", V22, f"{ULTRA} --enable-mamba-cache-stochastic-rounding "
    "--mamba-backend flashinfer", " --mamba-backend", " --mamba-ssm-cache-dtype float16 --mamba-backend"),
    Row("R-SR-ARCH", gpu("h100", 8), f"{ULTRA} --enable-mamba-cache-stochastic-rounding "
    "--mamba-ssm-cache-dtype float16", "--mamba-ssm", "--mamba-backend flashinfer --mamba-ssm"),
    Row("R-SR-ARCH", gpu("h200", 8), f"{ULTRA} --mamba-cache-philox-rounds 5", " --mamba-cache-philox-rounds 5", ""),
    Row("R-PC-MODE", V22, f"{NANO} --enable-prefix-caching", "caching", "caching --mamba-cache-mode align"),
    Row("R-PC-MODE", V22, f"{NANO} --enable-prefix-caching --mamba-cache-mode all", " all", " align"),
    Row("R-PC-MODE", Context(engine_version="0.28.0"), f"{SUPER} --enable-prefix-caching{MTP}", MTP, ""),
    Row("R-ALIGN", V22, f"{SUPER} --kv-cache-dtype fp8 --enable-prefix-caching --mamba-cache-mode "
    "align --max-num-batched-tokens 8192", "8192", "16384"),
    Row("R-CHUNK", V22, f"{NANO} --no-enable-chunked-prefill", "--no-enable", "--enable"),
    Row("R-CHUNK", V22, f"{NANO} --no-enable-chunked-prefill", "prefill", "prefill --max-model-len 8192"),
    Row("R-LONG", V22, f"{ULTRA} --max-model-len 1M", "vllm serve", "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve"),
    Row("R-LONG", V22, f"VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 {ULTRA} "
    "--max-model-len 262144", "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 ", ""),
    Row("R-ROPE", V22, f"""{ULTRA} --hf-overrides '{{"rope_scaling": {{}}}}'""", "rope_scaling", "max_position_embeddings"),
    Row("R-PARSER", V22, f"{ULTRA} --tool-call-parser qwen3_coder", "qwen3_coder", "qwen3_coder --enable-auto-tool-choice"),
    Row("R-PARSER", V22, f"{ULTRA} --reasoning-parser ultra_v3", "ultra_v3", "ultra_v3 --reasoning-parser-plugin p.py"),
    Row("R-PARSER", S13, f"{SGL} --reasoning-parser nemotron_v3", "nemotron_v3", "nemotron_3"),
    Row("R-PARSER", T14, f"{TRT} --reasoning_parser nano_v3", "nano_v3", "nano-v3"),
    Row("R-REASONCFG", V22, f"{ULTRA} --reasoning-parser nemotron_v3 "
    f"--reasoning-config '{{}}'", " --reasoning-config '{}'", ""),
    Row("R-SPEC", V22, f"{ULTRA} -pp 2{MTP}", " -pp 2", ""),
    Row("R-SPEC", V22, f"{NANO}{MTP}", MTP, ""),
    Row("R-SPEC", V27, f"""{LIGHT} --speculative-config '{{"method": "dspark", "num_speculative_tokens": 3}}'""", '"dspark"', '"mtp"'),
    Row("R-SPEC", S13, f"{SGL} --speculative-algorithm EAGLE", "EAGLE", "EAGLE --mamba-scheduler-strategy "
    "extra_buffer"),
    Row("R-PC-MODE", S15, f"{SGL} --mamba-radix-cache-strategy no_buffer", "no_buffer", "no_buffer --disable-overlap-schedule"),
    Row("R-PC-MODE", S23, f"{SGL} --mamba-radix-cache-strategy no_buffer", "no_buffer", "extra_buffer"),
    Row("R-PC-MODE", S23, f"{SGL} --mamba-radix-cache-strategy no_buffer --disable-overlap-schedule --page-size 64", " --page-size 64", ""),
    Row("R-SPEC", S23, f"{SGL} --speculative-algorithm EAGLE --speculative-num-steps "
    "5 --speculative-num-draft-tokens 5", "tokens 5", "tokens 6"),
    Row("R-SPEC", T14, "speculative_config:\n  max_draft_len: 3\n  "
    "num_nextn_predict_layers: 3\n", "  num_nextn_predict_layers: 3\n", ""),
    Row("R-EP", S15, f"{SGL} --ep-size 4", "--ep-size 4", "--ep-size 8"),
    Row("R-EP", V22, f"{ULTRA} --enable-expert-parallel", " --enable-expert-parallel", ""),
    Row("R-PP-NIXL", V33, f"""{ULTRA} -pp 2 --kv-transfer-config '{{"kv_connector": "NixlConnector", "kv_role": "kv_both"}}'""", " -pp 2", ""),
    Row("R-HYBRID-KV", Context(engine_version="0.20.1"), f"""{ULTRA} --kv-transfer-config '{{"kv_connector": "NixlConnector", "kv_role": "kv_both"}}'""", " --kv", " --no-disable-hybrid-kv-cache-manager --kv"),
    Row("R-NODES", V22, f"{ULTRA} --nnodes 2 --node-rank 0", "rank 0", "rank 0 --master-addr 10.0.0.1"),
    Row("R-RAY", V22, f"{ULTRA} -pp 2 --distributed-executor-backend ray "
    "--distributed-timeout-seconds 7200", "vllm serve", "VLLM_ENGINE_READY_TIMEOUT_S=7200 "
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=7200 vllm serve"),
    Row("R-NVL", V22, f"""{ULTRA} -pp 2 --compilation-config '{{"pass_config": {{"fuse_allreduce_rms": true}}}}'""", "true", "false"),
    Row("R-MOE-BACKEND", gpu("b200", 1, "0.26.0"), "vllm serve "
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "NVFP4", "NVFP4 --moe-backend flashinfer_cutlass"),
    Row("R-MOE-BACKEND", gpu("h100", 8), f"{ULTRA} --moe-backend flashinfer_trtllm", "flashinfer_trtllm", "marlin"),
    Row("R-QUANT", V22, f"{ULTRA} --quantization awq", "awq", "modelopt_fp4"),
    Row("R-QUANT", V22, f"{ULTRA} --kv-cache-dtype nvfp4", "nvfp4", "fp8"),
    Row("R-SUPPORT", gpu("b200", 2), "vllm serve nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4 "
    "-tp 2 --gpu-memory-utilization 0.95", "-tp 2", "-tp 4"),
    Row("R-SGL-BLACKWELL", gpu("b200", 8, "0.5.15"), SGL, "--tp-size 8", "--tp-size 8 --attention-backend trtllm_mha"),
    Row("R-SGL-BLACKWELL", gpu("h200", 8, "0.5.13"), f"{SGL} --attention-backend trtllm_mha", "trtllm_mha", "fa3"),
    Row("R-GB10", gpu("gb10", 1, "0.27.1"), f"{LIGHT} --gpu-memory-utilization 0.91", "0.91", "0.8"),
    Row("R-EAGER", V22, f"{NANO} --enforce-eager", " --enforce-eager", ""),
    Row("R-STATS", V22, f"{NANO} --disable-log-stats", " --disable-log-stats", ""),
    Row("R-RANGE", V22, f"{NANO} --gpu-memory-utilization 0.3", "0.3", "0.9"),
    Row("R-TRT", T14, "cat > o.yaml <<X\nkv_cache_config:\n  enable_block_reuse: "
    f"true\nX\n{TRT} --config o.yaml", "true", "false"),
    Row("R-TRT", gpu("h100", 4, "1.4.0rc1"), "cat > o.yaml <<X\nmoe_config:\n  backend: "
    f"TRTLLM\nX\n{TRT} --config o.yaml", "TRTLLM", "CUTLASS"),
    Row("F-YAML", T14, "kv_cache_config:\n  free_gpu_mem_fraction: 0.8\n", "gpu_mem_", "gpu_memory_"),
    Row("F-YAML", T14, "max_batch_size: many\n", "many", "8"),
    Row("R-REMOVED", T14, "trtllm-build --checkpoint_dir c", "trtllm-build --checkpoint_dir c", TRT),
    Row("R-PIN", V22, f"{DOCKER} vllm/vllm-openai:latest m --revision abc", "latest", "v0.22.0@sha256:0"),
    Row("R-TRUST", V22, f"{NANO} --trust-remote-code", " --trust-remote-code", ""),
    Row("R-IMAGE", V22, f"{DOCKER} nvcr.io/nvidia/tensorrt-llm:1.2.0 bash", "llm:1", "llm/release:1"),
    Row("R-NIM", Context(), f"{NIM}nemotron-3-nano:2.0.9", "-v /c", "-e NIM_ENABLE_KV_CACHE_REUSE=1 -v /c"),
    Row("R-NIM", Context(), f"{NIM}nemotron-3-nano:2.0.9 --dtype int8".replace("-v", "-e NIM_ENABLE_KV_CACHE_REUSE=1 -v"), " --dtype int8", ""),
    Row("R-CONTAINER", V22, f"{DOCKER} --shm-size=16g vllm/vllm-openai:v0.22.0 m", " --shm-size=16g", ""),
    Row("R-CONTAINER", V22, POD.replace("64Gi", "8Gi"), "8Gi", "64Gi"),
    Row("M-READY", V22, POD.replace("120", "2"), "failureThreshold: 2", "failureThreshold: 120"),
    Row("R-EXPOSE", V22, f"{DOCKER} -p 8000:8000 vllm/vllm-openai:v0.22.0 m", "-p 8000", "-p 127.0.0.1:8000"),
    Row("R-EXPOSE", V22, f"{NANO} --host 0.0.0.0", "vllm serve", "VLLM_API_KEY=$KEY vllm serve"),
    Row("R-MINVER", Context(), f"{DOCKER} vllm/vllm-openai:v0.17.1 "
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4 -tp 8", "0.17.1", "0.22.0"),
    Row("R-MODEL", V22, "vllm serve nvidia/NVIDIA-Nemotron-3-Ultra-32B", "32B", "550B-A55B-NVFP4"),
    Row("R-ENTRY", V22, "python3 -m vllm.entrypoints.api_server "
    "--model m", "entrypoints.api", "entrypoints.openai.api"),
    Row("R-ENTRY", S23, "sglang run --model-path m", "run", "serve"),
    Row("R-ENTRYPOINT", Context(), f"{DOCKER} vllm/vllm-openai:v0.22.0 vllm serve m", "vllm serve m", "m"),
    Row("R-VERSION", Context(), NANO, "vllm serve", "pip install vllm==0.22.0; vllm serve"),
    Row("R-NAME", V22, f"""{NANO} --served-model-name a\ncurl u -d '{{"model": "b"}}'""", '"b"', '"a"'),
    Row("R-CLIENT", Context(), """curl u -d '{"model": "m", "messages": [], "reasoning_budget": 5}'""", ', "reasoning_budget": 5', ""),
    Row("R-HOST", Context(), "nvidia-smi -i 0 -r", " -r", " -q"),
    Row("R-HOST", Context(), "systemctl restart nvidia-container-runtime", "nvidia-container-runtime", "docker"),
    Row("R-DRIVER", Context(), "apt install nvidia-driver-550", "550", "580"),
    Row("R-DRIVER", Context(), "sh cuda_12.4.1_535.104.05_linux.run", "535.104.05", "550.54.15"),
    Row("M-DRIFT", Context(), "pip install vllm==0.22.0", "0.22.0", "0.22.0 fastapi==0.136.3"),
    Row("M-CUBIN", V22, f"pip install vllm==0.22.0 fastapi==0.136.3\n{NANO}", "fastapi", "flashinfer-cubin fastapi"),
    Row("R-PATCHED", Context(), "sed -i s/a/b/ "
    "/x/vllm/entrypoints/api_server.py", "/x/vllm/entrypoints/api_server.py", "notes.txt"),
    Row("R-LOADTEST", Context(), "locust --headless -u 100", "-u 100", "--class-picker"),
    Row("R-METRIC", Context(), "nvidia-smi dmon | awk '{print}'", "dmon | awk '{print}'", "-q"),
    Row("R-PROFILE", Context(), "engine: vllm\nengine_version: 0.22.0\nmodel: nano-bf16\nargz: {}\n", "argz", "args"),
    Row("F-UNKNOWN", V22, "vllm serve m --max-modle-len 1", "modle", "model"),
    Row("F-NEVER", V22, "vllm serve m --awq-ckpt-path /x", "--awq-ckpt-path /x", "--quantization awq"),
    Row("F-PREFIX", V22, "vllm serve m --max-num-seq 1", "seq 1", "seqs 1"),
    Row("F-PREFIX-WRONG", S23, "python3 -m sglang.launch_server --model "
    "m --enable-flashinfer", "--enable-flashinfer", "--attention-backend flashinfer"),
    Row("F-AMBIGUOUS", S23, "python3 -m sglang.launch_server --model m "
    "--cuda-graph-max-bs 8", "max-bs", "max-bs-decode"),
    Row("F-UNDERSCORE", S23, "python3 -m sglang.launch_server --model m --tp_size 8", "tp_size", "tp-size"),
    Row("F-CHOICE", V22, "vllm serve m --dtype fp16", "fp16", "float16"),
    Row("F-REGISTRY", V22, "vllm serve m --quantization fp4", "fp4", "modelopt_fp4"),
    Row("F-BOOLVALUE", V22, "vllm serve m --enable-prefix-caching true", " true", ""),
    Row("F-INT", V22, "vllm serve m --max-model-len 1m", "1m", "1048576"),
    Row("F-INT", V22, "vllm serve m --max-num-seqs 1k", "1k", "1000"),
    Row("F-TYPE", V22, "vllm serve m --gpu-memory-utilization 0,9", "0,9", "0.9"),
    Row("F-NARGS", V22, "vllm serve m --port", "--port", "--port 1"),
    Row("F-NARGS", V22, "vllm serve --served-model-name a", "serve", "serve m"),
    Row("F-EXTRA", V22, "vllm serve m extra", " extra", ""),
    Row("F-DUP", V22, "vllm serve m --port 1 --port 2", " --port 2", ""),
    Row("F-JSON", V22, """vllm serve m --compilation-config '{"nope": 1}'""", '"nope": 1', '"cudagraph_mode": "FULL"'),
    Row("F-REQUIRED", S23, "python3 -m sglang.launch_server --port 1", "--port 1", "--model m"),
    Row("R-DEPRECATED", V22, "vllm serve m --swap-space 0", " --swap-space 0", ""),
    Row("E-UNKNOWN", V33, "VLLM_USE_V1=1 vllm serve m", "VLLM_USE_V1=1 ", ""),
    Row("E-DEFAULT", V22, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 vllm serve m", "=1", "=0"),
    Row("E-OTHER", V22, "TLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve m", "TLLM", "VLLM"),
    Row("E-VALUE", V22, "VLLM_WORKER_MULTIPROC_METHOD=thread vllm serve m", "thread", "spawn"),
    Row("E-INERT", V22, "SAFETENSORS_FAST_GPU=1 vllm serve m", "SAFETENSORS_FAST_GPU=1 ", ""),
]  # fmt: skip


def codes(text: str, context: Context) -> set[str]:
    """Codes that say something is wrong, disputed, or cannot be checked."""
    return {f.code for f in lint_text(text, context) if f.severity is not Severity.INFO or f.code in QUIET_NOTES}


# Notes are kept for rules that say nothing graver.
QUIET_NOTES = {"E-DEFAULT", "E-INERT"}


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r.code} {r.old}".strip()[:60])
def test_rule_fires_and_is_quiet_once_mended(row: Row) -> None:
    assert row.old in row.text
    assert row.code in codes(row.text, row.context)
    assert row.code not in codes(row.text.replace(row.old, row.new), row.context)


def test_every_registered_rule_is_in_the_table() -> None:
    """A rule without a row here is not known to be able to be quiet."""
    from nemolab.lint import rules
    from nemolab.lint.registry import RULES

    assert rules
    families = {"F", "E"}  # spelling and variables report under many codes, each with rows above
    missing = {rule.code for rule in RULES} - {row.code for row in ROWS} - families
    assert not missing
