"""Memory that is neither weights nor cache: activations, CUDA graphs, communication. Estimates, and marked so.

Calibrated on two runs of vLLM 0.22.0 on one H200, the budget minus weights, cache and graphs: Nano at 16,384 batched
tokens 2.38 GiB, the miniature 0.58 GiB. NCCL's buffers: ai-dynamo/aiconfigurator, systems/b300_sxm.yaml, 2026-08.
"""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.models.architecture import Architecture
from nemolab.models.vllm_cache import cdiv

GIB = 1 << 30
_FIXED = round(0.446 * GIB)  # CUDA context, libraries' workspaces
_FACTOR = 1.311  # what allocator and transient copies add to the activations counted below
_GRAPHS, _GRAPHS_PER_LAYER = round(0.06 * GIB), round(0.0025 * GIB)
_NCCL = {1: 0, 2: 342 << 20}
_NCCL_MORE = 392 << 20


@dataclass(frozen=True, slots=True)
class Overhead:
    """Bytes per GPU, all estimates."""

    activations: int
    cuda_graphs: int
    communication: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.activations + self.cuda_graphs + self.communication


def overhead(
    arch: Architecture,
    *,
    tensor_parallel_size: int,
    ranks: int,
    max_num_batched_tokens: int,
    enforce_eager: bool = False,
) -> Overhead:
    """Overhead of one GPU.

    Args:
        tensor_parallel_size: that layers are split over.
        ranks: GPUs that talk to each other.
        max_num_batched_tokens: largest step, which the profiling run uses.
    """
    width = cdiv(arch.moe_intermediate_size, tensor_parallel_size)
    experts = 2 * arch.num_experts_per_tok * (width + arch.expert_hidden)
    in_proj = (arch.mamba_intermediate + arch.conv_dim + arch.mamba_num_heads) // tensor_parallel_size
    per_token = experts + 2 * (in_proj + 4 * arch.hidden_size)
    layers = len(arch.layers)
    return Overhead(
        activations=_FIXED + round(per_token * max_num_batched_tokens * _FACTOR),
        cuda_graphs=0 if enforce_eager else _GRAPHS + layers * _GRAPHS_PER_LAYER,
        communication=_NCCL.get(ranks, _NCCL_MORE),
    )
