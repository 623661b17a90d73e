"""Parameters by tensor class, counted from the architecture alone.

Checked against what is published: Lightning 32,913,266,240 (Megatron-Bridge verification card). Ultra's published
560,524,578,816 leaves out the router's correction biases (49 MoE layers x 512), which checkpoints store as buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nemolab.models.architecture import ATTENTION, MAMBA, MLP, MOE, Architecture


class TensorClass(StrEnum):
    """Tensors that checkpoints quantise, and engines shard, alike."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    NORM = "norm"  # layer norms, replicated on every rank
    MAMBA_PROJ = "mamba_proj"  # in_proj and out_proj
    MAMBA_OTHER = "mamba_other"  # convolution, A, D, dt bias, gated norm
    ATTENTION_PROJ = "attention_proj"  # q, k, v, o
    MLP = "mlp"
    ROUTER = "router"
    ROUTER_BIAS = "router_bias"
    LATENT_PROJ = "latent_proj"
    ROUTED_EXPERTS = "routed_experts"
    SHARED_EXPERTS = "shared_experts"
    MTP_FUSION = "mtp_fusion"  # eh_proj


@dataclass(frozen=True, slots=True)
class Parameters:
    """Number of parameters by class, the backbone and the MTP layers apart."""

    backbone: dict[TensorClass, int]
    mtp: dict[TensorClass, int]

    @property
    def total(self) -> int:
        """All parameters, MTP and router biases included."""
        return sum(self.backbone.values()) + sum(self.mtp.values())

    @property
    def router_biases(self) -> int:
        """Correction biases of the routers, which some sources do not count."""
        return self.backbone.get(TensorClass.ROUTER_BIAS, 0) + self.mtp.get(TensorClass.ROUTER_BIAS, 0)


def layer(arch: Architecture, kind: str) -> dict[TensorClass, int]:
    """Parameters of one layer of a kind, its norm included."""
    d = arch.hidden_size
    found = {TensorClass.NORM: d}
    if kind == MAMBA:
        inner, heads = arch.mamba_intermediate, arch.mamba_num_heads
        found[TensorClass.MAMBA_PROJ] = d * (inner + arch.conv_dim + heads) + inner * d
        found[TensorClass.MAMBA_OTHER] = arch.conv_dim * (arch.conv_kernel + 1) + 3 * heads + inner
    elif kind == ATTENTION:
        found[TensorClass.ATTENTION_PROJ] = (
            2 * d * arch.head_dim * (arch.num_attention_heads + arch.num_key_value_heads)
        )
    elif kind == MLP:
        found[TensorClass.MLP] = 2 * d * arch.intermediate_size
    elif kind == MOE:
        found[TensorClass.ROUTER] = arch.n_routed_experts * d
        found[TensorClass.ROUTER_BIAS] = arch.n_routed_experts
        found[TensorClass.ROUTED_EXPERTS] = arch.n_routed_experts * expert(arch)
        found[TensorClass.SHARED_EXPERTS] = 2 * d * arch.moe_shared_expert_intermediate_size * arch.n_shared_experts
        if arch.moe_latent_size:
            found[TensorClass.LATENT_PROJ] = 2 * d * arch.moe_latent_size
    return found


def expert(arch: Architecture) -> int:
    """Parameters of one routed expert: up and down projection, without a gate (relu squared)."""
    return 2 * arch.expert_hidden * arch.moe_intermediate_size


def parameters(arch: Architecture) -> Parameters:
    """All parameters of a checkpoint."""
    backbone: dict[TensorClass, int] = {}
    for kind in (MAMBA, ATTENTION, MOE, MLP):
        _add(backbone, layer(arch, kind), arch.count(kind))
    embedding = arch.vocab_size * arch.hidden_size
    head = {} if arch.tie_word_embeddings else {TensorClass.LM_HEAD: embedding}
    _add(backbone, {TensorClass.EMBEDDING: embedding, **head, TensorClass.NORM: arch.hidden_size}, 1)
    return Parameters({name: n for name, n in backbone.items() if n}, _mtp(arch))


def _mtp(arch: Architecture) -> dict[TensorClass, int]:
    """MTP: its layers, the fusion of embedding and hidden state, and three norms. Embedding and head are shared."""
    if not arch.has_mtp:
        return {}
    d = arch.hidden_size
    found: dict[TensorClass, int] = {}
    for kind in arch.mtp_layers:
        _add(found, layer(arch, kind), arch.num_nextn_predict_layers)
    _add(found, {TensorClass.MTP_FUSION: 2 * d * d, TensorClass.NORM: 3 * d}, arch.num_nextn_predict_layers)
    return found


def active(arch: Architecture) -> int:
    """Parameters that one token meets in the backbone: its experts only, without the input embedding and MTP."""
    total = sum(parameters(arch).backbone.values()) - arch.vocab_size * arch.hidden_size
    idle = arch.n_routed_experts - arch.num_experts_per_tok
    return total - arch.count(MOE) * idle * expert(arch)


def _add(into: dict[TensorClass, int], what: dict[TensorClass, int], times: int) -> None:
    for name, number in what.items():
        into[name] = into.get(name, 0) + number * times
