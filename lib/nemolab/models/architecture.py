"""Architecture of a Nemotron-H model: the numbers of its config.json, and what follows from them alone."""

from __future__ import annotations

from dataclasses import dataclass

MAMBA, ATTENTION, MOE, MLP = "M", "*", "E", "-"  # letters of `hybrid_override_pattern`


@dataclass(frozen=True, slots=True)
class Architecture:
    """Shape of a `nemotron_h` model. Field names are those of config.json, except `layers` and `mtp_layers`.

    Attributes:
        layers: kind of every layer in order, as the letters M (Mamba-2), * (attention), E (MoE), - (MLP).
        mtp_layers: layers of one multi-token-prediction step; "" when the checkpoint has none.
        num_nextn_predict_layers: MTP steps that have weights of their own.
        moe_latent_size: width that routed experts work in; None when they work in `hidden_size`.
        mamba_ssm_cache_dtype: type of the SSM state that the config asks for.
    """

    layers: str
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    mamba_num_heads: int
    mamba_head_dim: int
    ssm_state_size: int
    n_groups: int
    conv_kernel: int
    chunk_size: int
    n_routed_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    moe_latent_size: int | None = None
    n_shared_experts: int = 0
    moe_shared_expert_intermediate_size: int = 0
    intermediate_size: int = 0
    mtp_layers: str = ""
    num_nextn_predict_layers: int = 0
    tie_word_embeddings: bool = False
    mamba_ssm_cache_dtype: str = "float32"

    def count(self, kind: str) -> int:
        """Number of layers of a kind."""
        return self.layers.count(kind)

    @property
    def mamba_intermediate(self) -> int:
        """Channels of all Mamba heads."""
        return self.mamba_num_heads * self.mamba_head_dim

    @property
    def conv_dim(self) -> int:
        """Channels that the Mamba convolution runs over: x, B and C."""
        return self.mamba_intermediate + 2 * self.n_groups * self.ssm_state_size

    @property
    def expert_hidden(self) -> int:
        """Width that routed experts read and write."""
        return self.moe_latent_size or self.hidden_size

    @property
    def has_mtp(self) -> bool:
        """Whether the checkpoint carries MTP weights."""
        return bool(self.mtp_layers) and self.num_nextn_predict_layers > 0

    @property
    def attention_indices(self) -> tuple[int, ...]:
        """Indices of the attention layers, from 0."""
        return tuple(index for index, kind in enumerate(self.layers) if kind == ATTENTION)
