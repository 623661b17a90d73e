"""The settings of a launch under one name each, whatever the engine calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nemolab.lint.case import Case


class Speculation(NamedTuple):
    """Speculative decoding as asked for.

    Attributes:
        method: the engine's own word, lower case: `mtp`, `dspark`, `dflash`, `eagle`, `nextn`, ...; "" when not given.
        tokens: draft tokens; None when not given.
        drafter: a separate drafter model.
    """

    method: str
    tokens: int | None = None
    drafter: str | None = None


class Settings(NamedTuple):
    """What the launch asks for; None where it says nothing and the engine's default holds."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int | bool | None = None
    length: int | None = None
    sequences: int | None = None
    batched_tokens: int | None = None
    utilisation: float | None = None
    kv_dtype: str | None = None
    ssm_dtype: str | None = None
    conv_dtype: str | None = None
    rounding: bool | None = None
    rounds: int | None = None
    mamba_backend: str | None = None
    moe_backend: str | None = None
    attention_backend: str | None = None
    prefix_caching: bool | None = None
    cache_mode: str | None = None
    chunked_prefill: bool | None = None
    block_size: int | None = None
    speculation: Speculation | None = None
    quantisation: str | None = None
    offload_gib: float | None = None
    eager: bool | None = None

    @property
    def gpus(self) -> int:
        """GPUs that the parallelism uses."""
        return self.tp * self.pp * self.dp

    @property
    def mtp(self) -> bool:
        """Whether the checkpoint's own MTP layer drafts."""
        return self.speculation is not None and (
            self.speculation.method.endswith("mtp")
            or (self.speculation.method in ("eagle", "nextn") and not self.speculation.drafter)
        )


def read(case: Case) -> Settings:
    """Settings of a case, for its engine."""
    if case.engine == "sglang":
        return _sglang(case)
    if case.engine == "trtllm":
        return _trtllm(case)
    return _vllm(case)


def _vllm(case: Case) -> Settings:
    utilisation = case.value("gpu_memory_utilization")
    return Settings(
        tp=case.number("tensor_parallel_size") or 1,
        pp=case.number("pipeline_parallel_size") or 1,
        dp=case.number("data_parallel_size") or 1,
        ep=case.on("enable_expert_parallel"),
        length=_positive(case.number("max_model_len")),
        sequences=case.number("max_num_seqs"),
        batched_tokens=case.number("max_num_batched_tokens"),
        utilisation=utilisation if isinstance(utilisation, float) and 0 < utilisation <= 1 else None,
        kv_dtype=_typed(case.text("kv_cache_dtype")),
        ssm_dtype=_typed(case.text("mamba_ssm_cache_dtype")),
        conv_dtype=_typed(case.text("mamba_cache_dtype")),
        rounding=case.on("enable_mamba_cache_stochastic_rounding"),
        rounds=case.number("mamba_cache_philox_rounds"),
        mamba_backend=_lower(case.text("mamba_backend")),
        moe_backend=_lower(case.text("moe_backend")),
        attention_backend=_lower(case.text("attention_backend")),
        prefix_caching=case.on("enable_prefix_caching"),
        cache_mode=case.text("mamba_cache_mode"),
        chunked_prefill=case.on("enable_chunked_prefill"),
        block_size=case.number("block_size"),
        speculation=_vllm_speculation(case),
        quantisation=_lower(case.text("quantization")),
        offload_gib=case.value("cpu_offload_gb"),
        eager=case.on("enforce_eager"),
    )


def _vllm_speculation(case: Case) -> Speculation | None:
    document = case.document("speculative_config")
    if document is not None:
        tokens, method, model = (document.get(k) for k in ("num_speculative_tokens", "method", "model"))
        return Speculation(
            _lower(method) or "" if isinstance(method, str) else "",
            tokens if isinstance(tokens, int) else None,
            model if isinstance(model, str) else None,
        )
    method = _lower(case.text("spec_method"))
    return Speculation(method, case.number("spec_tokens"), case.text("spec_model")) if method else None


def _sglang(case: Case) -> Settings:
    algorithm = _lower(case.text("speculative_algorithm"))
    fraction = case.value("mem_fraction_static")
    tokens = case.number("speculative_num_draft_tokens")
    return Settings(
        tp=case.number("tp_size", "tensor_parallel_size") or 1,
        pp=case.number("pp_size", "pipeline_parallel_size") or 1,
        dp=1,  # SGLang's data parallelism divides the tensor-parallel group or replicates servers
        ep=case.number("ep_size", "expert_parallel_size"),
        length=_positive(case.number("context_length")),
        sequences=case.number("max_running_requests"),
        batched_tokens=case.number("chunked_prefill_size"),
        utilisation=fraction if isinstance(fraction, float) and 0 < fraction <= 1 else None,
        kv_dtype=_typed(case.text("kv_cache_dtype")),
        ssm_dtype=_typed(case.text("mamba_ssm_dtype") or case.env("SGLANG_MAMBA_SSM_DTYPE")),
        rounding=case.on("enable_mamba_cache_stochastic_rounding"),
        rounds=case.number("mamba_cache_philox_rounds"),
        mamba_backend=_lower(case.text("mamba_backend")),
        moe_backend=_lower(case.text("moe_runner_backend")),
        attention_backend=_lower(case.text("attention_backend")),
        prefix_caching=False if case.on("disable_radix_cache") else None,
        cache_mode=case.text("mamba_radix_cache_strategy") or case.text("mamba_scheduler_strategy"),
        chunked_prefill=False if case.number("chunked_prefill_size") == -1 else None,
        block_size=case.number("page_size"),
        speculation=Speculation(algorithm, tokens, case.text("speculative_draft_model_path")) if algorithm else None,
        quantisation=_lower(case.text("quantization")),
    )


def _trtllm(case: Case) -> Settings:
    """The options file wins over the command line."""

    def number(path: str, *dests: str) -> int | None:
        value = case.yaml(path)
        return value if isinstance(value, int) and not isinstance(value, bool) else case.number(*dests)

    spec = case.yaml("speculative_config")
    speculation = None
    if isinstance(spec, dict):
        depth = spec.get("max_draft_len", spec.get("num_nextn_predict_layers"))
        speculation = Speculation(
            str(spec.get("decoding_type", "")).lower(), depth if isinstance(depth, int) else None,
            str(spec["speculative_model"]) if spec.get("speculative_model") else None,
        )  # fmt: skip
    fraction = case.yaml("kv_cache_config.free_gpu_memory_fraction")
    if not isinstance(fraction, float):
        fraction = case.value("kv_cache_free_gpu_memory_fraction", "free_gpu_memory_fraction")
    return Settings(
        tp=number("tensor_parallel_size", "tensor_parallel_size", "tp_size") or 1,
        pp=number("pipeline_parallel_size", "pipeline_parallel_size", "pp_size") or 1,
        ep=number("moe_expert_parallel_size", "moe_expert_parallel_size", "ep_size"),
        length=_positive(number("max_seq_len", "max_seq_len")),
        sequences=number("max_batch_size", "max_batch_size"),
        batched_tokens=number("max_num_tokens", "max_num_tokens"),
        utilisation=fraction if isinstance(fraction, float) and 0 < fraction <= 1 else None,
        kv_dtype=_typed(_word(case.yaml("kv_cache_config.dtype")) or case.text("kv_cache_dtype")),
        ssm_dtype=_typed(_word(case.yaml("kv_cache_config.mamba_ssm_cache_dtype"))),
        rounding=_flag(case.yaml("kv_cache_config.mamba_ssm_stochastic_rounding")),
        rounds=number("kv_cache_config.mamba_ssm_philox_rounds"),
        moe_backend=_lower(_word(case.yaml("moe_config.backend"))),
        attention_backend=_lower(_word(case.yaml("attn_backend"))),
        prefix_caching=_flag(case.yaml("kv_cache_config.enable_block_reuse")),
        chunked_prefill=_flag(case.yaml("enable_chunked_prefill")),
        speculation=speculation,
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _lower(value: str | None) -> str | None:
    return value.lower().replace("-", "_") if isinstance(value, str) else None


def _positive(value: int | None) -> int | None:
    return value if value is not None and value > 0 else None


def _typed(value: str | None) -> str | None:
    return None if value in (None, "", "auto") else value
