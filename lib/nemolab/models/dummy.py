"""A model's real dimensions without its weights, whole or cut to its first layers: what `--load-format dummy` loads.

    cut(find("ultra-bf16"), 9)      # catalogue name ultra-bf16@9
    write(find("ultra-bf16@9"), Path("/models/ultra"), tokenizer_folder)

Sizes, kernels, start-up and timings are the real ones; answers are noise. So a stack is tried with Ultra's shapes on
one GPU before 1.1 TB are moved.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.models.architecture import ATTENTION, MAMBA, Architecture
from nemolab.models.layout import BF16
from nemolab.models.model import Model

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")

# What the model's code reads beside the numbers of `Architecture`. Scales of a router or of a time step change no size
# and no time; the rest is the same in the config.json of Ultra, Super, Nano and Lightning (ai-dynamo/aiconfigurator
# 095f58a, bundled copies of the configs).
_FRAME: dict[str, Any] = {
    "architectures": ["NemotronHForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "expand": 2,
    "hidden_dropout": 0.0,
    "layer_norm_epsilon": 1e-5,
    "mamba_hidden_act": "silu",
    "mamba_proj_bias": False,
    "mlp_bias": False,
    "mlp_hidden_act": "relu2",
    "model_type": "nemotron_h",
    "n_group": 1,
    "norm_eps": 1e-5,
    "norm_topk_prob": True,
    "pad_token_id": 0,
    "rescale_prenorm_residual": True,
    "residual_in_fp32": False,
    "routed_scaling_factor": 2.5,
    "sliding_window": None,
    "time_step_floor": 1e-4,
    "time_step_max": 0.1,
    "time_step_min": 1e-3,
    "topk_group": 1,
    "torch_dtype": "bfloat16",
    "use_bias": False,
    "use_cache": True,
    "use_conv_bias": True,
}
_NUMBERS = (
    "chunk_size",
    "conv_kernel",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "mamba_head_dim",
    "mamba_num_heads",
    "mamba_ssm_cache_dtype",
    "max_position_embeddings",
    "moe_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "n_groups",
    "n_routed_experts",
    "n_shared_experts",
    "num_attention_heads",
    "num_experts_per_tok",
    "num_key_value_heads",
    "ssm_state_size",
    "tie_word_embeddings",
    "vocab_size",
)


def cut(model: Model, layers: int) -> Model:
    """The model with its first `layers` layers, embeddings and head; its name ends in `@LAYERS`. MTP is left out.

    Raises:
        UsageError: more layers than it has, or too few to hold both a Mamba and an attention layer.
    """
    shape = model.shape
    kept = shape.layers[:layers]
    if not 0 < layers <= len(shape.layers) or MAMBA not in kept or ATTENTION not in kept:
        least = max(shape.layers.index(MAMBA), shape.layers.index(ATTENTION)) + 1
        raise UsageError(
            f"{model.name} cannot be cut to {layers} layers",
            where=f"{model.name}@{layers}",
            fix=f"{least} to {len(shape.layers)}: a Mamba and an attention layer are needed",
        )
    return replace(
        without_mtp(model),
        name=f"{model.name}@{layers}",
        repo="",
        architecture=replace(without_mtp(model).shape, layers=kept),
        published_parameters=None,
        published_bytes=None,
        revisions={},
        notes=(f"the first {layers} of {len(shape.layers)} layers of {model.name}: for --load-format dummy only",),
    )


def without_mtp(model: Model) -> Model:
    """The model without its MTP layers, which dummy weights have no use for."""
    return replace(model, architecture=replace(model.shape, mtp_layers="", num_nextn_predict_layers=0))


def config(shape: Architecture) -> dict[str, Any]:
    """A config.json of that shape, in the dialect of 2025, which vLLM 0.22 to 0.26 and SGLang 0.5.13 read."""
    numbers = {name: getattr(shape, name) for name in _NUMBERS}
    latent = {} if shape.moe_latent_size is None else {"moe_latent_size": shape.moe_latent_size}
    layers = {"hybrid_override_pattern": shape.layers, "num_hidden_layers": len(shape.layers)}
    return dict(sorted((_FRAME | numbers | latent | layers).items()))


def write(model: Model, out: Path, tokenizer: Path) -> None:
    """A folder that engines load with `--load-format dummy`: config.json and a tokenizer, no weights.

    Args:
        out: a new or empty folder.
        tokenizer: folder with a tokenizer.json of at most the model's vocabulary; the texts of noise need no more.

    Raises:
        UsageError: a quantised checkpoint, whose formats only its own files tell; a folder that is not empty; no
            tokenizer.
    """
    if model.layout != BF16:
        raise UsageError(
            f"{model.name} is quantised, and only its own files say which tensor how",
            where="dummy",
            fix=f"take {model.family}-bf16, or the checkpoint's folder without its safetensors",
        )
    if not (tokenizer / "tokenizer.json").is_file():
        raise UsageError("no tokenizer.json here", where=str(tokenizer), fix="name a folder that holds one")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError("not an empty folder", where=str(out), fix="name a new one")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror}", where=str(out), fix="name another folder") from error
    try:
        for name in TOKENIZER_FILES:
            if (tokenizer / name).is_file():
                shutil.copyfile(tokenizer / name, made / name)
        (made / "config.json").write_text(json.dumps(config(without_mtp(model).shape), indent=1) + "\n")
        made.chmod(0o755)
        if out.exists():
            out.rmdir()
        os.replace(made, out)
    finally:
        shutil.rmtree(made, ignore_errors=True)
