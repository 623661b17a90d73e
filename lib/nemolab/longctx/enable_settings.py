"""The settings that a long context turns on, engine by engine: what this launch has, what to know, who says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nemolab.core.sizes import human
from nemolab.longctx.enable_case import SWITCHES, Launched, Row

_INPUT_BATCH = 5  # bytes a token and slot: int32 ids and a flag; 5.0 GiB at 1024 x 1M, vLLM 0.22.0
_SLOT = 4  # bytes a token and slot of ReqToTokenPool
_SLOTS = {"vllm": 1024, "sglang": 2048}  # where the launch does not say; vLLM's API server on GPUs of 70 GiB or more
_STATES = {
    "float32": "the config's own type; float16 halves it",
    "float16": "plain rounding costs 2.3 % accuracy, stochastic rounding nothing",
    "bfloat16": "half the state; no accuracy table has it",
}


def rows(here: Launched) -> list[Row]:
    """One row a setting."""
    if here.engine not in _OWN:  # NIM and llama.cpp choose by themselves
        return list(_switches(here))
    return [*_switches(here), *_common(here), *_OWN[here.engine](here)]


def _switches(here: Launched) -> Iterator[Row]:
    yield _row("native length", f"{here.native:,}", "in the checkpoint's config.json", "config.json, catalogue")
    if here.engine not in SWITCHES:
        know = "no switch of its own is documented" if here.engine == "nim" else "the length alone decides"
        yield _row("length", f"{here.length:,}", know, f"{here.engine} documentation")
        return
    variable, flag = SWITCHES[here.engine]
    state = "set" if here.switched else "not set"
    needed = "both are needed: one without the other is refused or changes nothing" if here.beyond else (
        "not needed: the checkpoint allows this length" if not here.switched else "has no effect at this length"
    )  # fmt: skip
    given = here.case.text(flag.removeprefix("--").replace("-", "_"))
    why = here.reason(variable)[1] or f"{here.engine} {here.case.version}, source of the switch"
    yield _row("switch 1, length", f"{flag} {given}" if given else f"{flag} not given", needed, why)
    yield _row("switch 2, variable", f"{variable} {state}", needed, why)


def _common(here: Launched) -> Iterator[Row]:
    s, plan = here.settings, here.plan
    if plan:
        kv, ssm, conv = plan.request.dtypes
        yield _row(
            "KV cache type", kv, "half the bytes in fp8; the checkpoint carries the scales", "planner, config.json"
        )
        rounding = ", stochastic rounding" if s.rounding else ""
        yield _row("state types", f"SSM {ssm}{rounding}, convolution {conv}", _STATES.get(ssm, "-"),
                   "technical report; NVIDIA's ablation on Super")  # fmt: skip
    off = s.chunked_prefill is False
    yield _row("chunked prefill", "off" if off else f"on, {here.chunk:,} tokens a step", _overflow(here),
               "state-spaces/mamba#1038, #503; sgl-project/sglang PR 33665")  # fmt: skip
    draft = s.speculation
    here_is = f"{draft.method}, {draft.tokens} tokens" if draft else "off"
    yield _row("MTP", here_is, _mtp(here), "planner; Dynamo 1.4.0 runs 1M without speculation")


def _overflow(here: Launched) -> str:
    """Where 32-bit offsets into the state layers' input projection end, were the whole prompt one step."""
    if here.case.model is None or here.case.model.architecture is None:
        return "a whole prompt in one step overflows 32-bit offsets of the state kernels"
    arch = here.case.model.shape
    width = 2 * arch.mamba_intermediate + 2 * arch.n_groups * arch.ssm_state_size + arch.mamba_num_heads
    tokens = (1 << 31) * here.settings.tp // width
    return f"a whole prompt in one step overflows 32-bit offsets of the state kernels from {tokens:,} tokens"


def _mtp(here: Launched) -> str:
    from nemolab import models

    if here.plan is None or not here.plan.request.model.shape.has_mtp:
        return "the checkpoint has no MTP layer, or there is no plan"
    asked = here.plan.request
    off, on = (models.plan(asked.but(num_speculative_tokens=n, speculation="mtp")) for n in (0, 3))
    return f"3 draft tokens: a request takes {on.request_bytes / off.request_bytes - 1:+.0%} of the cache"


def _vllm(here: Launched) -> Iterator[Row]:
    s, plan = here.settings, here.plan
    cached = "on" if s.prefix_caching else "off"
    mode = plan.request.mamba_cache_mode if plan else s.cache_mode or "none"
    know = "off by default for hybrids; on without a mode means all in 0.22, one state a block"
    if plan and plan.cache and mode != "all":
        from nemolab import models

        all_mode = models.plan(plan.request.but(mamba_cache_mode="all"))
        know += f": {all_mode.request_bytes / plan.request_bytes:.1f} times the memory here"
    yield _row("prefix caching", f"{cached}, Mamba mode {mode}", know, "vLLM 0.22.0; vllm-project/vllm#34865, #45238")
    if plan and plan.cache:
        block, budget = plan.cache.block_size, plan.request.max_num_batched_tokens
        need = f"align needs at least one block of {block:,}; shorter prefixes are never found again"
        yield _row("batch-token budget", f"{budget:,}", need, "vLLM 0.22.0; planner")
    slots = s.sequences or _SLOTS["vllm"]
    yield _row("host memory of request tables",
               f"{slots:,} sequences x {here.length:,} = {human(slots * here.length * _INPUT_BATCH)} a worker",
               "virtual until used; fewer --max-num-seqs make it small", "vLLM 0.22.0, worker input batch")  # fmt: skip


def _sglang(here: Launched) -> Iterator[Row]:
    s, plan = here.settings, here.plan
    slots = s.sequences or _SLOTS["sglang"]
    yield _row("request slots",
               f"{slots:,} x {here.length:,} tokens = {human(slots * here.length * _SLOT)} of every GPU",
               "outside the pools; --max-running-requests makes it small", "SGLang 0.5.23 ReqToTokenPool")  # fmt: skip
    strategy = s.cache_mode or "the default"
    yield _row("prefix caching", f"{'off' if s.prefix_caching is False else 'radix cache'}, strategy {strategy}",
               "states a request: no_buffer 3, extra_buffer_lazy 4, extra_buffer 5 (the default since 0.5.14)",
               "SGLang 0.5.14 and 0.5.23 server arguments")  # fmt: skip
    ratio, most = here.case.text("mamba_full_memory_ratio"), here.case.number("max_mamba_cache_size")
    given = f"--mamba-full-memory-ratio {ratio or 'not set (0.9)'}, --max-mamba-cache-size {most or 'not set'}"
    yield _row("state share of the pools", given, _share(here, slots), "SGLang 0.5.23 kv_cache_configurator; planner")
    yield _row("batch-token budget", f"--chunked-prefill-size {here.chunk:,}", "tokens of a prompt in one step",
               "SGLang 0.5.23 server arguments")  # fmt: skip
    if plan:
        yield _row("longest prompt", f"{here.length - 1:,} with its answer",
                   "input and reserved output must stay below the length; --allow-auto-truncate would cut the question",
                   "SGLang 0.5.23 request validation")  # fmt: skip


def _share(here: Launched, slots: int) -> str:
    """What the states of so many requests need of the pools, against the share they get."""
    values = {value.name: value.value for value in here.plan.values} if here.plan else {}
    states, one, each = (values.get(name) for name in ("mamba_states", "mamba_state_bytes", "states_per_request"))
    if not here.plan or not states or not one or not each or here.plan.available_kv <= 0:
        return "47 % of the pools go to states by default"
    needed = slots * each * one
    rest = here.plan.available_kv
    if needed >= rest:
        return f"{slots * each} states for {slots} requests do not fit: lower --max-running-requests"
    fits = needed / (rest - needed)
    ratio = max(0.01, fits)
    return f"{states:,} states are there, {slots * each} are used: a ratio of {ratio:.2f} leaves the rest to tokens"


def _trtllm(here: Launched) -> Iterator[Row]:
    average = here.case.yaml("kv_cache_config.avg_seq_len")
    yield _row("avg_seq_len", str(average or "not set"),
               "unset, half the maximum is assumed, and prompts near 256K crashed the server",
               "NVIDIA/TensorRT-LLM#17926")  # fmt: skip
    reuse = here.settings.prefix_caching
    yield _row("prefix caching", f"enable_block_reuse {_said(reuse)}", "off in every published file of this family",
               "NVIDIA/TensorRT-LLM#12185")  # fmt: skip
    yield _row(
        "batch-token budget",
        f"max_num_tokens {here.chunk:,}",
        "a multiple of the Mamba chunk of 128; published for 1M: 16,384 to 32,768",
        "NVIDIA/TensorRT-LLM PR 6334",
    )
    batch = here.settings.sequences
    yield _row("states", f"max_batch_size {batch or 'not set'}", "states of the whole batch are allocated at the start",
               "TensorRT-LLM mamba_cache_manager.py")  # fmt: skip


_OWN = {"vllm": _vllm, "sglang": _sglang, "trtllm": _trtllm}


def _said(value: Any) -> str:
    return "not said" if value is None else str(value).lower()


def _row(about: str, here: str, know: str, source: str) -> Row:
    return {"about": about, "here": here, "know": know, "source": source}
