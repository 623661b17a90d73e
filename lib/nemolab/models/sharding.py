"""Weights of the fullest GPU: how engines split each tensor class over ranks.

Read in vLLM (model_executor/models/nemotron_h.py, nemotron_h_mtp.py): router and latent projections are replicated,
the router in float32; KV heads are replicated beyond their number; Mamba groups are padded to the ranks; experts are
split by width over the tensor *and data parallel* ranks, or whole over the expert parallel ones. SGLang shards alike.
Nano's 58.82 GiB of BF16 tensors loaded as 58.92 GiB [measured, vLLM 0.22.0 on H200].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nemolab.models.architecture import ATTENTION, MAMBA, MLP, MOE, Architecture
from nemolab.models.layout import FORMATS, Layout
from nemolab.models.parameters import TensorClass, expert
from nemolab.models.vllm_cache import cdiv, stages


@dataclass(frozen=True, slots=True)
class Parallel:
    """Parallelism, spelled as vLLM spells it."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size


ONE_GPU = Parallel()


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Bytes on the fullest GPU."""

    total: int
    mtp: int  # part of the total
    by_class: dict[TensorClass, int]
    stage: int  # pipeline stage that it is on


def rank_weights(arch: Architecture, layout: Layout, parallel: Parallel, *, mtp: bool) -> RankWeights:
    """Weights of the fullest GPU; MTP weights count when speculation uses them (on the last stage)."""
    pp = parallel.pipeline_parallel_size
    found, start = [], 0
    for stage, count in enumerate(stages(len(arch.layers), pp)):
        first, last = stage == 0, stage == pp - 1
        kinds = arch.layers[start : start + count]
        start += count
        elements = _stage_elements(arch, kinds, parallel, first=first, last=last)
        by_class = {name: _bytes(layout, name, n) for name, n in elements.items()}
        extra = _mtp_bytes(arch, layout, parallel) if mtp and last and arch.has_mtp else 0
        found.append(RankWeights(sum(by_class.values()) + extra, extra, by_class, stage))
    return max(found, key=lambda rank: rank.total)


def _stage_elements(
    arch: Architecture, kinds: str, parallel: Parallel, *, first: bool, last: bool
) -> dict[TensorClass, int]:
    found: dict[TensorClass, int] = {}
    for kind in (MAMBA, ATTENTION, MOE, MLP):
        _add(found, _layer_elements(arch, kind, parallel), kinds.count(kind))
    table = cdiv(arch.vocab_size, 64 * parallel.tensor_parallel_size) * 64 * arch.hidden_size
    ends: dict[TensorClass, int] = {}
    if first or (last and arch.tie_word_embeddings):
        ends[TensorClass.EMBEDDING] = table
    if last:
        ends |= {TensorClass.NORM: arch.hidden_size}
        if not arch.tie_word_embeddings:
            ends[TensorClass.LM_HEAD] = table
    _add(found, ends, 1)
    return {name: n for name, n in found.items() if n}


def _layer_elements(arch: Architecture, kind: str, parallel: Parallel) -> dict[TensorClass, int]:
    """Elements of one layer on one rank."""
    d, tp = arch.hidden_size, parallel.tensor_parallel_size
    found = {TensorClass.NORM: d}
    if kind == MAMBA:
        groups = arch.n_groups if arch.n_groups % tp == 0 else tp
        inner, heads = arch.mamba_intermediate // tp, arch.mamba_num_heads // tp
        conv = inner + 2 * (groups // tp) * arch.ssm_state_size
        found[TensorClass.MAMBA_PROJ] = d * (inner + conv + heads) + inner * d
        found[TensorClass.MAMBA_OTHER] = conv * (arch.conv_kernel + 1) + 3 * heads + inner
    elif kind == ATTENTION:
        queries, keys = arch.num_attention_heads // tp, max(1, arch.num_key_value_heads // tp)
        found[TensorClass.ATTENTION_PROJ] = 2 * d * arch.head_dim * (queries + keys)
    elif kind == MLP:
        found[TensorClass.MLP] = 2 * d * cdiv(arch.intermediate_size, tp)
    elif kind == MOE:
        found[TensorClass.ROUTER] = arch.n_routed_experts * d
        found[TensorClass.ROUTER_BIAS] = arch.n_routed_experts
        found[TensorClass.LATENT_PROJ] = 2 * d * (arch.moe_latent_size or 0)
        found[TensorClass.SHARED_EXPERTS] = (
            2 * d * cdiv(arch.moe_shared_expert_intermediate_size * arch.n_shared_experts, tp)
        )
        found[TensorClass.ROUTED_EXPERTS] = _expert_elements(arch, parallel)
    return found


def _expert_elements(arch: Architecture, parallel: Parallel) -> int:
    ranks = parallel.tensor_parallel_size * parallel.data_parallel_size
    if parallel.enable_expert_parallel:
        return cdiv(arch.n_routed_experts, ranks) * expert(arch)
    return arch.n_routed_experts * 2 * arch.expert_hidden * cdiv(arch.moe_intermediate_size, ranks)


def _mtp_bytes(arch: Architecture, layout: Layout, parallel: Parallel) -> int:
    d, found = arch.hidden_size, dict[TensorClass, int]()
    for kind in arch.mtp_layers:
        _add(found, _layer_elements(arch, kind, parallel), arch.num_nextn_predict_layers)
    fusion = 2 * d * cdiv(d, parallel.tensor_parallel_size)
    _add(found, {TensorClass.MTP_FUSION: fusion, TensorClass.NORM: 3 * d}, arch.num_nextn_predict_layers)
    return sum(_bytes(layout, name, n, mtp=True) for name, n in found.items())


def _bytes(layout: Layout, name: TensorClass, elements: int, *, mtp: bool = False) -> int:
    """Bytes in memory: engines keep the router in float32 whatever the checkpoint has."""
    kept = "fp32" if name is TensorClass.ROUTER else layout.format_of(name, mtp=mtp)
    return cdiv(elements * FORMATS[kept], 16)


def _add(into: dict[TensorClass, int], what: dict[TensorClass, int], times: int) -> None:
    for name, number in what.items():
        into[name] = into.get(name, 0) + number * times


def misaligned(arch: Architecture, parallel: Parallel, multiples: Iterable[int] = (16, 64)) -> tuple[int, ...]:
    """Which of `multiples` the expert width per rank is no multiple of: NVFP4 scales need 16, Marlin kernels 64."""
    if parallel.enable_expert_parallel or not arch.moe_intermediate_size:
        return ()
    ranks = parallel.tensor_parallel_size * parallel.data_parallel_size
    return tuple(m for m in multiples if arch.moe_intermediate_size % ranks or arch.moe_intermediate_size // ranks % m)
