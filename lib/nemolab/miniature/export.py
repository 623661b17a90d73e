"""GGUF from the checkpoint's own tensors, with the `gguf` library and without torch.

Tensor names, metadata and the transforms (A = -exp(A_log), experts stacked, norm split by group) are those of
llama.cpp's converter for `NemotronHForCausalLM` (ggml-org/llama.cpp, conversion/nemotron.py, 2026-09).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nemolab.core import paths
from nemolab.core.errors import NemolabError, UsageError
from nemolab.miniature import config, tensors
from nemolab.miniature.config import ATTENTION, MOE, MiniatureConfig

if TYPE_CHECKING:
    import gguf
    import numpy as np
    from numpy.typing import NDArray

FileType = Literal["Q8_0", "F16", "F32"]
FILE_TYPES: tuple[FileType, ...] = ("Q8_0", "F16", "F32")
# The same answers from all three (a test says so), and Q8_0 is the fastest: a prompt of 8,192 tokens took 5.1 CPU
# seconds, 5.7 with F16, 5.8 with F32; 200 tokens decoded in 0.11, 0.18 and 0.25 (xllamacpp 2026.10, one EPYC core).
DEFAULT_FILE_TYPE: FileType = "Q8_0"

_RENAMED = {
    "norm.weight": "attn_norm.weight",
    "mixer.in_proj.weight": "ssm_in.weight",
    "mixer.conv1d.weight": "ssm_conv1d.weight",
    "mixer.conv1d.bias": "ssm_conv1d.bias",
    "mixer.dt_bias": "ssm_dt.bias",
    "mixer.A_log": "ssm_a",
    "mixer.D": "ssm_d",
    "mixer.norm.weight": "ssm_norm.weight",
    "mixer.out_proj.weight": "ssm_out.weight",
    "mixer.q_proj.weight": "attn_q.weight",
    "mixer.k_proj.weight": "attn_k.weight",
    "mixer.v_proj.weight": "attn_v.weight",
    "mixer.o_proj.weight": "attn_output.weight",
    "mixer.gate.weight": "ffn_gate_inp.weight",
    "mixer.gate.e_score_correction_bias": "exp_probs_b.bias",
    "mixer.fc1_latent_proj.weight": "ffn_latent_down.weight",
    "mixer.fc2_latent_proj.weight": "ffn_latent_up.weight",
    "mixer.shared_experts.up_proj.weight": "ffn_up_shexp.weight",
    "mixer.shared_experts.down_proj.weight": "ffn_down_shexp.weight",
}
# Small or sensitive: kept in float32 whatever the file type, as llama.cpp's own quantiser does.
_FLOAT32 = ("norm", "ssm_conv1d", "ssm_dt", "ssm_a", "ssm_d", "ffn_gate_inp", "exp_probs_b")


def gguf_path(folder: Path, file_type: FileType = DEFAULT_FILE_TYPE) -> Path:
    """The GGUF of `folder`'s checkpoint in the cache; written first where it is not there yet.

    Its name holds the hash of what it is made from, so a new checkpoint gets a new file. Two processes may ask at once:
    each writes a file of its own and moves it into place whole.
    """
    path = paths.cache() / "miniature" / f"nemolab-miniature-{tensors.digest(folder)[:16]}-{file_type}.gguf"
    if not path.is_file():
        write_gguf(folder, path, file_type)
    return path


def write_gguf(folder: Path, path: Path, file_type: FileType = DEFAULT_FILE_TYPE) -> None:
    """Write the checkpoint in `folder` as a GGUF at `path`, atomically and the same bytes every time.

    Raises:
        UsageError: an unknown file type. NemolabError: the disk refused, or the weights do not fit the config.
    """
    if file_type not in FILE_TYPES:
        raise UsageError(f"unknown file type {file_type!r}", fix=f"one of {', '.join(FILE_TYPES)}")
    shape = config.read(folder)
    weights = tensors.load(folder)
    if {name: array.shape for name, array in weights.items()} != shape.tensor_shapes():
        raise NemolabError("the weights do not have the shapes that config.json gives", where=str(folder))
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        _write(folder, Path(temporary), file_type, shape, weights)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise NemolabError(f"cannot write: {error.strerror or error}", where=str(path), fix="free space") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _write(folder: Path, path: Path, file_type: FileType, shape: MiniatureConfig, weights: tensors.Tensors) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.NEMOTRON_H_MOE])
    _add_metadata(writer, shape, file_type)
    _add_vocabulary(writer, folder, shape.vocab_size)
    for name, array in _converted(shape, weights):
        exact = array.ndim < 2 or any(part in name for part in _FLOAT32)
        kind = gguf.GGMLQuantizationType["F32" if exact else file_type]
        writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_metadata(writer: gguf.GGUFWriter, shape: MiniatureConfig, file_type: FileType) -> None:
    import gguf

    pattern = shape.hybrid_override_pattern
    writer.add_name("nemolab-miniature")
    writer.add_license("apache-2.0")
    writer.add_file_type(gguf.LlamaFileType["ALL_F32" if file_type == "F32" else f"MOSTLY_{file_type}"])
    writer.add_vocab_size(shape.vocab_size)
    writer.add_context_length(shape.max_position_embeddings)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_block_count(len(pattern))
    writer.add_layer_norm_rms_eps(shape.layer_norm_epsilon)
    writer.add_layer_norm_eps(shape.layer_norm_epsilon)  # both keys are read
    writer.add_rope_scaling_finetuned(False)  # attention has no positions
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_head_count(shape.num_attention_heads)
    writer.add_head_count_kv([shape.num_key_value_heads if letter == ATTENTION else 0 for letter in pattern])
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_ssm_conv_kernel(shape.conv_kernel)
    writer.add_ssm_state_size(shape.ssm_state_size)
    writer.add_ssm_group_count(shape.n_groups)
    writer.add_ssm_inner_size(shape.mamba_inner_size)
    writer.add_ssm_time_step_rank(shape.mamba_num_heads)  # llama.cpp reads the number of heads here
    writer.add_feed_forward_length([shape.moe_intermediate_size if letter == MOE else 0 for letter in pattern])
    writer.add_expert_count(shape.n_routed_experts)
    writer.add_expert_used_count(shape.num_experts_per_tok)
    writer.add_expert_feed_forward_length(shape.moe_intermediate_size)
    writer.add_expert_shared_count(1)
    writer.add_expert_shared_feed_forward_length(shape.moe_shared_expert_intermediate_size)
    writer.add_expert_weights_norm(True)
    writer.add_expert_weights_scale(shape.routed_scaling_factor)
    writer.add_expert_group_count(1)
    writer.add_moe_latent_size(shape.moe_latent_size)


def _add_vocabulary(writer: gguf.GGUFWriter, folder: Path, size: int) -> None:
    import gguf

    document = json.loads((folder / "tokenizer.json").read_bytes())
    tokens = [f"[PAD{index}]" for index in range(size)]
    kinds = [gguf.TokenType.UNUSED] * size
    for token, index in document["model"]["vocab"].items():
        tokens[index], kinds[index] = token, gguf.TokenType.NORMAL
    for added in document["added_tokens"]:
        tokens[added["id"]] = added["content"]
        kinds[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in document["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")  # the same split: single digits, letters with one leading character
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(config.BOS)
    writer.add_eos_token_id(config.IM_END)
    writer.add_pad_token_id(config.PAD)
    writer.add_add_bos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def _converted(shape: MiniatureConfig, weights: tensors.Tensors) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Name and value of every tensor of the GGUF, in a fixed order."""
    import numpy as np

    yield "token_embd.weight", weights["backbone.embeddings.weight"]
    for index, letter in enumerate(shape.hybrid_override_pattern):
        for source, target in _RENAMED.items():
            if (array := weights.get(f"backbone.layers.{index}.{source}")) is not None:
                yield f"blk.{index}.{target}", _transformed(source, array, shape)
        if letter == MOE:
            for source, target in (("up_proj", "ffn_up_exps"), ("down_proj", "ffn_down_exps")):
                name = f"backbone.layers.{index}.mixer.experts.{{}}.{source}.weight"
                experts = [weights[name.format(expert)] for expert in range(shape.n_routed_experts)]
                yield f"blk.{index}.{target}.weight", np.stack(experts)
    yield "output_norm.weight", weights["backbone.norm_f.weight"]
    yield "output.weight", weights["lm_head.weight"]


def _transformed(source: str, array: NDArray[np.float32], shape: MiniatureConfig) -> NDArray[np.float32]:
    import numpy as np

    if source == "mixer.A_log":
        return -np.exp(array).reshape(-1, 1)
    if source == "mixer.D":
        return array.reshape(-1, 1)
    if source == "mixer.conv1d.weight":
        return array.reshape(array.shape[0], -1)
    if source == "mixer.norm.weight":
        return array.reshape(shape.n_groups, -1)
    return array
