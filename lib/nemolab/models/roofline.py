"""FLOPs of a prefill and bytes of a decode step, and the times they cannot beat on a kind of GPU.

A roofline says what is possible, not what an engine does. The share of the peak that is assumed is part of every
answer. One calibration: Nano's size on one H200 (vLLM 0.22.0) reached 67 % of the dense BF16 peak over a prefill of
1,048,000 tokens (91.7 s) and far less at 32,768; a decode step took 3.93 ms where the roofline says 1.35 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.models.architecture import ATTENTION, MOE
from nemolab.models.parameters import TensorClass, expert
from nemolab.models.planner import cache_config
from nemolab.models.request import Request
from nemolab.models.sharding import rank_weights
from nemolab.models.vllm_cache import hybrid_cache

MFU = 0.40  # assumed share of the dense peak during prefill
MBU = 0.60  # assumed share of the memory bandwidth during decode


@dataclass(frozen=True, slots=True)
class Prefill:
    """One prompt through all GPUs of the layout. FLOPs are of the whole model."""

    tokens: int
    linear_flops: int
    attention_flops: int
    bound_seconds: float  # at the full peak
    seconds: float  # at the assumed share
    assumption: str


@dataclass(frozen=True, slots=True)
class Decode:
    """One step of a batch. Bytes are read and written per GPU."""

    batch: int
    context: int
    weight_bytes: int
    cache_bytes: int
    bound_seconds: float
    seconds: float
    tokens_per_second: float  # of the whole batch, one token a sequence and step
    assumption: str


def linear_flops(asked: Request, tokens: int) -> int:
    """FLOPs of all matrix multiplications but attention's: two per active parameter and token."""
    return 2 * asked.model.active_parameters * tokens


def attention_flops(asked: Request, tokens: int) -> int:
    """FLOPs of causal attention: 2 L^2 x heads x head_dim per attention layer (scores and values, half the square)."""
    arch = asked.model.shape
    return 2 * tokens * tokens * arch.num_attention_heads * arch.head_dim * arch.count(ATTENTION)


def prefill(asked: Request, tokens: int | None = None, *, mfu: float = MFU) -> Prefill:
    """Time of one prompt of `tokens` (default: the whole length), alone on the layout's GPUs, no prefix reused.

    The scan of the Mamba layers and communication are not counted: both are small beside the rest.
    """
    length = tokens or asked.length
    linear, attention = linear_flops(asked, length), attention_flops(asked, length)
    layout, gpu = asked.model.layout, asked.gpu
    experts = 2 * asked.model.shape.count(MOE) * asked.model.shape.num_experts_per_tok * expert(asked.model.shape)
    routed = min(linear, experts * length)
    peak = gpu.peak(layout.format_of(TensorClass.ROUTED_EXPERTS), weight_only=layout.weight_only)
    rest = gpu.peak("bf16")
    bound = (routed / peak + (linear - routed + attention) / rest) / asked.parallel.gpus
    return Prefill(
        tokens=length,
        linear_flops=linear,
        attention_flops=attention,
        bound_seconds=bound,
        seconds=bound / mfu,
        assumption=f"{mfu:.0%} of the dense peak ({peak / 1e12:,.0f} TFLOP/s for experts, {rest / 1e12:,.0f} else)",
    )


def decode(asked: Request, batch: int, context: int | None = None, *, mbu: float = MBU) -> Decode:
    """Time of one decode step of `batch` sequences that have `context` tokens each (default: the whole length).

    Weights are read once a step, of the experts those that the batch meets on average; KV is read, states are read
    and written.
    """
    arch, length = asked.model.shape, context or asked.length
    found = rank_weights(arch, asked.model.layout, asked.parallel, mtp=False)
    used = found.total - found.by_class.get(TensorClass.EMBEDDING, 0)
    if experts := found.by_class.get(TensorClass.ROUTED_EXPERTS, 0):
        met = 1 - (1 - arch.num_experts_per_tok / arch.n_routed_experts) ** batch
        used -= round(experts * (1 - met))
    cache = hybrid_cache(arch, cache_config(asked))
    stages = asked.parallel.pipeline_parallel_size
    one = length * cache.token_bytes * cache.attention_layers + 2 * cache.mamba_page * cache.mamba_layers
    state = batch * one // stages
    bound = stages * (used + state) / asked.gpu.bandwidth
    return Decode(
        batch=batch,
        context=length,
        weight_bytes=used,
        cache_bytes=state,
        bound_seconds=bound,
        seconds=bound / mbu,
        tokens_per_second=batch * mbu / bound,
        assumption=f"{mbu:.0%} of {asked.gpu.bandwidth / 1e9:,.0f} GB/s",
    )
