"""The catalogue: counts equal what is published, and every entry says where it comes from."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest

from nemolab import miniature
from nemolab.core.errors import UsageError
from nemolab.models import catalogue, config, families, local
from nemolab.models.layout import FORMATS, LIGHTNING_NVFP4, ULTRA_NVFP4
from nemolab.models.parameters import TensorClass, active, parameters

MINIATURE = miniature.checkpoint_folder()


def test_lightning_has_the_published_number_of_parameters() -> None:
    model = catalogue.find("lightning-nvfp4")
    assert model.parameters.total == model.published_parameters == 32_913_266_240


def test_ultra_differs_from_the_published_number_by_its_router_biases_only() -> None:
    model = catalogue.find("ultra-bf16")
    assert model.published_parameters == 560_524_578_816
    assert model.parameters.total - model.published_parameters == model.parameters.router_biases == 49 * 512


@pytest.mark.parametrize(
    ("arch", "total", "active_"),
    [
        (families.ULTRA, 560_524_603_904, 54_985_101_312),
        (families.SUPER, 123_611_033_088, 12_233_366_528),
        (families.NANO, 31_577_940_288, 3_227_754_816),
    ],
    ids=["ultra", "super", "nano"],
)
def test_totals_and_active_parameters(arch: families.Architecture, total: int, active_: int) -> None:
    assert parameters(arch).total == total
    assert active(arch) == active_


def test_counts_equal_the_tensors_of_a_real_checkpoint() -> None:
    """The miniature's own safetensors file, class by class."""
    with (MINIATURE / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    header.pop("__metadata__", None)
    counted = {name: math.prod(entry["shape"]) for name, entry in header.items()}
    found = parameters(config.read(MINIATURE))
    assert sum(counted.values()) == found.total

    def of(*parts: str) -> int:
        return sum(number for name, number in counted.items() if any(part in name for part in parts))

    assert of(".experts.") == found.backbone[TensorClass.ROUTED_EXPERTS]
    assert of("shared_experts") == found.backbone[TensorClass.SHARED_EXPERTS]
    assert of("latent_proj") == found.backbone[TensorClass.LATENT_PROJ]
    assert of("in_proj", "out_proj") == found.backbone[TensorClass.MAMBA_PROJ]
    assert of("q_proj", "k_proj", "v_proj", "o_proj") == found.backbone[TensorClass.ATTENTION_PROJ]
    assert of("gate.weight") == found.backbone[TensorClass.ROUTER]


def test_the_exported_miniature_is_in_the_catalogue() -> None:
    assert local(MINIATURE).name == "miniature"
    assert catalogue.find("miniature").parameters.total == miniature.CARD.parameters


def test_nvfp4_sizes_equal_the_published_ones() -> None:
    ultra, lightning = parameters(families.ULTRA), parameters(families.LIGHTNING)
    assert round(ULTRA_NVFP4.size(ultra) / 1e9) == 352
    assert 8 * ULTRA_NVFP4.size(ultra) / ultra.total == pytest.approx(5.03, abs=0.01)  # bits per element, report
    assert LIGHTNING_NVFP4.size(lightning) / 1e9 == pytest.approx(21.6, abs=0.1)


def test_lightning_layout_covers_the_layers_that_modelopt_names() -> None:
    arch = families.LIGHTNING
    moe, mamba = arch.count("E"), arch.count("M")
    assert moe * 2 * arch.n_routed_experts + moe * 2 + 1 == 5935  # W4A16 NVFP4: routed, shared, head
    assert 2 * mamba == 46  # FP8: in_proj and out_proj


def test_every_entry_is_sourced_and_findable() -> None:
    entries = catalogue.entries()
    assert len({model.name for model in entries.values()}) == len({m.repo or m.name for m in entries.values()})
    assert sum(model.family == "teacher" for model in entries.values()) == 5
    for model in entries.values():
        assert model.sources, model.name
        assert catalogue.find(model.name) is model
        if model.repo:
            assert catalogue.find(model.repo) is model
            assert catalogue.find(model.repo.partition("/")[2].lower()) is model
        assert json.loads(json.dumps(model.as_dict()))["name"] == model.name


def test_a_path_in_a_command_names_its_model() -> None:
    found = catalogue.match("/models/hub/nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4-DSpark/")
    assert found is catalogue.find("lightning-dspark")
    assert catalogue.match("meta-llama/Llama-3.1-8B") is None


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="no model 'ultra-fp4'") as caught:
        catalogue.find("ultra-fp4")
    assert "ultra-nvfp4" in str(caught.value)


@pytest.mark.parametrize(
    ("algorithm", "precision", "size"),
    [
        ("NVFP4", "nvfp4", 9),
        ("FP8", "fp8", 16),
        ("MIXED_PRECISION", "nvfp4", 9),
        ("AWQ", "awq", 32),
        (None, "bf16", 32),
    ],
)
def test_a_local_checkpoint_keeps_its_own_precision(
    tmp_path: Path, algorithm: str | None, precision: str, size: int
) -> None:
    document = json.loads((MINIATURE / "config.json").read_text()) | {"hidden_size": 512}
    if algorithm:
        document["quantization_config"] = {"quant_method": "modelopt", "quant_algo": algorithm}
    (tmp_path / "config.json").write_text(json.dumps(document))
    model = local(tmp_path)
    assert (model.family, model.precision) == ("local", precision)
    assert FORMATS[model.layout.format_of(TensorClass.ROUTED_EXPERTS)] == size


def test_ultra_s_config_is_ultra() -> None:
    assert catalogue.find("ultra-bf16").architecture == catalogue.find("teacher-stem").architecture
    assert next(m for m in catalogue.entries().values() if m.architecture == families.ULTRA).family == "ultra"


@pytest.mark.parametrize("name", ["", " ", "@4", "/"])
def test_no_name_is_no_model(name: str) -> None:
    with pytest.raises(UsageError, match="no model is named"):
        catalogue.find(name)
