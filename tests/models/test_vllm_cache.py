"""The hybrid cache against vLLM's own log lines, and its arithmetic against itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemolab.core.errors import UsageError
from nemolab.models import families, units
from nemolab.models.architecture import Architecture
from nemolab.models.vllm_cache import CacheConfig, Pool, cdiv, hybrid_cache, stages

LOGS = Path(__file__).parent / "logs"
GIB = 1 << 30


@dataclass(frozen=True)
class Log:
    """What a log says of the cache."""

    name: str
    version: str
    arch: Architecture
    cache: CacheConfig
    max_model_len: int
    available_gib: float
    block: int
    padding: float
    concurrency: float
    tokens: int


def recorded(name: str, arch: Architecture, cache: CacheConfig) -> Log:
    """A log file, read with the words the engine uses."""
    text = (LOGS / name).read_text()

    def one(pattern: str) -> str:
        found = re.search(pattern, text)
        assert found, pattern
        return found[1].replace(",", "")

    return Log(
        name=name,
        version=one(r"V1 LLM engine \(v([\d.]+)\)"),
        arch=arch,
        cache=cache,
        max_model_len=int(one(r"Using max model len (\d+)")),
        available_gib=float(one(r"Available KV cache memory: ([\d.]+) GiB")),
        block=int(one(r"Setting attention block size to (\d+) tokens")),
        padding=float(one(r"Padding mamba page size by ([\d.]+)%")),
        concurrency=float(one(r"tokens per request: ([\d.]+)x")),
        tokens=int(one(r"GPU KV cache size: ([\d,]+) tokens")),
    )


# The miniature as it was when its log was taken.
EARLY_MINIATURE = replace(
    families.NANO,
    layers="MEM*EM*E",
    hidden_size=256,
    num_attention_heads=4,
    mamba_num_heads=8,
    n_groups=2,
)
BF16 = CacheConfig(kv_bytes=2, ssm_bytes=2, conv_bytes=2)
CASES = [
    # The logs that NVIDIA's cookbooks store (NVIDIA-NeMo/Nemotron e27b3713), and two runs on one H200.
    Log("nano", "0.12.0", families.NANO, BF16, 262_144, 7.37, 1072, 1.13, 4.82, 257_280),
    Log(
        "super",
        "0.14.1",
        families.SUPER,
        CacheConfig(tensor_parallel_size=4, kv_bytes=1, ssm_bytes=4, conv_bytes=2),
        262_144,
        7.94,
        4160,
        0.10,
        14.49,
        690_560,
    ),
    Log("omni", "0.20.0", families.NANO, BF16, 131_072, 6.26, 1072, 1.13, 8.03, 218_688),
    recorded("vllm-0.22.0-h200-nano1m.log", families.NANO, CacheConfig()),
    recorded("vllm-0.22.0-h200-miniature-256k.log", EARLY_MINIATURE, CacheConfig(mode="align")),
]


@pytest.mark.parametrize("log", CASES, ids=lambda log: log.name)
def test_every_log_is_reproduced(log: Log) -> None:
    cache = hybrid_cache(log.arch, log.cache)
    assert cache.block_size == log.block
    assert cache.padding_percent == log.padding
    pool = cache.pool(int(log.available_gib * GIB))
    # The log prints GiB with two decimals, so the pool is known to one block and what follows from it.
    blocks = [Pool(cache, pool.blocks + step) for step in range(-2, 3)]
    assert log.concurrency in {round(one.concurrency(log.max_model_len), 2) for one in blocks}
    assert log.tokens in {one.tokens(log.max_model_len, units.version(log.version)) for one in blocks}


def test_the_pool_of_the_h200_run_is_exact() -> None:
    """5597 blocks: the server's own metric num_gpu_blocks."""
    cache = hybrid_cache(families.NANO, CacheConfig())
    pool = cache.pool(int(67.13 * GIB))
    assert (pool.blocks, cache.blocks(1_048_576), pool.tokens(1_048_576)) == (5597, 505, 11_621_544)
    assert round(pool.concurrency(1_048_576), 2) == 11.08


@pytest.mark.parametrize("log", CASES[-2:], ids=lambda log: log.name)
def test_padding_layers_waste_what_the_log_says(log: Log) -> None:
    cache = hybrid_cache(log.arch, log.cache)
    found = re.search(r"Add (\d+) padding layers, may waste at most ([\d.]+)%", (LOGS / log.name).read_text())
    assert found
    assert cache.padding_layers == int(found[1])
    assert round(100 * cache.padding_layers / cache.mamba_layers, 2) == float(found[2])


@pytest.mark.parametrize(
    ("arch", "tp", "kv", "ssm", "plain", "mtp3"),
    [
        (families.ULTRA, 4, 1, 4, 8304, 8416),
        (families.ULTRA, 8, 1, 2, 2112, 2160),
        (families.SUPER, 1, 1, 4, 8320, 8432),
        (families.SUPER, 8, 2, 2, 528, 544),
        (families.LIGHTNING, 1, 2, 4, 2096, 2128),
    ],
)
def test_block_sizes_with_and_without_mtp(
    arch: Architecture, tp: int, kv: int, ssm: int, plain: int, mtp3: int
) -> None:
    assert hybrid_cache(arch, CacheConfig(tp, kv_bytes=kv, ssm_bytes=ssm)).block_size == plain
    config = CacheConfig(tp, kv_bytes=kv, ssm_bytes=ssm, num_speculative_tokens=3)
    assert hybrid_cache(arch, config).block_size == mtp3


def test_mtp_adds_an_attention_layer_to_the_groups() -> None:
    plain = hybrid_cache(families.SUPER, CacheConfig(4))
    mtp = hybrid_cache(families.SUPER, CacheConfig(4, num_speculative_tokens=3))
    drafted = hybrid_cache(families.SUPER, CacheConfig(4, num_speculative_tokens=3, mtp=False))
    assert (plain.attention_layers, mtp.attention_layers, drafted.attention_layers) == (8, 9, 8)
    assert mtp.attention_groups + mtp.mamba_groups == 6


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(UsageError, match="32 attention heads cannot be split over tensor_parallel_size 3"):
        hybrid_cache(families.NANO, CacheConfig(3))
    with pytest.raises(UsageError, match="mamba_cache_mode"):
        hybrid_cache(families.NANO, CacheConfig(mode="some"))


def test_stages_follow_vllm() -> None:
    assert stages(108, 2) == (54, 54)
    assert stages(52, 3) == (17, 18, 17)
    assert stages(88, 5) == (17, 18, 18, 18, 17)


configs = st.builds(
    CacheConfig,
    tensor_parallel_size=st.sampled_from([1, 2, 4, 8, 16]),
    pipeline_parallel_size=st.sampled_from([1, 2, 4]),
    kv_bytes=st.sampled_from([1, 2]),
    ssm_bytes=st.sampled_from([2, 4]),
    mode=st.sampled_from(["none", "align", "all"]),
    num_speculative_tokens=st.integers(0, 7),
    block_size=st.sampled_from([16, 32, 64, 128]),
)
arches = st.sampled_from([families.ULTRA, families.SUPER, families.NANO, families.LIGHTNING])
lengths = st.integers(1, 1 << 20)


@given(arches, configs)
def test_a_block_holds_a_mamba_page_and_is_the_smallest_that_does(arch: Architecture, config: CacheConfig) -> None:
    cache = hybrid_cache(arch, config)
    assert cache.page_size >= cache.mamba_page
    assert cache.block_size % config.block_size == 0
    step = config.block_size if config.mode != "all" else max(config.block_size, arch.chunk_size)
    assert (cache.block_size - step) * cache.token_bytes < cache.mamba_page
    assert cache.padding_layers >= 0
    assert cache.stage_group_size <= cache.group_size


@given(arches, configs, lengths, lengths, st.integers(0, 200 * GIB))
def test_longer_requests_never_cost_less(
    arch: Architecture, config: CacheConfig, one: int, other: int, size: int
) -> None:
    cache = hybrid_cache(arch, config)
    short, long = sorted((one, other))
    assert cache.blocks(short) <= cache.blocks(long)
    assert cache.request_bytes(short) <= cache.request_bytes(long)
    pool = cache.pool(size)
    assert pool.concurrency(short) >= pool.concurrency(long)


@given(arches, configs, st.integers(0, 200 * GIB), st.integers(0, 10 * GIB))
def test_more_memory_never_holds_less(arch: Architecture, config: CacheConfig, size: int, more: int) -> None:
    cache = hybrid_cache(arch, config)
    small, large = cache.pool(size), cache.pool(size + more)
    assert small.blocks <= large.blocks
    assert small.blocks * cache.page_size * cache.stage_group_size <= size


@given(arches, configs, st.integers(0, 200 * GIB))
def test_the_longest_context_fits_and_one_block_more_does_not(
    arch: Architecture, config: CacheConfig, size: int
) -> None:
    pool = hybrid_cache(arch, config).pool(size)
    longest = pool.max_context
    if longest:
        assert pool.cache.blocks(longest) <= pool.blocks
    assert pool.cache.blocks(longest + 1) > pool.blocks


@given(arches, st.sampled_from([1, 2, 4, 8]), lengths)
def test_mode_all_costs_at_least_align_costs_at_least_none(arch: Architecture, tp: int, length: int) -> None:
    length += 1 << 15  # below a few blocks `all` rounds differently
    none, align, full = (hybrid_cache(arch, CacheConfig(tp, mode=mode)) for mode in ("none", "align", "all"))
    assert none.request_bytes(length) <= align.request_bytes(length) <= full.request_bytes(length)


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 20))
def test_ceiling_division(a: int, b: int) -> None:
    assert (cdiv(a, b) - 1) * b < a <= cdiv(a, b) * b


@pytest.mark.parametrize(
    ("arch", "config", "none", "align", "every", "mtp3"),
    [
        (families.NANO, CacheConfig(1, kv_bytes=1), 3.06, 3.11, 15.05, None),
        (families.NANO, CacheConfig(1, kv_bytes=2), 6.06, 6.10, 30.01, None),
        (families.SUPER, CacheConfig(1, kv_bytes=1), 4.19, 4.35, 24.18, 5.25),
        (families.SUPER, CacheConfig(4, kv_bytes=1), 2.05, 2.09, 12.04, 2.44),
        (families.ULTRA, CacheConfig(4, kv_bytes=1, ssm_bytes=2), 3.06, 3.11, 15.05, 3.47),
        (families.ULTRA, CacheConfig(8, kv_bytes=1), 3.06, 3.11, 15.05, 3.47),
    ],
)
def test_gib_of_one_request_of_a_million_tokens(
    arch: Architecture, config: CacheConfig, none: float, align: float, every: float, mtp3: float | None
) -> None:
    """Computed apart from this code, with the formulas of kaito-project/kaito PR#2052."""

    def size(**changes: object) -> float:
        return round(hybrid_cache(arch, replace(config, **changes)).request_bytes(1 << 20) / GIB, 2)  # type: ignore[arg-type]

    assert (size(mode="none"), size(mode="align"), size(mode="all")) == (none, align, every)
    if mtp3:
        assert size(num_speculative_tokens=3) == mtp3


def test_groups_are_padded_to_the_ranks() -> None:
    """Ultra over 16 ranks: 8 groups become 16, so each rank keeps one group of B and one of C."""
    cache = hybrid_cache(families.ULTRA, CacheConfig(16))
    assert cache.conv_state == (16_384 // 16 + 2 * 128) * 3 * 2
    assert cache.ssm_state == 16 * 64 * 128 * 4


@pytest.mark.parametrize("arch", [families.ULTRA, families.SUPER, families.NANO])
@pytest.mark.parametrize("pp", [1, 2, 3, 4, 5, 7])
def test_no_stage_holds_more_layers_of_a_group_than_it_has_room_for(arch: Architecture, pp: int) -> None:
    cache = hybrid_cache(arch, CacheConfig(pipeline_parallel_size=pp))
    seen, start = 0, 0
    for count in stages(len(arch.layers), pp):
        for kind, groups in (("*", cache.attention_groups), ("M", cache.mamba_groups)):
            every = [index for index, letter in enumerate(arch.layers) if letter == kind]
            for first in range(groups):
                seen = max(seen, sum(start <= index < start + count for index in every[first::groups]))
        start += count
    assert cache.stage_group_size == seen
