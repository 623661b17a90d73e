"""The plan: does it fit, what is left, how long a context and how many requests. Pure arithmetic, each value with its
formula and source; estimates are marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from nemolab.models import pools, units
from nemolab.models.explain import Value, explained
from nemolab.models.overhead import Overhead, overhead
from nemolab.models.remarks import warnings_of
from nemolab.models.request import Request
from nemolab.models.sharding import RankWeights, rank_weights
from nemolab.models.vllm_cache import CacheConfig, HybridCache, Pool, check_layout, hybrid_cache

_TIGHT = 0.05  # of the budget: estimates are no better than that
_VLLM_SEQS = 1024  # vLLM 0.22.0's max_num_seqs for its API server on GPUs of 70 GiB and more
_OTHER_SEQS = 32  # other engines capture fewer graphs; no log of theirs was compared
_FROM_AVAILABLE = ("available_kv_bytes", "pool_blocks", "kv_tokens", "concurrency", "max_context", "max_sequences")


class Fit(StrEnum):
    """Whether a launch fits."""

    YES = "fits"
    TIGHT = "tight"
    NO = "does not fit"


@dataclass(frozen=True, slots=True)
class Plan:
    """What the planner found, per GPU. Sizes in bytes.

    Attributes:
        budget: memory that the engine may fill.
        available_kv: bytes left for the cache; negative when the weights do not even fit.
        cache: geometry of vLLM's hybrid cache; None for other engines.
        pool: the cache's pool of blocks, or the pools of another engine.
        concurrency: requests of `max_model_len` at once.
        kv_tokens: as the engine's log would print it.
        request_bytes: one request of `max_model_len`.
        warnings: what to know besides.
    """

    request: Request
    budget: int
    weights: RankWeights
    overhead: Overhead
    available_kv: int
    cache: HybridCache | None
    pool: Pool | None
    concurrency: float
    kv_tokens: int
    request_bytes: int
    max_context: int
    sequences: int
    fit: Fit
    warnings: tuple[str, ...]
    values: tuple[Value, ...]

    @property
    def fits(self) -> bool:
        """Whether one request of the asked length can be served."""
        return self.fit is not Fit.NO

    @property
    def headroom(self) -> int:
        """Bytes left when one request of the asked length is served; negative when it is not."""
        return self.available_kv - self.request_bytes

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready values."""
        asked, kv, ssm, conv = self.request, *self.request.dtypes
        parallel = asked.parallel
        return {
            "model": asked.model.name,
            "gpu": asked.gpu.name,
            "gpus": asked.gpus,
            "engine": asked.engine,
            "engine_version": asked.version_text,
            "tensor_parallel_size": parallel.tensor_parallel_size,
            "pipeline_parallel_size": parallel.pipeline_parallel_size,
            "data_parallel_size": parallel.data_parallel_size,
            "enable_expert_parallel": parallel.enable_expert_parallel,
            "kv_cache_dtype": kv,
            "mamba_ssm_cache_dtype": ssm,
            "mamba_cache_dtype": conv,
            "mamba_cache_mode": asked.mamba_cache_mode,
            "max_model_len": asked.length,
            "num_speculative_tokens": asked.num_speculative_tokens,
            "gpu_memory_utilization": asked.utilisation,
            "fit": str(self.fit),
            "fits": self.fits,
            **{value.name: value.value for value in self.values},
            "warnings": list(self.warnings),
            "how": {
                value.name: {
                    "unit": value.unit,
                    "formula": value.formula,
                    "source": value.source,
                    "estimate": value.estimate,
                }
                for value in self.values
            },
        }


def plan(request: Request) -> Plan:
    """Plan a launch.

    Raises:
        UsageError: an option that makes no sense, or heads that do not divide.
    """
    asked = request.checked()
    arch, parallel = asked.model.shape, asked.parallel
    check_layout(arch, parallel.tensor_parallel_size)
    weights = rank_weights(arch, asked.model.layout, parallel, mtp=asked.mtp)
    other = overhead(
        arch,
        tensor_parallel_size=parallel.tensor_parallel_size,
        ranks=parallel.gpus,
        max_num_batched_tokens=asked.max_num_batched_tokens,
        max_num_seqs=(asked.max_running_requests or _VLLM_SEQS) if asked.engine == "vllm" else _OTHER_SEQS,
        enforce_eager=asked.enforce_eager,
    )
    budget = int(asked.total_memory * asked.utilisation)
    left = budget - max(0, weights.total - asked.cpu_offload) - other.total
    available = asked.available_kv if asked.available_kv is not None else left
    return _ENGINES[asked.engine](asked, budget, weights, other, available)


def _vllm(asked: Request, budget: int, weights: RankWeights, other: Overhead, available: int) -> Plan:
    cache = hybrid_cache(asked.model.shape, cache_config(asked))
    pool = cache.pool(max(0, available))
    length = asked.length
    concurrency, needed = pool.concurrency(length), cache.request_bytes(length)
    values = _memory(asked, budget, weights, other, available) | {
        "block_size": cache.block_size,
        "padding_percent": cache.padding_percent,
        "mamba_page_bytes": cache.mamba_page,
        "page_bytes": cache.page_size,
        "group_size": cache.group_size,
        "groups": cache.attention_groups + cache.mamba_groups,
        "padding_layers": cache.padding_layers,
        "blocks_per_request": cache.blocks(length),
        "bytes_per_request": needed,
        "pool_blocks": pool.blocks,
        "kv_tokens": pool.tokens(length, asked.version),
        "concurrency": round(concurrency, 2),
        "max_context": pool.max_context,
        "max_sequences": pool.sequences,
    }
    derived = () if asked.available_kv is not None else _FROM_AVAILABLE
    return Plan(
        request=asked,
        budget=budget,
        weights=weights,
        overhead=other,
        available_kv=available,
        cache=cache,
        pool=pool,
        concurrency=concurrency,
        kv_tokens=values["kv_tokens"],
        request_bytes=needed,
        max_context=pool.max_context,
        sequences=pool.sequences,
        fit=_fit(asked, budget, available, needed, pool.blocks >= cache.blocks(length)),
        warnings=(*warnings_of(asked, cache), *_too_many(asked, pool)),
        values=explained(asked, values, (*_estimates(asked), *derived)),
    )


def _too_many(asked: Request, pool: Pool) -> tuple[str, ...]:
    """vLLM refuses more sequences than there are Mamba blocks for."""
    wanted = asked.max_running_requests
    if wanted is None or wanted <= pool.sequences:
        return ()
    return (f"max_num_seqs {wanted} is above the {pool.sequences} sequences that the pool holds: vLLM stops at start",)


def _simple(asked: Request, budget: int, weights: RankWeights, other: Overhead, available: int) -> Plan:
    """SGLang and TensorRT-LLM: separate pools for KV and Mamba states."""
    found = pools.pools(asked, weights.total, other.total)
    values = _memory(asked, budget, weights, other, found.available) | found.values
    return Plan(
        request=asked,
        budget=budget,
        weights=weights,
        overhead=other,
        available_kv=found.available,
        cache=None,
        pool=None,
        concurrency=found.concurrency,
        kv_tokens=found.kv_tokens,
        request_bytes=found.request_bytes,
        max_context=found.kv_tokens if found.requests else 0,
        sequences=found.requests,
        fit=_fit(asked, budget, found.available, found.request_bytes, found.concurrency >= 1),
        warnings=(*found.warnings, *warnings_of(asked, None)),
        values=explained(asked, values, (*_estimates(asked), "available_kv_bytes", *found.values)),
    )


_ENGINES: dict[str, Callable[[Request, int, RankWeights, Overhead, int], Plan]] = {
    "vllm": _vllm,
    "sglang": _simple,
    "trtllm": _simple,
}


def cache_config(asked: Request) -> CacheConfig:
    """The cache's inputs, types resolved to bytes."""
    kv, ssm, conv = asked.dtypes
    return CacheConfig(
        tensor_parallel_size=asked.parallel.tensor_parallel_size,
        pipeline_parallel_size=asked.parallel.pipeline_parallel_size,
        kv_bytes=units.dtype_size(kv, "--kv-cache-dtype"),
        ssm_bytes=units.dtype_size(ssm, "--mamba-ssm-cache-dtype"),
        conv_bytes=units.dtype_size(conv, "--mamba-cache-dtype"),
        mode=asked.mamba_cache_mode,
        num_speculative_tokens=asked.num_speculative_tokens,
        mtp=asked.mtp,
        block_size=asked.block_size,
    )


def _fit(asked: Request, budget: int, available: int, needed: int, holds: bool) -> Fit:
    if not holds or available < 0:
        return Fit.NO
    tight = asked.available_kv is None and available - needed < _TIGHT * budget
    return Fit.TIGHT if tight else Fit.YES


def _memory(asked: Request, budget: int, weights: RankWeights, other: Overhead, available: int) -> dict[str, Any]:
    return {
        "gpu_memory_bytes": asked.total_memory,
        "budget_bytes": budget,
        "weights_bytes": weights.total,
        "mtp_bytes": weights.mtp,
        "activation_bytes": other.activations,
        "cuda_graph_bytes": other.cuda_graphs,
        "communication_bytes": other.communication,
        "available_kv_bytes": available,
    }


def _estimates(asked: Request) -> tuple[str, ...]:
    """Values that are estimates whatever was given."""
    guessed = ("weights_bytes", "mtp_bytes") if asked.model.layout.estimate else ()
    return (*guessed, "activation_bytes", "cuda_graph_bytes", "communication_bytes")
