"""Rules on the Mamba state: its type, its rounding, its blocks."""

from __future__ import annotations

from nemolab.core.finding import Severity
from nemolab.lint import hardware
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule

_SWITCH = "enable_mamba_cache_stochastic_rounding"
_SSM = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
_YAML = "kv_cache_config.mamba_ssm_stochastic_rounding"
_SOURCES = {
    "vllm": "vLLM 0.22.0 config/vllm.py and config/mamba.py",
    "sglang": "SGLang 0.5.23 arg_groups/mamba_hook.py",
    "trtllm": "TensorRT-LLM#14575; flashinfer#5267",
}


@rule(
    "R-SR-ARCH", "stochastic rounding: a float16 state, and a GPU whose kernels can do it", "vllm", "sglang", "trtllm"
)
def stochastic_rounding(case: Case) -> Findings:
    s, source = case.settings, _SOURCES[case.engine or "vllm"]
    where = {"yaml": _YAML} if case.engine == "trtllm" else {}
    if not s.rounding:
        if s.rounds:
            yield case.find(
                "R-SR-ARCH",
                Severity.WARNING,
                f"{s.rounds} philox rounds have no effect: stochastic rounding is not switched on",
                "remove them, or switch stochastic rounding on together with a float16 state",
                source,
                "mamba_cache_philox_rounds",
                yaml="kv_cache_config.mamba_ssm_philox_rounds" if where else None,
            )
        if s.ssm_dtype == "float16" and case.hybrid:
            yield case.find(
                "R-SR-ARCH",
                Severity.INFO,
                "a float16 SSM state without stochastic rounding: NVIDIA measured 2.3 % lower accuracy and 10.8 % more "
                "tokens for round-to-nearest on Super",
                "",
                "Nemotron 3 technical report, SSM cache ablation",
                *_SSM,
                **({"yaml": "kv_cache_config.mamba_ssm_cache_dtype"} if where else {}),
            )
        return
    if s.ssm_dtype != "float16":
        have = f"it is {s.ssm_dtype}" if s.ssm_dtype else "none is given, and this family's default is float32"
        flag = {"vllm": "--mamba-ssm-cache-dtype float16", "sglang": "--mamba-ssm-dtype float16"}
        fix = flag.get(case.engine or "", "kv_cache_config.mamba_ssm_cache_dtype: float16")
        yield case.find(
            "R-SR-ARCH",
            Severity.ERROR,
            f"stochastic rounding needs a float16 SSM state, but {have}: the engine refuses to start",
            f"add {fix}, or drop stochastic rounding",
            source,
            _SWITCH,
            **where,
        )
        return
    backend = s.mamba_backend or "triton"
    if backend == "triton" and case.engine != "trtllm":
        if case.gpu is None:
            yield case.find(
                "R-SR-ARCH",
                Severity.UNKNOWN,
                "stochastic rounding with the triton Mamba backend needs a B200, "
                "GB200, B300 or GB300: the GPU is unknown",
                "say --gpu, or use --mamba-backend flashinfer",
                source,
                _SWITCH,
            )
        elif not hardware.datacentre_blackwell(case.gpu):
            yield case.find(
                "R-SR-ARCH",
                Severity.ERROR,
                f"the triton Mamba backend rounds stochastically on compute capability 10.x only; {case.gpu.name} has "
                f"{case.gpu.compute_capability}: the engine refuses to start",
                "use --mamba-backend flashinfer, or drop stochastic rounding",
                f"{source}; NVIDIA-NeMo/Nemotron#289",
                _SWITCH,
            )
    elif case.engine == "trtllm" and case.gpu and hardware.capability(case.gpu)[0] == 12:
        yield case.find(
            "R-SR-ARCH",
            Severity.WARNING,
            f"stochastic rounding failed to compile on compute capability {case.gpu.compute_capability} in 1.3.0rc15",
            "test the start-up, or switch stochastic rounding off",
            source,
            _SWITCH,
            **where,
        )


@rule("R-PC-MODE", "prefix caching on hybrids: the cache mode said, and safe with speculation", "vllm")
def cache_mode(case: Case) -> Findings:
    s = case.settings
    if not case.hybrid:
        return
    mode, on = s.cache_mode, s.prefix_caching
    inert = bool(case.at_least("0.33.0"))
    if on is False and mode in ("align", "all") and not inert:
        yield case.find(
            "R-PC-MODE",
            Severity.WARNING,
            f"prefix caching is off, so the cache mode {mode} is replaced by none",
            "set both deliberately: --enable-prefix-caching with --mamba-cache-mode align, or neither",
            "vLLM 0.22.0 model_executor/models/config.py",
            "mamba_cache_mode",
        )
    if not on:
        return
    if mode == "all" and not inert:
        yield case.find(
            "R-PC-MODE",
            Severity.WARNING,
            "mode all keeps a Mamba state in every block: a 1M request costs about "
            "five times the memory, and log-probabilities "
            "were NaN before a fix",
            "use --mamba-cache-mode align",
            "vLLM 0.22.0 KV arithmetic; vllm#34865",
            "mamba_cache_mode",
        )
    selects_all = case.at_least("0.28.0") is not True and case.before("0.15.0") is not True
    if mode in (None, "none") and selects_all:
        certain = case.version is not None
        yield case.find(
            "R-PC-MODE",
            Severity.WARNING if certain else Severity.UNKNOWN,
            "prefix caching without a cache mode selects mode all for this architecture"
            + (" in this version" if certain else " up to 0.27 (the version is unknown)")
            + ": a long request costs about five times the memory of align",
            "add --mamba-cache-mode align, and keep --max-num-batched-tokens at or above the block",
            "vLLM 0.22.0 and 0.28.0 model_executor/models/config.py",
            "enable_prefix_caching",
        )
    if not s.speculation:
        return
    if case.version and case.version.startswith("0.28."):
        yield case.find(
            "R-PC-MODE",
            Severity.ERROR,
            "prefix caching together with MTP corrupts the output in vLLM 0.28",
            "switch one of the two off, or use another version",
            "vllm#53912",
            "enable_prefix_caching",
        )
    elif mode != "align" and not case.at_least("0.28.0"):
        crash = bool(case.before("0.20.0"))
        yield case.find(
            "R-PC-MODE",
            Severity.ERROR if crash else Severity.WARNING,
            "prefix caching together with speculation without mode align"
            + (" crashes at start in this version" if crash else ": test answers with the cache cold and warm"),
            "add --mamba-cache-mode align",
            "vllm#39809",
            "enable_prefix_caching",
        )


@rule("R-PC-MODE", "radix cache on hybrids: a strategy that goes with the overlap schedule and the page", "sglang")
def radix_cache_strategy(case: Case) -> Findings:
    """0.5.13 switched the overlap schedule off for `no_buffer`, its `auto`; from 0.5.14 on `auto` is `extra_buffer`,
    and `no_buffer` asserts that the schedule is off."""
    s = case.settings
    if not case.hybrid or s.prefix_caching is False or s.cache_mode != "no_buffer" or case.before("0.5.14"):
        return
    if (page := s.block_size or 1) > 1:
        why, fix = f"needs pages of one token, not {page}", ""
    elif not case.on("disable_overlap_schedule"):
        why, fix = "refuses the overlap schedule", ", or add --disable-overlap-schedule"
    else:
        return
    yield case.find(
        "R-PC-MODE",
        Severity.ERROR,
        f"no_buffer {why}: the engine does not start",
        f"leave --mamba-radix-cache-strategy out, which means extra_buffer{fix}",
        "SGLang 0.5.14 server_args.py, 0.5.23 arg_groups/mamba_hook.py (assertions)",
        "mamba_radix_cache_strategy",
        "mamba_scheduler_strategy",
    )


@rule("R-ALIGN", "mode align: the block fits into the token budget", "vllm")
def align(case: Case) -> Findings:
    s = case.settings
    aligned = s.cache_mode == "align" or (s.prefix_caching and case.at_least("0.28.0") and s.cache_mode is None)
    if not aligned or not case.hybrid or case.model is None or s.prefix_caching is False:
        return
    from nemolab.core.errors import NemolabError
    from nemolab.lint.rules.memory import request_of
    from nemolab.models.planner import cache_config
    from nemolab.models.vllm_cache import hybrid_cache

    try:
        block = hybrid_cache(case.model.shape, cache_config(request_of(case, case.gpu))).block_size
    except NemolabError:
        return  # R-MEM says what cannot be planned
    budget = s.batched_tokens
    if case.at_least("0.27.0"):
        if budget and block > budget:
            yield case.find(
                "R-ALIGN",
                Severity.WARNING,
                f"a block has {block:,} tokens, a step at most {budget:,}: no block is ever full after one step",
                f"raise --max-num-batched-tokens to {_round_up(block):,} or use a 16-bit SSM state".replace(",", ""),
                "vLLM KV arithmetic",
                "max_num_batched_tokens",
            )
        return
    assumed = budget or 8192
    if block > assumed:
        given = f"--max-num-batched-tokens {assumed}" if budget else "the default of 8192 tokens a step"
        unknown = case.version is None
        yield case.find(
            "R-ALIGN",
            Severity.UNKNOWN if unknown and not budget else Severity.ERROR,
            f"mode align needs a block within one step, but a block has {block:,} "
            f"tokens and {given}: the engine refuses to start",
            f"raise --max-num-batched-tokens to {_round_up(block)}, use a 16-bit SSM state, or more tensor parallelism",
            "vLLM 0.22.0 config/vllm.py (assertion, up to 0.26); vllm#36734",
            "max_num_batched_tokens",
        )
    elif block > 2048:
        yield case.find(
            "R-ALIGN",
            Severity.INFO,
            f"a block has {block:,} tokens: a shared prefix shorter than that never hits the prefix cache",
            "",
            "vLLM KV arithmetic; vllm#45238",
            "mamba_cache_mode",
        )


def _round_up(tokens: int) -> int:
    """Next usual token budget."""
    return next((size for size in (8192, 16384, 32768, 49152, 65536) if size >= tokens), tokens)


@rule("R-CHUNK", "chunked prefill stays on at long context", "vllm", "sglang", "trtllm")
def chunked_prefill(case: Case) -> Findings:
    s = case.settings
    if s.chunked_prefill is not False:
        return
    length = s.length or (case.model.max_model_len if case.model and case.model.architecture else 0)
    where = {"yaml": "enable_chunked_prefill"} if case.engine == "trtllm" else {}
    if case.engine == "vllm" and (s.cache_mode == "align" or (s.prefix_caching and case.hybrid)):
        yield case.find(
            "R-CHUNK",
            Severity.ERROR,
            "prefix caching on a hybrid needs chunked prefill: the engine refuses to start without it",
            "leave chunked prefill on",
            "vLLM 0.22.0 model_executor/models/config.py",
            "enable_chunked_prefill",
        )
    elif length >= 65536:
        yield case.find(
            "R-CHUNK",
            Severity.WARNING,
            f"without chunked prefill the start-up run is sized for all {length:,} "
            "tokens: out of memory is likely, and unchunked "
            "kernels overflow 32-bit offsets below 1M tokens",
            "leave chunked prefill on",
            "noonghunna/club-3090#708; state-spaces/mamba#1038",
            "enable_chunked_prefill",
            "chunked_prefill_size",
            **where,
        )
