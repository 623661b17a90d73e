"""Architectures of the families, as their config.json files give them (aiconfigurator's copies, commit 095f58a5).

The copies were not compared byte for byte with Hugging Face; parameter counts that follow from them equal the
published ones (see `parameters`).
"""

from __future__ import annotations

from dataclasses import replace

from nemolab.models.architecture import Architecture

NATIVE, MILLION = 262_144, 1_048_576

ULTRA = Architecture(
    layers="MEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    hidden_size=8192,
    vocab_size=131_072,
    max_position_embeddings=NATIVE,
    num_attention_heads=64,
    num_key_value_heads=2,
    head_dim=128,
    mamba_num_heads=256,
    mamba_head_dim=64,
    ssm_state_size=128,
    n_groups=8,
    conv_kernel=4,
    chunk_size=128,
    n_routed_experts=512,
    num_experts_per_tok=22,
    moe_intermediate_size=5120,
    moe_latent_size=2048,
    n_shared_experts=1,
    moe_shared_expert_intermediate_size=10_240,
    intermediate_size=5120,
    mtp_layers="*E",
    num_nextn_predict_layers=1,
)

SUPER = replace(
    ULTRA,
    layers="MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
    hidden_size=4096,
    num_attention_heads=32,
    mamba_num_heads=128,
    moe_intermediate_size=2688,
    moe_latent_size=1024,
    moe_shared_expert_intermediate_size=5376,
    intermediate_size=2688,
)

NANO = replace(
    SUPER,
    layers="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    hidden_size=2688,
    mamba_num_heads=64,
    n_routed_experts=128,
    num_experts_per_tok=6,
    moe_intermediate_size=1856,
    moe_latent_size=None,
    moe_shared_expert_intermediate_size=3712,
    intermediate_size=1856,
    mtp_layers="",
    num_nextn_predict_layers=0,
)

LIGHTNING = replace(NANO, max_position_embeddings=MILLION, mtp_layers="*E", num_nextn_predict_layers=1)
