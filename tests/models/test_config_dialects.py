"""config.json in both dialects, as they are found in the wild."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemolab.core.errors import UsageError
from nemolab.models import config, families
from nemolab.models.architecture import Architecture

WORDS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}


def old(arch: Architecture) -> dict[str, Any]:
    """The config of an architecture, in the dialect of Nano and Super."""
    fields = {name: getattr(arch, name) for name in config._SAME}
    return fields | {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": arch.layers,
        "num_hidden_layers": len(arch.layers),
        "mtp_hybrid_override_pattern": arch.mtp_layers or None,
    }


def new(arch: Architecture) -> dict[str, Any]:
    """The config of an architecture, in the dialect of Ultra: words, and no number of layers."""
    fields = {name: getattr(arch, name) for name in config._SAME}
    return fields | {
        "model_type": "nemotron_h",
        "layers_block_type": [WORDS[letter] for letter in arch.layers],
        "mtp_layers_block_type": [WORDS[letter] for letter in arch.mtp_layers] or None,
    }


@pytest.mark.parametrize(
    "arch", [families.ULTRA, families.SUPER, families.NANO, families.LIGHTNING], ids=lambda a: str(len(a.layers))
)
def test_both_dialects_say_the_same(arch: Architecture) -> None:
    assert config.from_config(old(arch)) == arch
    assert config.from_config(new(arch)) == arch


@given(st.text("ME*-", min_size=1, max_size=120).filter(lambda p: "*" in p))
def test_any_pattern_survives_both_dialects(pattern: str) -> None:
    document = old(families.NANO) | {"hybrid_override_pattern": pattern, "num_hidden_layers": len(pattern)}
    read = config.from_config(document)
    assert read.layers == pattern
    assert config.from_config(new(read)) == read


def test_bare_infinity_is_read(tmp_path: Path) -> None:
    text = json.dumps(old(families.SUPER) | {"time_step_limit": [0.0, float("inf")]})
    assert "Infinity" in text
    (tmp_path / "config.json").write_text(text)
    assert config.read(tmp_path) == families.SUPER
    assert config.document(tmp_path)["time_step_limit"] == [0.0, float("inf")]


def test_null_means_absent() -> None:
    assert config.from_config(new(families.ULTRA) | {"moe_latent_size": None}).moe_latent_size is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'"),
        ({"num_hidden_layers": 87}, "88 entries, num_hidden_layers says 87"),
        ({"hybrid_override_pattern": None}, "neither hybrid_override_pattern nor layers_block_type"),
        ({"hybrid_override_pattern": "MEX"}, "hybrid_override_pattern is 'MEX'"),
        ({"layers_block_type": ["mamba", "moe"]}, "name different layers"),
        ({"layers_block_type": ["mamba", "conv"]}, "holds 'conv'"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": "4096"}, "hidden_size is '4096', not a whole number"),
        ({"hidden_size": True}, "hidden_size is True, not a whole number"),
        ({"n_routed_experts": 0}, "n_routed_experts is 0"),
        ({"num_attention_heads": 31}, "31 attention heads cannot share 2 KV heads"),
    ],
)
def test_a_wrong_config_is_refused_with_its_field(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("(", r"\(")) as caught:
        config.from_config(old(families.SUPER) | change, where="x/config.json")
    assert caught.value.where == "x/config.json"


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff"])
def test_a_broken_file_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError, match="JSON"):
        config.read(tmp_path)


def test_a_missing_file_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no config\.json here"):
        config.read(tmp_path)
