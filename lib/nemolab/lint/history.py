# ruff: noqa: E501  one entry a line
"""What became of flags and variables: renamed, removed, never there. Each with its source."""

from __future__ import annotations

from typing import NamedTuple

from nemolab.lint.schema import load, version_key, versions

_HISTORY = "33 vLLM releases 0.5.5 to 0.33.0 searched"
_SGLANG = "30 SGLang releases 0.3.6 to 0.5.23 searched"


class Past(NamedTuple):
    """What is known of a name that a version does not have. `never` marks a name that no release had."""

    what: str
    fix: str
    source: str
    never: bool = False


FLAGS: dict[tuple[str, str], Past] = {
    ("vllm", "--swap-space"): Past("removed: last in 0.17.1, gone by 0.18.1", "delete it: there is no CPU swap any more", _HISTORY + "; anyscale/templates#1086"),
    ("vllm", "--disable-log-requests"): Past("deprecated in 0.10.1, gone by 0.17.1", "delete it: requests are not logged unless --enable-log-requests is given", _HISTORY),
    ("vllm", "--awq-ckpt-path"): Past("in no release", "delete it: give the AWQ checkpoint as the model; the quantisation is read from it", _HISTORY, never=True),
    ("vllm", "--enable-reasoning"): Past("removed: --reasoning-parser switches reasoning on by itself", "delete it and keep --reasoning-parser", _HISTORY),
    ("vllm", "--task"): Past("replaced by --runner and --convert", "delete it for generation; --runner pooling otherwise", "vLLM 0.33.0 argparse_utils.py"),
    ("vllm", "--num-scheduler-steps"): Past("removed with the V0 engine", "delete it; --async-scheduling overlaps scheduling today", _HISTORY),
    ("vllm", "--use-v2-block-manager"): Past("removed with the V0 engine", "delete it", _HISTORY),
    ("vllm", "--guided-decoding-backend"): Past("renamed", "use --structured-outputs-config", _HISTORY),
    ("vllm", "--rope-scaling"): Past("removed; this family's attention has no positions, so no scaling applies", "delete it; for other models use --hf-overrides", _HISTORY),
    ("vllm", "--rope-theta"): Past("removed; this family's attention has no positions", "delete it", _HISTORY),
    ("vllm", "--max-seq-len-to-capture"): Past("removed with the V0 engine", "use --compilation-config with cudagraph_capture_sizes", _HISTORY),
    ("vllm", "--cuda-graph-sizes"): Past("renamed", "use --cudagraph-capture-sizes or --compilation-config", _HISTORY),
    ("vllm", "--speculative-model"): Past("replaced by one JSON flag", """use --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}'""", _HISTORY),
    ("vllm", "--num-speculative-tokens"): Past("replaced by one JSON flag", """use --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}'""", _HISTORY),
    ("vllm", "--device"): Past("removed: the platform decides", "delete it", _HISTORY),
    ("vllm", "--tp"): Past("not an alias", "use -tp or --tensor-parallel-size", "vLLM command line"),
    ("vllm", "--nccl-async-error-handling"): Past("in no release; TORCH_NCCL_ASYNC_ERROR_HANDLING is a PyTorch variable, on by default", "delete it; read NCCL_DEBUG=INFO and check interfaces and ports", _HISTORY, never=True),
    ("sglang", "--enable-flashinfer"): Past("a flag in 0.1.x only", "use --attention-backend flashinfer (trtllm_mha on Blackwell)", _SGLANG),
    ("sglang", "--disable-flashinfer"): Past("a flag from 0.1.24 to 0.4.0 only", "use --attention-backend triton", _SGLANG),
    ("sglang", "--enable-ep-moe"): Past("removed", "use --ep-size", _SGLANG),
    ("sglang", "--enable-prefill-engine"): Past("in no release", "use --disaggregation-mode prefill, a second server with decode, and a router", _SGLANG, never=True),
    ("sglang", "--prefill-engine-gpu-id"): Past("in no release", "use --disaggregation-mode prefill and --base-gpu-id", _SGLANG, never=True),
    ("sglang", "--decode-engine-gpu-id"): Past("in no release", "use --disaggregation-mode decode and --base-gpu-id", _SGLANG, never=True),
    ("sglang", "--reward-model-only"): Past("in no release", "serve a reward model with --is-embedding, or judge with the GenRM checkpoint", _SGLANG, never=True),
    ("sglang", "--reward-engine-gpu-id"): Past("in no release", "delete it: this family has no reward head to place", _SGLANG, never=True),
    ("sglang", "--mamba-scheduler-strategy"): Past("renamed in 0.5.14, old name gone at 0.5.20", "use --mamba-radix-cache-strategy", _SGLANG + "; sglang#31094"),
    ("sglang", "--mamba-radix-cache-strategy"): Past("new name of --mamba-scheduler-strategy since 0.5.14", "use --mamba-scheduler-strategy with this version", _SGLANG),
    ("sglang", "--disable-piecewise-cuda-graph"): Past("in 0.5.13, not in 0.5.23", "use --cuda-graph-backend-prefill disabled", _SGLANG),
    ("trtllm", "--served-model-name"): Past("spelled with underscores", "use --served_model_name (rc17 and later)", "trtllm-serve command line"),
}  # fmt: skip

VARIABLES: dict[str, Past] = {
    "VLLM_ATTENTION_BACKEND": Past("gone by 0.15.1", "use --attention-backend", _HISTORY),
    "VLLM_USE_V1": Past("gone: V1 is the only engine", "delete it", _HISTORY),
    "VLLM_FLASHINFER_MOE_BACKEND": Past("declared in 0.22.0, gone in 0.33.0", "use --moe-backend", _HISTORY),
    "VLLM_USE_FLASHINFER_MOE_FP4": Past("declared in 0.22.0, gone in 0.33.0", "use --moe-backend", _HISTORY),
    "VLLM_USE_FLASHINFER_MOE_FP8": Past("declared in 0.22.0, gone in 0.33.0", "use --moe-backend", _HISTORY),
    "VLLM_USE_FLASHINFER_MOE_FP16": Past("declared in 0.22.0, gone in 0.33.0", "use --moe-backend", _HISTORY),
    "VLLM_NVFP4_GEMM_BACKEND": Past("declared in 0.22.0, gone in 0.33.0", "use --linear-backend", _HISTORY),
    "SGLANG_ENABLE_SPEC_V2": Past("declared in 0.5.13 (default on), gone in 0.5.23", "delete it", _SGLANG),
    "SGLANG_DISABLE_DEEP_GEMM": Past("not declared in 0.5.13 or 0.5.23", "use SGLANG_ENABLE_JIT_DEEPGEMM=0", _SGLANG),
}

# Variables that people set for speed and nothing reads.
INERT: dict[str, tuple[str, str]] = {
    "SAFETENSORS_FAST_GPU": (
        "safetensors stopped reading it in 2023; no engine version read here uses it",
        "huggingface/accelerate#1603",
    ),
}


def seen_in(engine: str, flag: str) -> tuple[str, str] | None:
    """First and last version, of those with a schema, that has a flag; None when none has it."""
    have = [name for name in versions(engine) if flag in load(engine, name).spellings]
    return (min(have, key=version_key), max(have, key=version_key)) if have else None


def declared_in(engine: str, variable: str) -> tuple[str, str] | None:
    """First and last version, of those with a schema, that declares a variable."""
    have = [name for name in versions(engine) if variable in load(engine, name).env]
    return (min(have, key=version_key), max(have, key=version_key)) if have else None
