"""Weights of one GPU: they add up, they shrink with more GPUs, and they equal what an engine loaded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemolab import models
from nemolab.models import families
from nemolab.models.layout import BF16, FORMATS, ULTRA_NVFP4, Layout
from nemolab.models.parameters import TensorClass, parameters
from nemolab.models.sharding import Parallel, misaligned, rank_weights

ARCHES = [families.ULTRA, families.SUPER, families.NANO, families.LIGHTNING]
GIB = 1 << 30
REPLICATED = {TensorClass.NORM, TensorClass.ROUTER, TensorClass.ROUTER_BIAS, TensorClass.LATENT_PROJ}


def router_extra(arch: models.Architecture) -> int:
    """Engines keep the router in float32, checkpoints in BF16."""
    counted = parameters(arch)
    layers = counted.backbone.get(TensorClass.ROUTER, 0) + counted.mtp.get(TensorClass.ROUTER, 0)
    return layers * (FORMATS["fp32"] - FORMATS["bf16"]) // 16


@pytest.mark.parametrize("arch", ARCHES, ids=["ultra", "super", "nano", "lightning"])
@pytest.mark.parametrize("layout", [BF16, ULTRA_NVFP4], ids=["bf16", "nvfp4"])
def test_one_gpu_holds_the_whole_checkpoint(arch: models.Architecture, layout: Layout) -> None:
    found = rank_weights(arch, layout, Parallel(), mtp=True)
    assert found.total == pytest.approx(layout.size(parameters(arch)) + router_extra(arch), abs=64)


def test_nano_loads_as_measured() -> None:
    """58.92 GiB: vLLM 0.22.0 on one H200."""
    assert rank_weights(families.NANO, BF16, Parallel(), mtp=False).total / GIB == pytest.approx(58.92, rel=0.002)


@given(st.sampled_from(ARCHES), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 4]), st.booleans())
def test_more_ranks_never_hold_more(arch: models.Architecture, tp: int, dp: int, ep: bool) -> None:
    narrow = rank_weights(arch, BF16, Parallel(tp, 1, dp, ep), mtp=True)
    wide = rank_weights(arch, BF16, Parallel(2 * tp, 1, dp, ep), mtp=True)
    assert wide.total < narrow.total
    for name, size in wide.by_class.items():
        if name in REPLICATED:
            assert size == narrow.by_class[name]


@given(st.sampled_from(ARCHES), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 3, 4, 6]))
def test_ranks_together_hold_at_least_everything(arch: models.Architecture, tp: int, pp: int) -> None:
    found = rank_weights(arch, BF16, Parallel(tp, pp), mtp=False)
    assert found.total * tp * pp >= BF16.size(parameters(arch), mtp=False)


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_expert_parallel_holds_the_same_experts_when_both_divide(tp: int) -> None:
    whole = rank_weights(families.ULTRA, BF16, Parallel(tp, enable_expert_parallel=True), mtp=False)
    sliced = rank_weights(families.ULTRA, BF16, Parallel(tp), mtp=False)
    assert whole.by_class[TensorClass.ROUTED_EXPERTS] == sliced.by_class[TensorClass.ROUTED_EXPERTS]


def test_data_parallel_ranks_share_the_experts_and_repeat_the_rest() -> None:
    alone = rank_weights(families.ULTRA, ULTRA_NVFP4, Parallel(), mtp=False)
    eight = rank_weights(families.ULTRA, ULTRA_NVFP4, Parallel(data_parallel_size=8), mtp=False)
    experts = TensorClass.ROUTED_EXPERTS
    assert eight.by_class[experts] * 8 == alone.by_class[experts]
    assert eight.total - eight.by_class[experts] == alone.total - alone.by_class[experts]
    assert eight.total / GIB == pytest.approx(70.6, abs=0.5)  # the cookbook's TP1 DP8 on 8 x H100


@pytest.mark.parametrize(
    ("arch", "tp", "wrong"),
    [
        (families.ULTRA, 16, ()),
        (families.SUPER, 2, ()),
        (families.SUPER, 4, (64,)),
        (families.SUPER, 16, (16, 64)),
        (families.NANO, 4, (64,)),
        (families.NANO, 8, (16, 64)),
    ],
)
def test_expert_shards_align_as_the_kernels_want(arch: models.Architecture, tp: int, wrong: tuple[int, ...]) -> None:
    assert misaligned(arch, Parallel(tp)) == wrong
    assert misaligned(arch, Parallel(tp, enable_expert_parallel=True)) == ()


def test_kv_heads_are_replicated_beyond_their_number() -> None:
    found = rank_weights(families.NANO, BF16, Parallel(4), mtp=False)
    assert found.by_class[TensorClass.ATTENTION_PROJ] == 6 * 2 * 2688 * 128 * (32 // 4 + 1) * 2
