"""Pools of SGLang and TensorRT-LLM, as far as their code says: estimates.

SGLang's were held against one log (0.5.13, the miniature on an H200, 2026-11-30): states and KV tokens 0.5 % below the
plan for the memory that was free when it started, 1.8 % below that for the whole GPU. TensorRT-LLM's against none.

SGLang 0.5.23, mem_cache/kv_cache_configurator.py: after the weights, memory above the static fraction is kept free;
the rest is split, ratio / (1 + ratio) for Mamba states (ratio 0.9 by default: 47 %), the remainder for KV tokens.
With the radix cache each running request needs three states, five with the extra buffer, which is the default since
0.5.14 (server_args.py and arg_groups/overrides.py of 0.5.13, 0.5.14, 0.5.17 and 0.5.23). ReqToTokenPool costs four
bytes a position and slot: 4 MiB a slot at 1M.
TensorRT-LLM (pyexecutor/mamba_cache_manager.py): states for max_batch_size sequences are allocated first; the KV pool
takes free_gpu_memory_fraction of what is free after loading, in blocks of 32 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.models import units
from nemolab.models.architecture import ATTENTION, MAMBA
from nemolab.models.request import Request
from nemolab.models.vllm_cache import cdiv

_SGLANG_RATIO = 0.9
# MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO is 3; the extra buffer adds 2 beside the overlap schedule, the lazy one 1.
_SGLANG_STATES = {"off": 1, "no_buffer": 3, "extra_buffer_lazy": 4, "extra_buffer": 5}
_SGLANG_AUTO = (0, 5, 14)  # from there on `auto` is `extra_buffer`, `no_buffer` before
_SGLANG_SLOTS = 2048
_TRT_BLOCK, _TRT_BATCH = 32, 256  # tokens_per_block; max_batch_size of NVIDIA's Ultra guide
_TRT_CRASH = 262_144


@dataclass(frozen=True, slots=True)
class Pools:
    """KV and Mamba pools of one GPU. `requests`: sequences that have states."""

    available: int
    kv_tokens: int
    requests: int
    request_bytes: int
    concurrency: float
    values: dict[str, int | float]
    warnings: tuple[str, ...] = ()


def token_bytes(asked: Request) -> int:
    """KV bytes of one token on the fullest stage, per rank."""
    arch, kv = asked.model.shape, units.dtype_size(asked.dtypes[0], "--kv-cache-dtype")
    heads = max(1, arch.num_key_value_heads // asked.parallel.tensor_parallel_size)
    layers = cdiv(arch.count(ATTENTION), asked.parallel.pipeline_parallel_size) + (1 if asked.mtp else 0)
    return layers * 2 * heads * arch.head_dim * kv


def state_bytes(asked: Request) -> int:
    """Mamba state of one sequence on the fullest stage, per rank."""
    arch, tp = asked.model.shape, asked.parallel.tensor_parallel_size
    _, ssm, conv = asked.dtypes
    groups = arch.n_groups if arch.n_groups % tp == 0 else tp
    width = (arch.mamba_intermediate + 2 * groups * arch.ssm_state_size) // tp
    one = width * (arch.conv_kernel - 1) * units.dtype_size(conv, "--mamba-cache-dtype")
    one += arch.mamba_intermediate // tp * arch.ssm_state_size * units.dtype_size(ssm, "--mamba-ssm-cache-dtype")
    return one * cdiv(arch.count(MAMBA), asked.parallel.pipeline_parallel_size)


def states_per_request(asked: Request) -> int:
    """States that SGLang keeps for a running request."""
    strategy = asked.mamba_radix_cache_strategy
    if strategy == "auto":
        strategy = "extra_buffer" if asked.version >= _SGLANG_AUTO else "no_buffer"
    return _SGLANG_STATES[strategy]


def pools(asked: Request, weights: int, other: int) -> Pools:
    """The pools of the engine that is asked about; `other` is the overhead besides weights."""
    return _sglang(asked, weights) if asked.engine == "sglang" else _trt(asked, weights, other)


def _sglang(asked: Request, weights: int) -> Pools:
    # The static fraction covers weights and pools; activations and graphs live outside it, so they are not subtracted.
    rest = asked.available_kv
    if rest is None:
        rest = int(asked.total_memory * asked.utilisation) - weights
    state, token = state_bytes(asked), token_bytes(asked)
    limit, drafts, each = asked.max_running_requests, asked.num_speculative_tokens, states_per_request(asked)
    budget = max(0, rest) * _SGLANG_RATIO / (1 + _SGLANG_RATIO)
    states = int(budget // (state * (1 + drafts / each)))
    if asked.mamba_radix_cache_strategy == "off" and limit:
        states = limit  # no ratio then: what the running requests need
    running = min(limit or _SGLANG_SLOTS, states // each)
    tokens = max(0, rest - states * state - running * state * drafts) // token
    needed = asked.length * token + each * state
    concurrency = min(tokens / asked.length, float(running)) if rest > 0 else 0.0
    slots = 4 * asked.length * (limit or _SGLANG_SLOTS)
    values = {
        "kv_bytes_per_token": token,
        "mamba_state_bytes": state,
        "mamba_states": states,
        "states_per_request": each,
        "kv_tokens": tokens,
        "bytes_per_request": needed,
        "concurrency": round(concurrency, 2),
        "max_context": tokens if running else 0,
        "max_sequences": running,
        "req_to_token_bytes": slots,
    }
    warnings = ["SGLang takes prompts shorter than the context only: input + reserved must stay below it"]
    if not limit:
        warnings.append(
            f"without --max-running-requests the request slots take {units.gib(slots)} GiB at this context, "
            "outside the static fraction"
        )
    return Pools(rest, tokens, running, needed, concurrency, values, tuple(warnings))


def _trt(asked: Request, weights: int, other: int) -> Pools:
    batch = asked.max_running_requests or _TRT_BATCH
    state, token = state_bytes(asked), token_bytes(asked)
    rest = asked.available_kv
    if rest is None:
        rest = int((asked.total_memory - weights - other - batch * state) * asked.utilisation)
    tokens = max(0, rest) // (token * _TRT_BLOCK) * _TRT_BLOCK
    needed = cdiv(asked.length, _TRT_BLOCK) * _TRT_BLOCK * token
    concurrency = min(tokens / asked.length, float(batch)) if rest > 0 else 0.0
    requests = batch if rest > 0 else 0
    values = {
        "kv_bytes_per_token": token,
        "mamba_state_bytes": state,
        "mamba_states": batch,
        "kv_tokens": tokens,
        "bytes_per_request": needed,
        "concurrency": round(concurrency, 2),
        "max_context": tokens,
        "max_sequences": requests,
    }
    warnings: tuple[str, ...] = ()
    if asked.length > _TRT_CRASH:
        warnings = ("set kv_cache_config.avg_seq_len: unset, a 1M maximum crashed near 256K (TensorRT-LLM#17926)",)
    return Pools(rest, tokens, requests, needed, concurrency, values, warnings)
