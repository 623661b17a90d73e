"""Memory that is neither weights nor cache: activations, CUDA graphs, communication. Estimates, and marked so.

Calibrated on runs of vLLM 0.22.0 on one H200 (2026-11-30), the budget minus weights, cache and graphs: Nano at 16,384
batched tokens 2.38 GiB, the miniature at 16,384 0.58 GiB, nine layers of Ultra at 32,768 21.80 GiB; the estimates are
2.46, 0.58 and 21.3. Graphs: 0.19 and 0.43 GiB (Nano, 32 and 128 sequences), 0.15 (Ultra, 64), 0.08 (the miniature, 16).
NCCL's buffers: ai-dynamo/aiconfigurator, systems/b300_sxm.yaml, 2026-08.
"""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.core.sizes import GIB
from nemolab.models.architecture import Architecture
from nemolab.models.vllm_cache import cdiv

_FIXED = round(0.42 * GIB)  # CUDA context, libraries' workspaces
_FACTOR = 1.25  # what allocator and transient copies add to projections and residuals
_GRAPHS, _GRAPHS_PER_LAYER = round(0.08 * GIB), round(0.000192 * GIB)  # the second for each captured size
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
    max_num_seqs: int,
    enforce_eager: bool = False,
) -> Overhead:
    """Overhead of one GPU.

    Args:
        tensor_parallel_size: that layers are split over.
        ranks: GPUs that talk to each other.
        max_num_batched_tokens: largest step, which the profiling run uses.
        max_num_seqs: graphs are captured up to twice as many, and up to 512.
    """
    # Both workspaces of the experts: vLLM 0.22.0, fused_moe/experts/triton_moe.py, workspace_shapes.
    width = max(cdiv(arch.moe_intermediate_size, tensor_parallel_size), arch.expert_hidden)
    experts = 2 * arch.num_experts_per_tok * 2 * width
    # States at the end of every chunk, float32: vLLM 0.22.0, mamba/ops/ssd_chunk_state.py.
    states = 4 * arch.mamba_intermediate * arch.ssm_state_size // (arch.chunk_size * tensor_parallel_size)
    in_proj = (arch.mamba_intermediate + arch.conv_dim + arch.mamba_num_heads) // tensor_parallel_size
    per_token = experts + states + _FACTOR * 2 * (in_proj + 4 * arch.hidden_size)
    graphs = len(arch.layers) * _captured(max_num_seqs)
    return Overhead(
        activations=_FIXED + round(per_token * max_num_batched_tokens),
        cuda_graphs=0 if enforce_eager else _GRAPHS + graphs * _GRAPHS_PER_LAYER,
        communication=_NCCL.get(ranks, _NCCL_MORE),
    )


def _captured(max_num_seqs: int) -> int:
    """Batch sizes that a graph is captured for: 1, 2, 4, every eighth below 256, then every sixteenth, to twice the
    number of sequences or 512 (vLLM 0.22.0, config/vllm.py)."""
    most = min(2 * max_num_seqs, 512)
    return sum(size <= most for size in (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)))
