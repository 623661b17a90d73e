"""R-RANGE: numbers that the engine refuses, or that no published profile has."""

from __future__ import annotations

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings, label
from nemolab.lint.registry import rule

_FRACTIONS = ("gpu_memory_utilization", "mem_fraction_static", "kv_cache_free_gpu_memory_fraction")
_COUNTS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "tp_size",
    "pp_size",
    "ep_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_batch_size",
    "max_num_tokens",
    "nnodes",
)


@rule("R-RANGE", "numbers within what the engine accepts", "vllm", "sglang", "trtllm")
def limits(case: Case) -> Findings:
    source = f"configuration classes of {label(case)}" if case.version else "configuration classes of the engine"
    for dest in _FRACTIONS:
        value = case.value(dest)
        if isinstance(value, int | float) and not 0 < value <= 1:
            fix = f"write {value / 100:g}" if 1 < value <= 100 else "use 0.9"
            yield case.find(
                "R-RANGE",
                Severity.ERROR,
                f"{case.spelled(dest)} {value:g} is no fraction: {label(case)} wants more than 0 and at most 1",
                fix,
                source,
                dest,
            )
    for dest in _COUNTS:
        value = case.value(dest)
        if isinstance(value, int) and value < 1:
            yield case.find(
                "R-RANGE",
                Severity.ERROR,
                f"{case.spelled(dest)} {value}: {label(case)} wants at least 1",
                "use 1 or more",
                source,
                dest,
            )


@rule("R-RANGE", "the token budget covers the sequences, and the length where prefill is not chunked", "vllm")
def budget(case: Case) -> Findings:
    s = case.settings
    tokens = s.batched_tokens
    source = "vLLM 0.22.0 config/scheduler.py, verify_max_model_len"
    if tokens and s.sequences and tokens < s.sequences:
        yield case.find(
            "R-RANGE",
            Severity.ERROR,
            f"--max-num-batched-tokens {tokens} is below --max-num-seqs {s.sequences}: {label(case)} refuses to start",
            f"use at least {s.sequences}, better 8192 or more",
            source,
            "max_num_batched_tokens",
        )
    if tokens and s.length and tokens < s.length and s.chunked_prefill is False:
        yield case.find(
            "R-RANGE",
            Severity.ERROR,
            f"without chunked prefill a step must hold the whole prompt: --max-num-batched-tokens {tokens} is below "
            f"--max-model-len {s.length}, and {label(case)} refuses to start",
            "leave chunked prefill on",
            source,
            "max_num_batched_tokens",
        )
