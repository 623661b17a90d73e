"""vLLM's hybrid KV cache in closed form: block size, padding, groups, blocks of a request, pool, concurrency.

Pages of attention and Mamba layers must be equally large, so vLLM raises the attention block until its page holds one
Mamba state and pads the Mamba page up to it. Layers of both kinds form groups of equal size that share one pool.
Read in vLLM 0.22.0: platforms/interface.py (block alignment), v1/kv_cache_interface.py, v1/core/kv_cache_utils.py,
model_executor/layers/mamba/mamba_utils.py. Everything is integer arithmetic per rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from nemolab.core.errors import UsageError
from nemolab.models.architecture import ATTENTION, MAMBA, Architecture

MODES = ("none", "align", "all")
_KERNEL_BLOCK = 16  # FlashAttention's and FlashInfer's smallest block
_NEW_TOKEN_RULE = (0, 22)  # vllm PR#40384: before, the printed tokens were divided by the number of groups


def cdiv(a: int, b: int) -> int:
    """Ceiling division."""
    return -(-a // b)


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """What the cache depends on besides the architecture. Sizes are bytes per element.

    Attributes:
        num_speculative_tokens: widens the convolution state; with MTP an attention layer joins the groups.
        mtp: speculation by the checkpoint's own MTP layer.
        block_size: base block, the larger of the kernel's and `--block-size`.
    """

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    kv_bytes: int = 2
    ssm_bytes: int = 4
    conv_bytes: int = 2
    mode: str = "none"
    num_speculative_tokens: int = 0
    mtp: bool = True
    block_size: int = _KERNEL_BLOCK


@dataclass(frozen=True, slots=True)
class HybridCache:
    """The cache's geometry, per rank.

    Attributes:
        token_bytes: KV bytes of one token in one attention layer.
        mamba_page: bytes of one Mamba layer's state of one sequence, before padding.
        block_size: tokens of an attention block, as the log prints it.
        page_size: bytes of one block of one layer.
        group_size: layers of one group; every group holds as many.
        stage_group_size: layers of the largest group on one pipeline stage: what the pool is divided by.
    """

    mode: str
    num_speculative_tokens: int
    token_bytes: int
    conv_state: int
    ssm_state: int
    mamba_page: int
    block_size: int
    page_size: int
    attention_layers: int
    mamba_layers: int
    group_size: int
    stage_group_size: int
    attention_groups: int
    mamba_groups: int

    @property
    def padding_percent(self) -> float:
        """How much the Mamba page is padded, as the log prints it."""
        return round(100 * (self.page_size - self.mamba_page) / self.mamba_page, 2)

    @property
    def padding_layers(self) -> int:
        """Layers that exist only to fill groups."""
        groups = self.attention_groups + self.mamba_groups
        return self.group_size * groups - self.attention_layers - self.mamba_layers

    def mamba_blocks(self, tokens: int) -> int:
        """Blocks that one request holds in each Mamba group."""
        s = self.num_speculative_tokens
        return {"none": 1 + s, "align": 2 + s, "all": cdiv(tokens, self.block_size) + s}[self.mode]

    def blocks(self, tokens: int) -> int:
        """Blocks of one request of `tokens`, over all groups."""
        return cdiv(tokens, self.block_size) * self.attention_groups + self.mamba_groups * self.mamba_blocks(tokens)

    def request_bytes(self, tokens: int) -> int:
        """Bytes of one request of `tokens`, per rank."""
        return self.blocks(tokens) * self.stage_group_size * self.page_size

    def pool(self, available: int) -> Pool:
        """The pool that `available` bytes make."""
        return Pool(self, max(0, available // self.page_size // self.stage_group_size))


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of blocks that all groups share."""

    cache: HybridCache
    blocks: int

    def concurrency(self, tokens: int) -> float:
        """How many requests of `tokens` fit at once; the log prints two decimals."""
        return self.blocks / self.cache.blocks(tokens)

    def tokens(self, max_model_len: int, version: tuple[int, ...] = (0, 22)) -> int:
        """ "GPU KV cache size" as the log of that vLLM version prints it.

        Since 0.22 it is concurrency times the length; before, it understated hybrids by up to the number of groups.
        """
        if version >= _NEW_TOKEN_RULE:
            return self.blocks * max_model_len // self.cache.blocks(max_model_len)
        groups = self.cache.attention_groups + self.cache.mamba_groups
        return self.blocks // groups * self.cache.block_size

    @property
    def sequences(self) -> int:
        """Most short sequences at once: each holds one attention block a group and its Mamba blocks."""
        return self.blocks // self.cache.blocks(1)

    @property
    def max_context(self) -> int:
        """Longest single request that fits, in tokens; 0 when none does."""
        cache = self.cache
        if cache.mode == "all":
            left = self.blocks - cache.mamba_groups * cache.num_speculative_tokens
            return max(0, left // (cache.attention_groups + cache.mamba_groups)) * cache.block_size
        left = self.blocks - cache.mamba_groups * cache.mamba_blocks(1)
        return max(0, left // cache.attention_groups) * cache.block_size


def check_layout(arch: Architecture, tp: int) -> None:
    """Whether vLLM can split this architecture over `tp` ranks.

    Raises:
        UsageError: heads do not divide; the message names the head count.
    """
    for what, heads in (("attention", arch.num_attention_heads), ("Mamba", arch.mamba_num_heads)):
        if heads % tp:
            raise UsageError(
                f"{heads} {what} heads cannot be split over tensor_parallel_size {tp}",
                where="--tensor-parallel-size",
                fix=f"use a divisor of {heads}",
            )
    kv = arch.num_key_value_heads
    if kv % tp and tp % kv:
        raise UsageError(
            f"{kv} KV heads neither divide nor are divided by tensor_parallel_size {tp}", fix="use 1, 2, 4, 8"
        )


def hybrid_cache(arch: Architecture, config: CacheConfig) -> HybridCache:
    """The geometry of the cache.

    Raises:
        UsageError: an unknown mode, or heads that do not divide.
    """
    tp, s = config.tensor_parallel_size, config.num_speculative_tokens
    check_layout(arch, tp)
    if config.mode not in MODES:
        raise UsageError(f"mamba_cache_mode {config.mode!r}", fix=f"one of: {', '.join(MODES)}")
    heads = max(1, arch.num_key_value_heads // tp)
    token = 2 * heads * arch.head_dim * config.kv_bytes
    groups = arch.n_groups if arch.n_groups % tp == 0 else arch.n_groups + tp - arch.n_groups
    width = (arch.mamba_intermediate + 2 * groups * arch.ssm_state_size) // tp
    conv = width * (arch.conv_kernel - 1 + s) * config.conv_bytes
    ssm = arch.mamba_num_heads // tp * arch.mamba_head_dim * arch.ssm_state_size * config.ssm_bytes
    page = conv + ssm
    base = max(_KERNEL_BLOCK, config.block_size)
    if config.mode == "all":
        chunk = lcm(arch.chunk_size, base)
        block = chunk * cdiv(cdiv(page, token), chunk)
    else:
        block = base * cdiv(page, base * token)
    attention = arch.count(ATTENTION) + (1 if s and config.mtp else 0)
    mamba = arch.count(MAMBA)
    low, high = sorted((attention, mamba))
    size = high if high < low * 1.5 else low
    return HybridCache(
        mode=config.mode,
        num_speculative_tokens=s,
        token_bytes=token,
        conv_state=conv,
        ssm_state=ssm,
        mamba_page=page,
        block_size=block,
        page_size=block * token,
        attention_layers=attention,
        mamba_layers=mamba,
        group_size=size,
        stage_group_size=_stage_group_size(arch, config, size, attention, mamba),
        attention_groups=cdiv(attention, size),
        mamba_groups=cdiv(mamba, size),
    )


def stages(layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each pipeline stage; the remainder goes to stages before the last (`get_pp_indices`)."""
    counts = [layers // pp] * pp
    for index in range(2, layers % pp + 2):
        counts[-index] += 1
    return tuple(counts)


def _stage_group_size(arch: Architecture, config: CacheConfig, size: int, attention: int, mamba: int) -> int:
    """Layers of the largest group on one stage: vLLM deals layers to groups in turn (`layers[i::num_groups]`)."""
    if config.pipeline_parallel_size == 1:
        return size
    bounds, start = [], 0
    for count in stages(len(arch.layers), config.pipeline_parallel_size):
        bounds.append(range(start, start + count))
        start += count
    of_kind = {kind: [i for i, k in enumerate(arch.layers) if k == kind] for kind in (ATTENTION, MAMBA)}
    if attention > len(of_kind[ATTENTION]):
        of_kind[ATTENTION].append(len(arch.layers) - 1)  # the MTP layer lives on the last stage
    largest = 0
    for kind, number in ((ATTENTION, attention), (MAMBA, mamba)):
        groups = cdiv(number, size)
        for first in range(groups):
            dealt = of_kind[kind][first::groups]
            largest = max(largest, *(sum(layer in stage for layer in dealt) for stage in bounds))
    return largest
