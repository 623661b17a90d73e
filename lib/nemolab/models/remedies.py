"""What to change when a launch does not fit: single changes, tried one by one, those that work reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.models import catalogue, units
from nemolab.models.planner import Plan, plan
from nemolab.models.request import Request


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change and the plan that it leads to."""

    what: str
    plan: Plan

    def as_dict(self) -> dict[str, Any]:
        """The change and its result as JSON-ready values."""
        return {"change": self.what, "fit": str(self.plan.fit), "concurrency": round(self.plan.concurrency, 2)}


def remedies(asked: Request) -> tuple[Remedy, ...]:
    """Single changes after which the launch fits, cheapest first."""
    found = []
    for what, changed in _changes(asked):
        try:
            result = plan(changed)
        except UsageError:
            continue  # such as heads that do not divide over that many ranks
        if result.fits:
            found.append(Remedy(what, result))
    return tuple(found)


def _changes(asked: Request) -> Iterator[tuple[str, Request]]:
    if asked.num_speculative_tokens:
        yield "no speculation", asked.but(num_speculative_tokens=0)
    if units.dtype_size(asked.dtypes[0], "--kv-cache-dtype") > 1:
        yield "--kv-cache-dtype fp8", asked.but(kv_cache_dtype="fp8")
    if asked.mamba_cache_mode == "all":
        yield "--mamba-cache-mode align", asked.but(mamba_cache_mode="align")
    if asked.max_num_batched_tokens > 8192:
        yield "--max-num-batched-tokens 8192", asked.but(max_num_batched_tokens=8192)
    if asked.utilisation < 0.95 and not asked.gpu.unified:
        yield "--gpu-memory-utilization 0.95", asked.but(gpu_memory_utilization=0.95)
    yield from _shorter(asked)
    parallel = asked.parallel
    for factor in (2, 4):
        tp = parallel.tensor_parallel_size * factor
        wider = replace(parallel, tensor_parallel_size=tp)
        yield f"{wider.gpus} GPUs, --tensor-parallel-size {tp}", asked.but(gpus=wider.gpus, parallel=wider)
    order = {"bf16": 0, "fp8": 1, "nvfp4": 2}
    for model in catalogue.entries().values():
        smaller = order.get(model.precision, 0) > order.get(asked.model.precision, 0)
        if model.family == asked.model.family and model.architecture is not None and smaller:
            yield f"checkpoint {model.name}", asked.but(model=model)


def _shorter(asked: Request) -> Iterator[tuple[str, Request]]:
    """The longest context that fits, when at least one does."""
    found = plan(asked)
    if found.available_kv > 0 and 0 < found.max_context < asked.length:
        length = found.max_context
        yield f"--max-model-len {length}", asked.but(max_model_len=length)
