"""Rules on memory and shards, by the planner's arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nemolab.core.errors import NemolabError
from nemolab.core.finding import Finding, Severity
from nemolab.core.sizes import GIB
from nemolab.lint.case import Case, Findings, label
from nemolab.lint.registry import rule

if TYPE_CHECKING:
    from nemolab.models import GpuKind, Plan, Request

_ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm"}
_TP = ("tensor_parallel_size", "tp_size")


def request_of(case: Case, gpu: GpuKind | None) -> Request:
    """The launch as a question to the planner.

    Raises:
        NemolabError: a value that the planner knows nothing of.
    """
    from nemolab.models import gpus as kinds
    from nemolab.models.request import Request
    from nemolab.models.sharding import Parallel

    assert case.model is not None
    s = case.settings
    spec = s.speculation
    mode = s.cache_mode if s.prefix_caching and s.cache_mode in ("align", "all") else "none"
    if s.prefix_caching and mode == "none" and case.engine == "vllm" and not case.at_least("0.28.0"):
        mode = "all"
    elif s.prefix_caching and mode == "none" and case.engine == "vllm":
        mode = "align"
    parallel = Parallel(s.tp, s.pp, s.dp, bool(s.ep) if case.engine == "vllm" else bool(s.ep and s.ep > 1))
    offload = int((s.offload_gib or 0) * GIB)
    return Request(
        model=case.model,
        gpu=gpu or kinds.ALL[0],
        gpus=max(parallel.gpus, case.gpus or 0),
        parallel=parallel,
        engine=_ENGINES[case.engine or "vllm"],
        engine_version=case.version or "",
        max_model_len=s.length,
        gpu_memory_utilization=s.utilisation,
        kv_cache_dtype=s.kv_dtype or "auto",
        mamba_ssm_cache_dtype=s.ssm_dtype or "auto",
        mamba_cache_dtype=s.conv_dtype or "auto",
        mamba_cache_mode=mode,
        mamba_radix_cache_strategy=_strategy(case),
        num_speculative_tokens=(spec.tokens or 1)
        if spec and ((s.mtp and case.model.shape.has_mtp) or spec.drafter)
        else 0,
        speculation="mtp" if s.mtp else "draft",
        block_size=s.block_size if s.block_size and case.engine == "vllm" else 16,
        max_num_batched_tokens=s.batched_tokens if s.batched_tokens and s.batched_tokens > 0 else 8192,
        max_running_requests=s.sequences,
        enforce_eager=bool(s.eager),
        cpu_offload=offload,
    )


def _strategy(case: Case) -> str:
    from nemolab.models.request import STRATEGIES

    if case.engine != "sglang":
        return "auto"
    if case.settings.prefix_caching is False:
        return "off"
    said = case.settings.cache_mode or "auto"
    return said if said in STRATEGIES else "auto"  # another value is a finding of its own


_SOURCE = "planner: published weights, and the engine's own cache arithmetic"
# Engines that choose the fraction themselves when none is given leave about this much to the pools.
_OWN_CHOICE = 0.93
# Parts of the plan are estimates: a launch that misses the budget by less than this is in doubt, not wrong.
_DOUBT = 0.02


def listed_by(case: Case) -> str:
    """Pages that list this model on this hardware, for a launch that arithmetic refuses."""
    from nemolab.models.listed import LISTINGS, PAGES

    s = case.settings
    for listing in LISTINGS:
        if (
            case.model is not None
            and case.gpu is not None
            and (listing.model, listing.gpu) == (case.model.name, case.gpu.name)
            and (listing.tensor_parallel_size, listing.pipeline_parallel_size) == (s.tp, s.pp)
            and s.dp == listing.data_parallel_size == 1
        ):
            return "; ".join(PAGES[who] for who in listing.who)
    return ""


@rule("R-MEM", "weights, states and one request fit into the memory", "vllm", "sglang", "trtllm")
def memory(case: Case) -> Findings:
    if case.model is None or case.model.architecture is None or case.launch.entry == "options file":
        return
    s = case.settings
    if case.gpus and s.gpus > case.gpus * (case.number("nnodes") or 1):
        yield case.find(
            "R-MEM",
            Severity.ERROR,
            f"{s.gpus} ranks (TP {s.tp} x PP {s.pp} x DP {s.dp}) on {case.gpus} GPUs",
            "lower the parallelism, or give more GPUs",
            _SOURCE,
            *_TP,
        )
        return
    try:
        if case.gpu is None:
            yield _unknown_gpu(case)
        else:
            from nemolab.models import plan

            yield from _held_against(case, plan(request_of(case, case.gpu)))
    except NemolabError as error:
        heads = "heads" in error.what
        yield case.find(
            "R-MEM",
            Severity.ERROR if heads else Severity.UNKNOWN,
            f"{error.what}" + (f": {label(case)} refuses to start" if heads else ""),
            error.fix or "check the parallelism",
            _SOURCE,
            *_TP,
        )


def _unknown_gpu(case: Case) -> Finding:
    from nemolab.models.sharding import rank_weights

    assert case.model is not None
    asked, count = request_of(case, None), case.settings.gpus
    need = rank_weights(case.model.shape, case.model.layout, asked.parallel, mtp=asked.mtp).total / GIB
    return case.find(
        "R-MEM",
        Severity.UNKNOWN,
        f"memory is not checked: the GPU is unknown; {case.model.name} needs {need:.1f} GiB of weights on each of "
        f"{count} GPU{'s' * (count > 1)}",
        "say --gpu (and --gpus)",
        _SOURCE,
        *_TP,
    )


def _held_against(case: Case, found: Plan) -> Findings:
    from nemolab.models import Fit

    asked = found.request
    share = f"{asked.utilisation:.2f} of {asked.total_memory / GIB:.1f} GiB"
    if found.fit is Fit.YES:
        return
    if found.fit is Fit.TIGHT:
        yield case.find(
            "R-MEM",
            Severity.WARNING,
            f"less than 5 % of the budget is left: {found.headroom / GIB:.1f} "
            f"GiB after weights and one request ({share})",
            _what_fits(case),
            _SOURCE,
            *_TP,
        )
        return
    if case.settings.offload_gib and found.available_kv >= 0:
        return
    budget = found.budget
    if case.engine != "vllm" and case.settings.utilisation is None:
        budget = int(asked.total_memory * _OWN_CHOICE)
        share = f"the engine chooses its share; {_OWN_CHOICE} of {asked.total_memory / GIB:.1f} GiB"
    needed = found.weights.total + found.overhead.total + found.request_bytes
    what = (
        f"{asked.model.name} needs {found.weights.total / GIB:.1f} GiB of weights, about "
        f"{found.overhead.total / GIB:.1f} GiB besides and {found.request_bytes / GIB:.1f} GiB for one request of "
        f"{asked.length:,} tokens on each {asked.gpu.name}; there are {budget / GIB:.1f} GiB ({share})"
    )
    pages = listed_by(case)
    if needed - budget <= _DOUBT * budget:
        severity, end = Severity.WARNING, "too tight to be sure"
    elif pages and needed <= asked.total_memory:
        severity, end = Severity.DISAGREE, f"{label(case)} would not start, yet it is listed: {pages}"
    else:
        severity, end = (
            Severity.ERROR,
            f"{label(case)} would not start" + (f", though listed: {pages}" if pages else ""),
        )
    yield case.find("R-MEM", severity, f"{what}: {end}", _what_fits(case), _SOURCE, *_TP)


# The planner names its remedies as vLLM spells them.
_SPELLED = {
    "sglang": (
        ("--gpu-memory-utilization", "--mem-fraction-static"),
        ("--max-model-len", "--context-length"),
        ("--tensor-parallel-size", "--tp-size"),
        ("--max-num-batched-tokens", "--chunked-prefill-size"),
        ("--kv-cache-dtype fp8", "--kv-cache-dtype fp8_e4m3"),
    ),
    "trtllm": (
        ("--gpu-memory-utilization", "kv_cache_config.free_gpu_memory_fraction"),
        ("--max-model-len", "--max_seq_len"),
        ("--tensor-parallel-size", "--tp_size"),
        ("--max-num-batched-tokens", "--max_num_tokens"),
        ("--kv-cache-dtype fp8", "kv_cache_config.dtype: fp8"),
    ),
}


def _what_fits(case: Case) -> str:
    """Single changes after which it fits, cheapest first."""
    from nemolab.models import remedies

    asked = request_of(case, case.gpu)
    every = case.gpus or asked.parallel.gpus
    if asked.parallel.tensor_parallel_size < every:
        from nemolab.models import plan

        whole = replace(asked.parallel, tensor_parallel_size=every, data_parallel_size=1, pipeline_parallel_size=1)
        try:
            if plan(asked.but(parallel=whole)).fits:
                return f"use all {every} GPUs for one copy: tensor parallelism {every}"
        except NemolabError:
            pass
    found = [remedy.what for remedy in remedies(asked)][:3]
    text = "; or ".join(found)
    for theirs, own in _SPELLED.get(case.engine or "", ()):
        text = text.replace(theirs, own)
    return text or "no single change makes it fit: use a smaller checkpoint or larger GPUs"
