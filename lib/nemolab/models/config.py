"""Read a `nemotron_h` config.json, in the dialect of 2025 and in that of 2026.

The old dialect spells the layers as letters (`hybrid_override_pattern`) and repeats their number; the new one lists
words (`layers_block_type`) and may leave the number out (Ultra does). Super's original holds the bare token
`Infinity`, which is no JSON but which Python, transformers and vLLM read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.models.architecture import ATTENTION, MAMBA, MLP, MOE, Architecture

OLD, NEW = "hybrid_override_pattern", "layers_block_type"
_WORDS = {"mamba": MAMBA, "attention": ATTENTION, "moe": MOE, "mlp": MLP}
_SAME = frozenset(field.name for field in fields(Architecture)) - {"layers", "mtp_layers"}
_DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in fields(Architecture) if field.default is not MISSING
}


def read(path: Path) -> Architecture:
    """The architecture of a checkpoint folder, or of a config.json.

    Raises:
        UsageError: no such file, not JSON, another `model_type`, a field missing or of a wrong type, or layers that
            contradict each other. The message names the field.
    """
    return from_config(document(path), where=str(_file(path)))


def document(path: Path) -> dict[str, Any]:
    """config.json as a dict; `Infinity` and `NaN` become floats. Errors as for `read`."""
    file = _file(path)
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            "no config.json here", where=str(path), fix="name the folder that holds config.json, or a catalogue name"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read as JSON: {error}", where=str(file), fix="download it again") from None
    if not isinstance(found, dict):
        raise UsageError("not a JSON object", where=str(file), fix="download it again")
    return found


def _file(path: Path) -> Path:
    return path / "config.json" if path.is_dir() else path


def dialect(config: Mapping[str, Any]) -> str:
    """`hybrid_override_pattern` or `layers_block_type`; "" when the config has neither."""
    return NEW if NEW in config else OLD if OLD in config else ""


def from_config(config: Mapping[str, Any], *, where: str = "config.json") -> Architecture:
    """The architecture that a config document describes. Errors as for `read`."""
    kind = config.get("model_type")
    if kind != "nemotron_h":
        raise UsageError(f"model_type is {kind!r}, not 'nemotron_h'", where=where, fix="only Nemotron-H is planned")
    layers = _layers(config, OLD, NEW, where)
    if not layers:
        raise UsageError(f"neither {OLD} nor {NEW} is there", where=where, fix="download config.json again")
    said = config.get("num_hidden_layers")
    if said is not None and said != len(layers):
        raise UsageError(
            f"the layer list has {len(layers)} entries, num_hidden_layers says {said}",
            where=where,
            fix="one of the two was edited: restore the file",
        )
    values: dict[str, Any] = {"layers": layers}
    values["mtp_layers"] = _layers(config, f"mtp_{OLD}", f"mtp_{NEW}", where) or ""
    for name in _SAME:
        value = config.get(name)
        if value is None and name not in _DEFAULTS:
            raise UsageError(f"{name} is missing", where=where, fix="download config.json again")
        if value is not None:
            values[name] = _typed(name, value, where)
    return _checked(Architecture(**values), where)


def _layers(config: Mapping[str, Any], old: str, new: str, where: str) -> str | None:
    letters: str | None = None
    if (words := config.get(new)) is not None:
        if not isinstance(words, list) or any(word not in _WORDS for word in words):
            wrong = next((w for w in words if w not in _WORDS), words) if isinstance(words, list) else words
            raise UsageError(f"{new} holds {wrong!r}", where=where, fix=f"known: {', '.join(_WORDS)}")
        letters = "".join(_WORDS[word] for word in words)
    if (pattern := config.get(old)) is not None:
        if not isinstance(pattern, str) or set(pattern) - set(_WORDS.values()):
            raise UsageError(f"{old} is {pattern!r}", where=where, fix="known letters: M, *, E, -")
        if letters is not None and letters != pattern:
            raise UsageError(f"{old} and {new} name different layers", where=where, fix="keep one of them")
        letters = pattern
    return letters


def _typed(name: str, value: Any, where: str) -> Any:
    if name == "tie_word_embeddings":
        fine, wanted = isinstance(value, bool), "true or false"
    elif name == "mamba_ssm_cache_dtype":
        fine, wanted = isinstance(value, str), "text"
    else:
        fine, wanted = isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a whole number"
    if not fine:
        raise UsageError(f"{name} is {value!r}, not {wanted}", where=where, fix="restore the file")
    return value


def _checked(found: Architecture, where: str) -> Architecture:
    positive = ("hidden_size", "vocab_size", "head_dim", "num_attention_heads", "num_key_value_heads", "chunk_size")
    mamba = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel")
    moe = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
    needed = positive + (mamba if found.count(MAMBA) else ()) + (moe if found.count(MOE) else ())
    for name in needed:
        if getattr(found, name) < 1:
            raise UsageError(f"{name} is {getattr(found, name)}", where=where, fix="restore the file")
    if found.num_attention_heads % found.num_key_value_heads:
        raise UsageError(
            f"{found.num_attention_heads} attention heads cannot share {found.num_key_value_heads} KV heads",
            where=where,
        )
    return found
