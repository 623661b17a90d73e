"""Rules on memory and shards, by the planner's arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nemolab.core.errors import NemolabError
from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings, label
from nemolab.lint.registry import rule

if TYPE_CHECKING:
    from nemolab.models.gpus import GpuKind
    from nemolab.models.request import Request

GIB = 1 << 30
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


def _disputed(case: Case) -> str:
    """Who says that this model serves on this GPU, for a launch that arithmetic refuses."""
    if case.model is None or case.gpu is None:
        return ""
    for disagreement in case.model.disagreements:
        if case.gpu.name.upper() in disagreement.question.upper() and "fit" in disagreement.question:
            return "; ".join(f"{answer}: {who}" for answer, who in disagreement.answers)
    return ""


@rule("R-MEM", "weights, states and one request fit into the memory", "vllm", "sglang", "trtllm")
def memory(case: Case) -> Findings:
    if case.model is None or case.model.architecture is None or case.launch.entry == "options file":
        return
    s = case.settings
    source = "planner: closed form of vLLM's hybrid cache and published weights" if case.engine == "vllm" else "planner"
    if case.gpus and s.gpus > case.gpus:
        nodes = case.number("nnodes") or 1
        if s.gpus > case.gpus * nodes:
            yield case.find(
                "R-MEM",
                Severity.ERROR,
                f"{s.gpus} ranks (TP {s.tp} x PP {s.pp} x DP {s.dp}) on {case.gpus} GPUs",
                "lower the parallelism, or give more GPUs",
                source,
                *_TP,
            )
            return
    try:
        from nemolab.models.planner import Fit, plan

        if case.gpu is None:
            from nemolab.models.sharding import rank_weights

            asked = request_of(case, None)
            need = rank_weights(case.model.shape, case.model.layout, asked.parallel, mtp=asked.mtp).total / GIB
            yield case.find(
                "R-MEM",
                Severity.UNKNOWN,
                f"memory is not checked: the GPU is unknown; {case.model.name} needs "
                f"{need:.1f} GiB of weights on each of {s.gpus} GPU{'s' * (s.gpus > 1)}",
                "say --gpu (and --gpus)",
                source,
                *_TP,
            )
            return
        found = plan(request_of(case, case.gpu))
    except NemolabError as error:
        yield case.find(
            "R-MEM",
            Severity.ERROR if "heads" in error.what else Severity.UNKNOWN,
            f"{error.what}",
            error.fix or "check the parallelism",
            source,
            *_TP,
        )
        return
    have, need = found.budget / GIB, (found.weights.total + found.overhead.total) / GIB
    share = f"{found.request.utilisation:.2f} of {found.request.total_memory / GIB:.1f} GiB"
    if found.fit is Fit.NO:
        offloaded = s.offload_gib and found.available_kv >= 0
        disputed = _disputed(case)
        what = (
            f"{case.model.name} needs {found.weights.total / GIB:.1f} GiB of weights and about "
            f"{found.overhead.total / GIB:.1f} GiB besides on each {case.gpu.name}, "
            f"but {share} is {have:.1f} GiB"
            if found.available_kv < 0
            else f"one request of {found.request.length:,} tokens needs {found.request_bytes / GIB:.1f} "
            f"GiB per GPU, and {found.available_kv / GIB:.1f} GiB are left after weights ({share})"
        )
        if offloaded:
            return
        severity = Severity.DISAGREE if disputed and abs(need - have) / have < 0.1 else Severity.ERROR
        yield case.find(
            "R-MEM",
            severity,
            f"{what}; {label(case)} would not start" + (f". Sources differ: {disputed}" if disputed else ""),
            _what_fits(case),
            source,
            *_TP,
        )
    elif found.fit is Fit.TIGHT:
        yield case.find(
            "R-MEM",
            Severity.WARNING,
            f"less than 5 % of the budget is left: {found.headroom / GIB:.1f} "
            f"GiB after weights and one request ({share})",
            _what_fits(case),
            source,
            *_TP,
        )


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


@rule("R-SEQS", "as many sequences as the Mamba pool has states for", "vllm")
def sequences(case: Case) -> Findings:
    s = case.settings
    if case.model is None or case.model.architecture is None or case.gpu is None or not case.hybrid:
        return
    wanted = s.sequences
    if not wanted or s.offload_gib:
        return  # how much of the host's memory helps is not modelled
    from nemolab.models.planner import plan

    try:
        found = plan(request_of(case, case.gpu))
    except NemolabError:
        return
    if found.available_kv > 0 and found.sequences and wanted > found.sequences:
        yield case.find(
            "R-SEQS",
            Severity.ERROR if wanted > found.sequences * 1.1 else Severity.WARNING,
            f"{wanted} sequences need a Mamba state each, and the pool holds about "
            f"{found.sequences}: the engine refuses to start",
            f"lower --max-num-seqs to {_down(found.sequences)}",
            "vLLM hybrid cache; retail-shopping-assistant#95; NVIDIA-NeMo/RL#2620",
            "max_num_seqs",
        )


def _down(number: int) -> int:
    return max(1, 1 << (number.bit_length() - 1))


@rule("R-TPALIGN", "expert shards stay aligned to the quantisation's groups", "vllm", "sglang", "trtllm")
def alignment(case: Case) -> Findings:
    model, s = case.model, case.settings
    if model is None or model.architecture is None or model.precision not in ("nvfp4", "fp8"):
        return
    if s.ep and (case.engine == "vllm" or (isinstance(s.ep, int) and s.ep >= s.tp)):
        return
    width, ranks = model.shape.moe_intermediate_size, s.tp
    if not width or ranks == 1:
        return
    if model.shape.num_attention_heads % ranks:
        return  # R-MEM says that the heads cannot be split
    source = "expert width of the checkpoint's config; vllm#43908, vllm#41947, vllm#36807"
    if width % ranks or (model.precision == "nvfp4" and width // ranks % 16):
        padded = case.engine == "vllm"
        share = f"{width} / {ranks} = {width / ranks:g}"
        yield case.find(
            "R-TPALIGN",
            Severity.ERROR if width % ranks or not padded else Severity.WARNING,
            f"the expert width per rank, {share}, is not a multiple of 16, the group of NVFP4 scales"
            + (": some vLLM versions pad it, others refuse" if padded and not width % ranks else ""),
            "use a smaller tensor parallelism, or expert parallelism",
            source,
            *_TP,
        )
    elif width // ranks % 64:
        marlin = s.moe_backend in ("marlin",) or (
            case.gpu is not None and case.gpu.compute_capability.startswith(("8", "9", "12"))
        )
        severity = Severity.WARNING if marlin else Severity.INFO
        yield case.find(
            "R-TPALIGN",
            severity,
            f"the expert width per rank, {width} / {ranks} = {width // ranks}, is not a multiple "
            "of 64: Marlin kernels need padding, which older versions lack",
            "use a smaller tensor parallelism, expert parallelism, or a version that pads",
            source,
            *_TP,
        )
