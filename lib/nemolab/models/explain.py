"""How each value of a plan comes about: unit, formula and source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nemolab.models.evidence import VLLM
from nemolab.models.request import Request

_CALIBRATED = "calibrated on two vLLM 0.22.0 runs on H200"
_BLOCKS = f"{VLLM}, platforms/interface.py"
_SPEC = f"{VLLM}, v1/kv_cache_interface.py"
_UTILS = f"{VLLM}, v1/core/kv_cache_utils.py"
_MAMBA = f"{VLLM}, layers/mamba/mamba_utils.py"
_SGL = "SGLang 0.5.23, mem_cache/kv_cache_configurator.py"
_TRT = "TensorRT-LLM 1.3, pyexecutor/mamba_cache_manager.py"
_BLOCK = {
    "none": "smallest multiple of the base block whose page holds a Mamba page",
    "all": "smallest multiple of lcm(chunk, base block) whose page holds a Mamba page",
}
_MAMBA_BLOCKS = {"none": "1 + s", "align": "2 + s", "all": "ceil(L / block) + s"}


@dataclass(frozen=True, slots=True)
class Value:
    """One line of a plan."""

    name: str
    value: Any
    unit: str
    formula: str
    source: str
    estimate: bool = False


_COMMON: dict[str, tuple[str, str, str]] = {
    "gpu_memory_bytes": ("bytes", "as CUDA reports it to the engine", ""),
    "budget_bytes": ("bytes", "memory x utilisation", f"{VLLM}, v1/worker/utils.py"),
    "weights_bytes": ("bytes", "tensors of the fullest GPU, each class as it is sharded", "vLLM, models/nemotron_h.py"),
    "mtp_bytes": ("bytes", "MTP layers, part of the weights", "vLLM, models/nemotron_h_mtp.py"),
    "activation_bytes": ("bytes", "fixed part + bytes per batched token", _CALIBRATED),
    "cuda_graph_bytes": ("bytes", "0.06 GiB + 2.5 MiB a layer", _CALIBRATED),
    "communication_bytes": ("bytes", "NCCL buffers by number of ranks", "ai-dynamo/aiconfigurator, b300_sxm.yaml"),
    "available_kv_bytes": ("bytes", "budget - weights - activations - graphs - communication", "from the above"),
}
_VLLM: dict[str, tuple[str, str, str]] = {
    "block_size": ("tokens", "", _BLOCKS),
    "padding_percent": ("%", "100 (page - Mamba page) / Mamba page", _BLOCKS),
    "mamba_page_bytes": ("bytes", "conv state + SSM state of one layer, per rank", _MAMBA),
    "page_bytes": ("bytes", "block x 2 x KV heads per rank x head_dim x KV bytes", _SPEC),
    "group_size": ("layers", "min(attention, Mamba layers), or max if below 1.5 x min", _UTILS),
    "groups": ("", "ceil(attention / group size) + ceil(Mamba / group size)", _UTILS),
    "padding_layers": ("layers", "groups x group size - layers", _UTILS),
    "blocks_per_request": ("blocks", "", _SPEC),
    "bytes_per_request": ("bytes", "blocks x group size x page", _UTILS),
    "pool_blocks": ("blocks", "floor(available / page / group size)", _UTILS),
    "kv_tokens": ("tokens", "", _UTILS),
    "concurrency": ("requests", "pool blocks / blocks of a request", _UTILS),
    "max_context": ("tokens", "longest single request that the pool holds", "from the above"),
    "max_sequences": ("requests", "pool blocks / blocks of the shortest request", "from the above"),
}
_POOLS: dict[str, tuple[str, str, str]] = {
    "kv_bytes_per_token": ("bytes", "attention layers x 2 x KV heads per rank x head_dim x KV bytes", ""),
    "mamba_state_bytes": ("bytes", "Mamba layers x (conv + SSM state), per rank", ""),
}
_SGLANG = _POOLS | {
    "mamba_states": ("states", "ratio / (1 + ratio) of the pool / state; ratio 0.9", _SGL),
    "kv_tokens": ("tokens", "rest of the pool / bytes of a token", _SGL),
    "states_per_request": ("states", "no radix cache 1, no_buffer 3, extra_buffer_lazy 4, extra_buffer 5", _SGL),
    "bytes_per_request": ("bytes", "L x bytes of a token + states of a request", _SGL),
    "concurrency": ("requests", "min(KV tokens / L, states / states of a request)", _SGL),
    "max_context": ("tokens", "KV tokens", _SGL),
    "max_sequences": ("requests", "states / states of a request, at most max_running_requests (2048)", _SGL),
    "req_to_token_bytes": ("bytes", "4 bytes x context x slots, outside the static fraction", _SGL),
}
_TRTLLM = _POOLS | {
    "mamba_states": ("states", "max_batch_size, allocated before the KV pool", _TRT),
    "kv_tokens": ("tokens", "free after loading x free_gpu_memory_fraction / bytes of a token", _TRT),
    "bytes_per_request": ("bytes", "L in blocks of 32 x bytes of a token; states are apart", _TRT),
    "concurrency": ("requests", "min(KV tokens / L, max_batch_size)", _TRT),
    "max_context": ("tokens", "KV tokens", _TRT),
    "max_sequences": ("requests", "max_batch_size", _TRT),
}
_TABLES = {
    "vllm": (_COMMON | _VLLM, _UTILS),
    "sglang": (_COMMON | _SGLANG, _SGL),
    "trtllm": (_COMMON | _TRTLLM, _TRT),
}


def explained(asked: Request, values: Mapping[str, Any], estimates: Iterable[str]) -> tuple[Value, ...]:
    """`values` with unit, formula and source; those named in `estimates` marked so."""
    table, engine = _TABLES[asked.engine]
    marked = frozenset(estimates)
    found = []
    for name, value in values.items():
        unit, formula, source = table[name]
        if name == "available_kv_bytes" and asked.available_kv is not None:
            formula, source = "given, as the engine's log prints it", "given"
        found.append(
            Value(
                name,
                value,
                unit,
                formula or _formula(asked, name),
                source or _source(asked, name, engine),
                name in marked,
            )
        )
    return tuple(found)


def _formula(asked: Request, name: str) -> str:
    if name == "block_size":
        return _BLOCK.get(asked.mamba_cache_mode, _BLOCK["none"])
    if name == "blocks_per_request":
        return f"ceil(L / block) x attention groups + Mamba groups x ({_MAMBA_BLOCKS[asked.mamba_cache_mode]})"
    return "floor(concurrency x L)" if asked.version >= (0, 22) else "pool blocks // groups x block (before 0.22)"


def _source(asked: Request, name: str, engine: str) -> str:
    if name != "gpu_memory_bytes":
        return engine
    return "given" if asked.memory is not None else asked.gpu.sources[0].where
