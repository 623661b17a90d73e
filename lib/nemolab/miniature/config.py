"""The miniature's shape, without torch: config.json, the GGUF metadata and the torch module follow one dataclass."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError

MAMBA, ATTENTION, MOE = "M", "*", "E"  # the letters of `hybrid_override_pattern`

# Special tokens by id; the tokenizer puts them first, in this order.
PAD, BOS, EOS, IM_START, IM_END = range(5)


@dataclass(frozen=True, slots=True)
class MiniatureConfig:
    """Shape of a LatentMoE Nemotron-H model. Field names are those of the `nemotron_h` config.json.

    What kernels see is as in Nemotron 3 Ultra (64 x 128 Mamba heads, 128-wide attention heads, 2 KV heads, convolution
    over 4 tokens, relu squared, sigmoid router, latent projections); what only costs time is small.
    """

    vocab_size: int = 1536
    hidden_size: int = 256
    hybrid_override_pattern: str = "MEM*EM*E"
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 128
    mamba_num_heads: int = 8
    mamba_head_dim: int = 64
    ssm_state_size: int = 128
    n_groups: int = 2
    conv_kernel: int = 4
    chunk_size: int = 128
    n_routed_experts: int = 8
    num_experts_per_tok: int = 2
    moe_intermediate_size: int = 256
    moe_latent_size: int = 128
    moe_shared_expert_intermediate_size: int = 256
    routed_scaling_factor: float = 2.5
    layer_norm_epsilon: float = 1e-5
    max_position_embeddings: int = 1_048_576

    @property
    def parameters(self) -> int:
        """Number of weights, embeddings and head included."""
        return sum(math.prod(shape) for shape in self.tensor_shapes().values())

    @property
    def mamba_inner_size(self) -> int:
        """Channels of all Mamba heads."""
        return self.mamba_num_heads * self.mamba_head_dim

    @property
    def conv_size(self) -> int:
        """Channels that the Mamba convolution runs over: x, B and C."""
        return self.mamba_inner_size + 2 * self.n_groups * self.ssm_state_size

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor, by its name in the safetensors file."""
        d, vocab = self.hidden_size, self.vocab_size
        shapes: dict[str, tuple[int, ...]] = {"backbone.embeddings.weight": (vocab, d)}
        layer = {MAMBA: self._mamba_shapes, ATTENTION: self._attention_shapes, MOE: self._moe_shapes}
        for index, letter in enumerate(self.hybrid_override_pattern):
            shapes[f"backbone.layers.{index}.norm.weight"] = (d,)
            for name, shape in layer[letter]().items():
                shapes[f"backbone.layers.{index}.mixer.{name}"] = shape
        return shapes | {"backbone.norm_f.weight": (d,), "lm_head.weight": (vocab, d)}

    def _mamba_shapes(self) -> dict[str, tuple[int, ...]]:
        d, inner, conv, heads = self.hidden_size, self.mamba_inner_size, self.conv_size, self.mamba_num_heads
        return {
            "in_proj.weight": (inner + conv + heads, d),
            "conv1d.weight": (conv, 1, self.conv_kernel),
            "conv1d.bias": (conv,),
            "dt_bias": (heads,),
            "A_log": (heads,),
            "D": (heads,),
            "norm.weight": (inner,),
            "out_proj.weight": (d, inner),
        }

    def _attention_shapes(self) -> dict[str, tuple[int, ...]]:
        d, q, kv = self.hidden_size, self.num_attention_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        return {
            "q_proj.weight": (q, d),
            "k_proj.weight": (kv, d),
            "v_proj.weight": (kv, d),
            "o_proj.weight": (d, q),
        }

    def _moe_shapes(self) -> dict[str, tuple[int, ...]]:
        d, latent, width = self.hidden_size, self.moe_latent_size, self.moe_intermediate_size
        shared, experts = self.moe_shared_expert_intermediate_size, self.n_routed_experts
        shapes: dict[str, tuple[int, ...]] = {
            "gate.weight": (experts, d),
            "gate.e_score_correction_bias": (experts,),
            "fc1_latent_proj.weight": (latent, d),
            "fc2_latent_proj.weight": (d, latent),
            "shared_experts.up_proj.weight": (shared, d),
            "shared_experts.down_proj.weight": (d, shared),
        }
        for expert in range(experts):
            shapes[f"experts.{expert}.up_proj.weight"] = (width, latent)
            shapes[f"experts.{expert}.down_proj.weight"] = (latent, width)
        return shapes

    def hf(self) -> dict[str, Any]:
        """config.json of the checkpoint, as transformers, vLLM and SGLang read it. Every number is finite JSON."""
        return asdict(self) | {
            "architectures": ["NemotronHForCausalLM"],
            "model_type": "nemotron_h",
            "num_hidden_layers": len(self.hybrid_override_pattern),
            "num_nextn_predict_layers": 0,
            "mtp_hybrid_override_pattern": "*E",  # read even where there is no MTP layer
            "intermediate_size": self.moe_intermediate_size,
            "mlp_hidden_act": "relu2",
            "mlp_bias": False,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "hidden_dropout": 0.0,
            "use_bias": False,
            "use_conv_bias": True,
            "mamba_proj_bias": False,
            "mamba_hidden_act": "silu",
            "mamba_ssm_cache_dtype": "float32",
            "mamba_n_groups": self.n_groups,  # SGLang 0.5.13 builds the layers from this name, 8 where it is missing
            "expand": self.mamba_inner_size // self.hidden_size or 1,
            "time_step_min": 0.0,
            "time_step_max": 0.1,
            "time_step_floor": 1e-4,
            "time_step_limit": [0.0, 1e308],  # as Ultra spells it: `Infinity` is no JSON
            "n_shared_experts": 1,
            "n_group": 1,
            "topk_group": 1,
            "norm_topk_prob": True,
            "norm_eps": self.layer_norm_epsilon,
            "residual_in_fp32": False,
            "rescale_prenorm_residual": True,
            "sliding_window": None,
            "tie_word_embeddings": False,
            "use_cache": True,
            "bos_token_id": BOS,
            "eos_token_id": IM_END,
            "pad_token_id": PAD,
            "torch_dtype": "bfloat16",
        }


def read(folder: Path) -> MiniatureConfig:
    """The shape that `folder`/config.json gives.

    Raises:
        UsageError: no such file, or not the config of a miniature.
    """
    path = folder / "config.json"
    try:
        document = json.loads(path.read_bytes())
        return MiniatureConfig(**{field.name: document[field.name] for field in fields(MiniatureConfig)})
    except FileNotFoundError:
        raise UsageError("no checkpoint here", where=str(folder), fix="`nemolab miniature train` writes one") from None
    except (KeyError, ValueError) as error:
        raise UsageError(f"not a miniature's config.json: {error}", where=str(path)) from None
