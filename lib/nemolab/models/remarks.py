"""What to know of a plan besides its numbers, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from nemolab.models.request import Request
from nemolab.models.sharding import misaligned
from nemolab.models.vllm_cache import HybridCache


def warnings_of(asked: Request, cache: HybridCache | None) -> tuple[str, ...]:
    """Remarks on a request; `cache` is vLLM's geometry, None for other engines."""
    return (*_length(asked), *_cache(asked, cache), *_shards(asked), *_speculation(asked), *_sources(asked))


def _length(asked: Request) -> Iterator[str]:
    native = asked.model.max_model_len
    if asked.length > native:
        yield (
            f"{asked.length:,} is beyond the checkpoint's {native:,}: the engine's long-context switch is needed too"
        )


def _cache(asked: Request, cache: HybridCache | None) -> Iterator[str]:
    if cache is None:
        return
    if cache.mode == "align" and cache.block_size > asked.max_num_batched_tokens:
        yield (
            f"mode align refuses to start: block {cache.block_size} is above max_num_batched_tokens "
            f"{asked.max_num_batched_tokens}"
        )
    if cache.mode == "all":
        yield "mode all keeps a Mamba state in every block: a long request costs as many times more as there are groups"


def _shards(asked: Request) -> Iterator[str]:
    arch, tp = asked.model.shape, asked.parallel.tensor_parallel_size
    if asked.model.precision in ("nvfp4", "fp8") and (wrong := misaligned(arch, asked.parallel)):
        ranks = tp * asked.parallel.data_parallel_size
        what = "NVFP4 scales do not align" if wrong[0] == 16 else "Marlin kernels need padding"
        width = f"{arch.moe_intermediate_size} / {ranks} = {arch.moe_intermediate_size / ranks:g}"
        yield f"expert width per rank {width} is no multiple of {wrong[0]}: {what}"
    if tp > arch.num_key_value_heads:
        yield (
            f"{arch.num_key_value_heads} KV heads are replicated over tensor_parallel_size {tp}: "
            "KV memory per GPU stops shrinking"
        )
    if asked.parallel.data_parallel_size > 1:
        yield f"pool and concurrency are those of one of {asked.parallel.data_parallel_size} data parallel ranks"
    if asked.gpus > asked.parallel.gpus:
        yield f"{asked.gpus - asked.parallel.gpus} of {asked.gpus} GPUs stay idle in this layout"
    if asked.parallel.pipeline_parallel_size > 1:
        yield "pipeline parallelism: groups per stage follow the code, no log was compared"


def _speculation(asked: Request) -> Iterator[str]:
    if asked.num_speculative_tokens and asked.parallel.pipeline_parallel_size > 1:
        yield "speculation with pipeline parallelism has an open crash report (vllm#30436)"
    if asked.num_speculative_tokens and not asked.mtp:
        yield "the drafter's weights and cache are not counted: its config was not seen"


def _sources(asked: Request) -> Iterator[str]:
    if asked.gpu.unified and asked.utilisation > 0.85:
        yield "CPU and GPU share this memory: published guides use a utilisation of 0.70 to 0.85"
    if asked.model.layout.estimate:
        yield "the checkpoint's layout by tensor class was not seen: weights are an estimate"
