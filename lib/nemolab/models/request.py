"""What a plan is asked for: a model, GPUs and options, spelled as vLLM spells them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.models import catalogue, units
from nemolab.models import gpus as kinds
from nemolab.models.gpus import GpuKind
from nemolab.models.model import Model
from nemolab.models.sharding import ONE_GPU, Parallel

ENGINES = ("vllm", "sglang", "trtllm")
DEFAULT_VERSION = {"vllm": "0.22.0", "sglang": "0.5.23", "trtllm": "1.3.0rc17"}
# Fraction of memory that an engine may fill unless told otherwise. vLLM's: 0.22.0 and 0.33.0, argument parser.
# SGLang chooses by GPU, TensorRT-LLM's fraction counts what is free after loading: published guides use these.
_UTILISATION = {"vllm": 0.92, "sglang": 0.85, "trtllm": 0.80}
# Choices of SGLang's flag, and `off` for --disable-radix-cache.
STRATEGIES = ("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy", "off")


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the planner.

    Attributes:
        gpu: kind of GPU; `memory` overrides its size, in bytes.
        max_model_len: None for what the checkpoint says.
        kv_cache_dtype: "auto" follows the checkpoint's KV scales, else BF16.
        available_kv: bytes for the cache as the engine's log prints them; None to derive them.
        max_num_batched_tokens: 8192 is vLLM's default for its API server on GPUs of 70 GiB and more.
        speculation: "mtp" uses the checkpoint's own layer; "draft" a drafter, whose weights are not counted.
        mamba_radix_cache_strategy: SGLang's, as its flag names it ("auto" is what the version takes); "off" without the
            radix cache.
        max_running_requests: SGLang's limit, TensorRT-LLM's max_batch_size, vLLM's max_num_seqs.
    """

    model: Model
    gpu: GpuKind
    gpus: int = 1
    memory: int | None = None
    parallel: Parallel = ONE_GPU
    engine: str = "vllm"
    engine_version: str = ""
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    mamba_cache_dtype: str = "auto"
    mamba_cache_mode: str = "none"
    mamba_radix_cache_strategy: str = "auto"
    num_speculative_tokens: int = 0
    speculation: str = "mtp"
    block_size: int = 16
    max_num_batched_tokens: int = 8192
    max_running_requests: int | None = None
    available_kv: int | None = None
    enforce_eager: bool = False
    cpu_offload: int = 0

    @property
    def length(self) -> int:
        """Tokens that one request may have."""
        return self.max_model_len or self.model.max_model_len

    @property
    def version(self) -> tuple[int, ...]:
        """The engine's version as numbers."""
        return units.version(self.version_text)

    @property
    def version_text(self) -> str:
        """The engine's version as it was given, or the one that the planner follows."""
        return self.engine_version or DEFAULT_VERSION.get(self.engine, "")

    @property
    def utilisation(self) -> float:
        """Fraction of the memory that the engine may fill."""
        return self.gpu_memory_utilization or _UTILISATION[self.engine]

    @property
    def total_memory(self) -> int:
        """Memory of one GPU as the engine sees it."""
        return self.memory or self.gpu.memory

    @property
    def mtp(self) -> bool:
        """Whether the checkpoint's MTP layer is loaded."""
        return self.num_speculative_tokens > 0 and self.speculation == "mtp"

    def but(self, **changes: Any) -> Request:
        """The same question with some options changed."""
        return replace(self, **changes)

    @property
    def dtypes(self) -> tuple[str, str, str]:
        """Types of KV cache, SSM state and convolution state, `auto` resolved."""
        kv = self.kv_cache_dtype
        if kv == "auto":  # vLLM: resolve_kv_cache_dtype_string follows modelopt's kv_cache_quant_algo
            kv = self.model.layout.kv_cache or "bfloat16"
        ssm = self.mamba_ssm_cache_dtype
        if ssm == "auto":
            ssm = self.model.shape.mamba_ssm_cache_dtype
        conv = "bfloat16" if self.mamba_cache_dtype == "auto" else self.mamba_cache_dtype
        return kv, ssm, conv

    def checked(self) -> Request:
        """This request, if it makes sense.

        Raises:
            UsageError: naming the option that does not.
        """
        if self.engine not in ENGINES:
            raise UsageError(
                f"no planner for engine {self.engine!r}", where="--engine", fix=f"one of: {', '.join(ENGINES)}"
            )
        positive = {
            "--gpus": self.gpus,
            "--max-model-len": self.length,
            "--tp": self.parallel.tensor_parallel_size,
            "--pp": self.parallel.pipeline_parallel_size,
            "--dp": self.parallel.data_parallel_size,
            "--max-num-batched-tokens": self.max_num_batched_tokens,
            "--block-size": self.block_size,
        }
        for option, value in positive.items():
            if value < 1:
                raise UsageError(f"{value} is not positive", where=option)
        if not 0 < self.utilisation <= 1:
            raise UsageError(
                f"{self.utilisation} is not between 0 and 1", where="--gpu-memory-utilization", fix="such as 0.9"
            )
        if self.num_speculative_tokens < 0 or (self.available_kv is not None and self.available_kv < 0):
            raise UsageError("a negative number", where="--num-speculative-tokens or --available-kv-gib")
        if self.mtp and not self.model.shape.has_mtp:
            raise UsageError(
                f"{self.model.name} has no MTP layer",
                where="--num-speculative-tokens",
                fix="plan without speculation, or with a drafter (--speculation draft)",
            )
        if self.parallel.gpus > self.gpus:
            raise UsageError(
                f"tp x pp x dp = {self.parallel.gpus} needs more than {self.gpus} GPUs",
                where="--gpus",
                fix=f"--gpus {self.parallel.gpus}",
            )
        if self.parallel.pipeline_parallel_size > len(self.model.shape.layers):
            raise UsageError("more pipeline stages than layers", where="--pp")
        if self.mamba_radix_cache_strategy not in STRATEGIES:
            raise UsageError(
                f"no strategy {self.mamba_radix_cache_strategy!r}",
                where="--mamba-radix-cache-strategy",
                fix=f"one of: {', '.join(STRATEGIES)}",
            )
        for option, name in zip(
            ("--kv-cache-dtype", "--mamba-ssm-cache-dtype", "--mamba-cache-dtype"), self.dtypes, strict=True
        ):
            units.dtype_size(name, option)
        return self


def request(
    model: Model | str,
    gpu: GpuKind | str,
    *,
    gpus: int | None = None,
    tensor_parallel_size: int = 1,
    pipeline_parallel_size: int = 1,
    data_parallel_size: int = 1,
    enable_expert_parallel: bool = False,
    **options: Any,
) -> Request:
    """A question from names: `request("ultra-nvfp4", "b200", tensor_parallel_size=4, max_model_len=1 << 20)`.

    `gpus` defaults to what the parallelism needs; `options` are the fields of `Request`.

    Raises:
        UsageError: no such model or GPU.
    """
    parallel = Parallel(tensor_parallel_size, pipeline_parallel_size, data_parallel_size, enable_expert_parallel)
    return Request(
        model=catalogue.find(model) if isinstance(model, str) else model,
        gpu=kinds.find(gpu) if isinstance(gpu, str) else gpu,
        gpus=gpus or parallel.gpus,
        parallel=parallel,
        **options,
    )
