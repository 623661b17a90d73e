"""R-SEQS, R-TPALIGN: sequences by the states that the memory holds, expert shards by the quantisation's groups."""

from __future__ import annotations

from nemolab.core.errors import NemolabError
from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings, label
from nemolab.lint.registry import rule
from nemolab.lint.rules.memory import request_of

_TP = ("tensor_parallel_size", "tp_size")


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
    pool = found.pool.blocks if found.pool else 0
    if found.available_kv <= 0 or not found.sequences or wanted <= found.sequences:
        return
    source = "vLLM 0.22.0 config/compilation.py; retail-shopping-assistant#95; NVIDIA-NeMo/RL#2620"
    if wanted > pool and not s.eager and not case.before("0.18.0"):
        sure = wanted > pool * 1.1 and case.version is not None  # the pool is an estimate
        yield case.find(
            "R-SEQS",
            Severity.ERROR if sure else Severity.WARNING,
            f"{wanted} sequences need a Mamba block each, and the pool has "
            f"about {pool} in all: {label(case)} refuses to "
            "start",
            f"lower --max-num-seqs to {_down(pool)}, or give the cache more memory",
            source,
            "max_num_seqs",
        )
    else:
        yield case.find(
            "R-SEQS",
            Severity.WARNING,
            f"{wanted} sequences are allowed, but state and cache are there for "
            f"about {found.sequences}: the rest waits, or "
            "is thrown out and computed again",
            f"--max-num-seqs {_down(found.sequences)} says what the memory holds",
            "planner: closed form of vLLM's hybrid cache",
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
