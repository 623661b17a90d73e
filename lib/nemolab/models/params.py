"""Parameters and results of the notebooks `11_check_model_files` and `12_plan_memory`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.core.finding import Finding, Severity
from nemolab.core.sizes import GIB
from nemolab.models.files import SAFETY_CARDS, Checkpoint
from nemolab.models.files_check import Wanted
from nemolab.models.planner import Plan
from nemolab.models.request import Request, request

CacheMode = Literal["none", "align", "all"]
Engine = Literal["vllm", "sglang", "trtllm"]


class PlanParams(Params):
    """The launch to plan, and the models and GPUs to survey."""

    model: str = Field("ultra-nvfp4", description="checkpoint: catalogue name, repository, or folder with config.json")
    gpu: str = Field("b200", description="kind of GPU")
    tensor_parallel_size: int = Field(4, ge=1, le=1024, description="ranks that each layer is split over")
    pipeline_parallel_size: int = Field(1, ge=1, le=64, description="stages that the layers are split over")
    engine: Engine = Field("vllm", description="engine")
    max_model_len: int = Field(1_048_576, ge=1, description="tokens that one request may have")
    gpu_memory_utilization: float = Field(0.9, gt=0, le=1, description="share of the memory that the engine may fill")
    kv_cache_dtype: str = Field("auto", description="type of the KV cache; auto follows the checkpoint")
    mamba_ssm_cache_dtype: str = Field("auto", description="type of the SSM state; auto follows the config")
    mamba_cache_mode: CacheMode = Field("none", description="Mamba cache mode of vLLM")
    num_speculative_tokens: int = Field(0, ge=0, le=16, description="draft tokens of the checkpoint's MTP layer")
    max_num_batched_tokens: int = Field(8192, ge=1, description="largest step of the scheduler")
    min_concurrency: float = Field(1.0, ge=0, description="requests of that length that must fit at once")
    survey_models: list[str] = Field(
        ["ultra-bf16", "ultra-nvfp4", "super-fp8", "super-nvfp4", "nano-bf16", "lightning-nvfp4"],
        description="models of the survey",
    )
    survey_gpus: list[str] = Field(
        ["h100", "h200", "b200", "gb200", "b300", "gb300", "gb10", "rtx-pro-6000"], description="GPUs of the survey"
    )

    def request(self) -> Request:
        """The launch as a question to the planner."""
        return request(
            self.model,
            self.gpu,
            tensor_parallel_size=self.tensor_parallel_size,
            pipeline_parallel_size=self.pipeline_parallel_size,
            engine=self.engine,
            **self.options(),
        )

    def options(self) -> dict[str, Any]:
        """What the survey asks of every pair too."""
        return {
            "max_model_len": self.max_model_len,
            "gpu_memory_utilization": self.gpu_memory_utilization,
            "kv_cache_dtype": self.kv_cache_dtype,
            "mamba_ssm_cache_dtype": self.mamba_ssm_cache_dtype,
            "mamba_cache_mode": self.mamba_cache_mode,
            "num_speculative_tokens": self.num_speculative_tokens,
            "max_num_batched_tokens": self.max_num_batched_tokens,
        }


class PlanResults(Results):
    """What the planner says of the launch."""

    fits: bool = Field(description="weights, overhead and the asked number of requests fit")
    fit: str = Field(description="fits, tight or does not fit")
    weights: Annotated[float, Unit("GiB", "lower")] = Field(description="weights of the fullest GPU")
    available_kv: Annotated[float, Unit("GiB", "higher")] = Field(description="memory of one GPU left for the cache")
    headroom: Annotated[float, Unit("GiB", "higher")] = Field(description="left beside one request")
    block_size: Annotated[int | None, Unit("tokens")] = Field(description="attention block of vLLM's hybrid cache")
    padding: Annotated[float | None, Unit("%")] = Field(description="padding of the Mamba page")
    request_size: Annotated[float, Unit("GiB", "lower")] = Field(description="one request of that length, per GPU")
    kv_tokens: Annotated[int, Unit("tokens", "higher")] = Field(description="KV cache size as the log would print it")
    max_concurrency: Annotated[float, Unit("requests", "higher")] = Field(description="requests of that length at once")
    max_context: Annotated[int, Unit("tokens", "higher")] = Field(description="longest single request, by memory alone")
    listed_impossible: int = Field(description="combinations on official pages that do not fit at 0.90")

    @classmethod
    def of(cls, found: Plan, min_concurrency: float, listed_impossible: int) -> PlanResults:
        """The results of a plan."""
        return cls(
            fits=found.fits and found.concurrency >= min_concurrency,
            fit=str(found.fit),
            weights=round(found.weights.total / GIB, 2),
            available_kv=round(found.available_kv / GIB, 2),
            headroom=round(found.headroom / GIB, 2),
            block_size=found.cache.block_size if found.cache else None,
            padding=found.cache.padding_percent if found.cache else None,
            request_size=round(found.request_bytes / GIB, 2),
            kv_tokens=found.kv_tokens,
            max_concurrency=round(found.concurrency, 2),
            max_context=found.max_context,
            listed_impossible=listed_impossible,
        )


class FilesParams(Params):
    """The checkpoint folder to check."""

    folder: str = Field("", description="checkpoint folder or cache snapshot; empty for the lab's own miniature")
    model: str = Field("", description="what it should be: catalogue name or repository; empty to recognise it")
    max_model_len: int = Field(0, ge=0, description="context that will be served; 0 when it does not matter")
    revision: str = Field("", pattern="^([0-9a-f]{40})?$", description="commit that it must be, 40 hex digits")
    hashes: bool = Field(False, description="hash every shard too; minutes for a large checkpoint")


class FilesResults(Results):
    """What the folder holds."""

    complete: bool = Field(description="nothing that loading needs is missing or broken")
    model: str = Field(description="catalogue name of what was found; unknown if it is none")
    errors: Annotated[int, Unit("", "lower")] = Field(description="findings that make loading fail")
    warnings: Annotated[int, Unit("", "lower")] = Field(description="findings to look at")
    shards: int = Field(description="shards that the index names")
    shards_incomplete: Annotated[int, Unit("", "lower")] = Field(description="shards missing or cut short")
    tensors_missing: Annotated[int, Unit("", "lower")] = Field(description="tensors that no complete shard holds")
    size: Annotated[float, Unit("GB")] = Field(description="shards that are there")
    dialect: str = Field(description="how config.json spells the layers")
    quantisation: str = Field(description="algorithm that the checkpoint names; none for BF16")
    revision: str = Field(description="commit of the download; unknown if nothing says so")
    licence: str = Field(description="as the card names it; unknown if it does not")
    safety_cards: int = Field(description="of bias, explainability, privacy and safety cards, how many are there")
    hashes_right: int | None = Field(description="shards with the recorded SHA-256; null when not asked")

    @classmethod
    def of(
        cls, found: Checkpoint, wanted: Wanted, findings: tuple[Finding, ...], hashes: dict[str, bool] | None
    ) -> FilesResults:
        """The results of a check."""
        from nemolab.models.config import dialect

        errors = sum(finding.severity == Severity.ERROR for finding in findings)
        return cls(
            complete=errors == 0,
            model=wanted.model.name if wanted.model else "unknown",
            errors=errors,
            warnings=sum(finding.severity == Severity.WARNING for finding in findings),
            shards=len(found.shards),
            shards_incomplete=len(found.incomplete),
            tensors_missing=found.missing_tensors,
            size=round(found.present / 1e9, 3),
            dialect=dialect(found.config or {}) or "unknown",
            quantisation=found.quantisation or "none",
            revision=found.revision or "unknown",
            licence=found.licence or ("Apache-2.0" if wanted.own else "unknown"),
            safety_cards=sum(name in found.files for name in SAFETY_CARDS),
            hashes_right=None if hashes is None else sum(hashes.values()),
        )
