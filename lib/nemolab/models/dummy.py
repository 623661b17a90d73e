"""A model's real dimensions without its weights, whole or cut to its first layers: what `--load-format dummy` loads.

    write(find("ultra-bf16@9"), Path("/models/ultra"), tokenizer_folder)

Sizes, kernels, start-up and timings are the real ones; answers are noise. So a stack is tried with Ultra's shapes on
one GPU before 1.1 TB are moved.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.models.architecture import Architecture
from nemolab.models.catalogue import entries
from nemolab.models.cut import without_mtp
from nemolab.models.layout import BF16
from nemolab.models.model import Model

TOKENIZER = "tokenizer.json"
TOKENIZER_FILES = (TOKENIZER, "tokenizer_config.json", "chat_template.jinja", "generation_config.json")

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


def config(shape: Architecture) -> dict[str, Any]:
    """A config.json of that shape, in the dialect of 2025, which vLLM 0.22 to 0.26 and SGLang 0.5.13 read."""
    numbers = {name: getattr(shape, name) for name in _NUMBERS}
    latent = {} if shape.moe_latent_size is None else {"moe_latent_size": shape.moe_latent_size}
    layers = {"hybrid_override_pattern": shape.layers, "num_hidden_layers": len(shape.layers)}
    return dict(sorted((_FRAME | numbers | latent | layers).items()))


def write(model: Model, out: Path, tokenizer: Path) -> Model:
    """A folder that engines load with `--load-format dummy`: config.json and a tokenizer, no weights.

    Args:
        out: a new or empty folder.
        tokenizer: tokenizer.json, or the folder that holds it, of at most the model's vocabulary; the texts of noise
            need no more.

    Returns:
        The model that was written: without its MTP layers.

    Raises:
        UsageError: a quantised checkpoint, whose formats only its own files tell; a folder that is not empty, or that
            cannot be written to; no tokenizer, or one with tokens that the model has no embedding for.
    """
    if model.layout != BF16:
        raise UsageError(
            f"{model.name} is quantised, and only its own files say which tensor how",
            where="dummy",
            fix=f"{_plain(model)}the checkpoint's own folder without its safetensors",
        )
    source = tokenizer.parent if tokenizer.name == TOKENIZER else tokenizer
    tokens = _tokens(source / TOKENIZER)
    if tokens > model.shape.vocab_size:
        raise UsageError(
            f"{tokens:,} tokens, and {model.name} has embeddings for {model.shape.vocab_size:,}",
            where=str(source / TOKENIZER),
            fix="name the model's own tokenizer, or leave it to the miniature's",
        )
    target = out.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError("not an empty folder", where=str(out), fix="name a new one")
    bare = without_mtp(model)
    try:
        _place(target, source, json.dumps(config(bare.shape), indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror}", where=str(out), fix="name another folder") from error
    return bare


def _place(target: Path, source: Path, text: str) -> None:
    """All files or none: written beside, then renamed. An empty folder that is there stays the folder it is, for it may
    be a mount or somebody's working directory; config.json, which makes it a checkpoint, comes last there."""
    there = target.is_dir()
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=target if there else target.parent, prefix=f".{target.name}."))
    try:
        for name in TOKENIZER_FILES:
            if (source / name).is_file():
                shutil.copyfile(source / name, made / name)
        (made / "config.json").write_text(text)
        made.chmod(0o755)
        if not there:
            os.replace(made, target)
            return
        for path in sorted(made.iterdir(), key=lambda path: path.name == "config.json"):
            os.replace(path, target / path.name)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _plain(model: Model) -> str:
    name = f"{model.family}-bf16"
    return f"take {name}, or " if name in entries() else "take "


def _tokens(path: Path) -> int:
    """How many embeddings a tokenizer.json needs: its largest id and one."""
    try:
        document = json.loads(path.read_bytes())
        vocabulary = document["model"]["vocab"]
        ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else [len(vocabulary) - 1]
        return 1 + max(int(one) for one in (*ids, *(token["id"] for token in document.get("added_tokens") or ())))
    except OSError:
        raise UsageError("no tokenizer.json here", where=str(path.parent), fix="name a folder that holds one") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError("not a tokenizer.json", where=str(path), fix="name the file of a fast tokenizer") from None
