"""Rules on kernels by GPU: MoE and attention backends, quantisation, unified memory."""

from __future__ import annotations

from nemolab.core.finding import Severity
from nemolab.lint import hardware
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule


@rule("R-MOE-BACKEND", "MoE backends known to fail or to corrupt, the automatic choice included", "vllm")
def moe(case: Case) -> Findings:
    s, model, gpu = case.settings, case.model, case.gpu
    backend = s.moe_backend or "auto"
    nano = model is not None and model.family in ("nano", "lightning") and model.precision == "nvfp4"
    affected = bool(case.version and case.version.startswith(("0.26.", "0.27.")))
    if nano and affected and backend in ("auto", "flashinfer_trtllm") and model is not None and model.family == "nano":
        if gpu is None:
            yield case.find(
                "R-MOE-BACKEND",
                Severity.UNKNOWN,
                "on B200 this version picks flashinfer_trtllm, which gives fluent but wrong output; the GPU is unknown",
                "say --gpu, or use --moe-backend flashinfer_cutlass",
                "vllm#52308",
                "moe_backend",
            )
        elif hardware.datacentre_blackwell(gpu):
            yield case.find(
                "R-MOE-BACKEND",
                Severity.ERROR,
                f"{'auto selects' if backend == 'auto' else 'chosen:'} flashinfer_trtllm on {gpu.name}, "
                "known to give fluent but wrong output in 0.26 and 0.27",
                "use --moe-backend flashinfer_cutlass",
                "vllm#52308",
                "moe_backend",
            )
    if gpu and hardware.capability(gpu)[0] == 12 and model and model.precision == "nvfp4" and case.before("0.15.1"):
        yield case.find(
            "R-MOE-BACKEND",
            Severity.ERROR,
            f"FlashInfer's CUTLASS MoE refuses compute capability {gpu.compute_capability} in this version",
            "use a newer vLLM",
            "vllm#33417",
            "moe_backend",
        )
    if gpu and backend in ("flashinfer_trtllm", "cutedsl", "flashinfer_cutedsl") and hardware.capability(gpu)[0] < 10:
        yield case.find(
            "R-MOE-BACKEND",
            Severity.ERROR,
            f"--moe-backend {backend} is for Blackwell; {gpu.name} has compute capability {gpu.compute_capability}",
            "leave it at auto, or use marlin for NVFP4",
            "vLLM MoE backends by architecture",
            "moe_backend",
        )
    setting = case.env("VLLM_FLASHINFER_MOE_BACKEND")
    if setting and gpu and hardware.capability(gpu)[0] < 10:
        yield case.find(
            "R-MOE-BACKEND",
            Severity.WARNING,
            f"VLLM_FLASHINFER_MOE_BACKEND={setting} is read only on compute capability 10.0",
            "leave it out",
            "vLLM 0.22.0 source",
            env="VLLM_FLASHINFER_MOE_BACKEND",
        )


@rule("R-QUANT", "the quantisation named is the checkpoint's, and the GPU can run it", "vllm", "sglang", "trtllm")
def quantisation(case: Case) -> Findings:
    s, model, gpu = case.settings, case.model, case.gpu
    named = s.quantisation
    if model is not None and named and named not in ("auto", "none"):
        fits = {"nvfp4": ("modelopt", "fp4", "humming", "auto"), "fp8": ("modelopt", "fp8", "auto")}.get(
            model.precision, ()
        )
        if model.precision == "bf16" and named in (
            "awq",
            "gptq",
            "modelopt",
            "modelopt_fp4",
            "modelopt_mixed",
            "awq_marlin",
            "gptq_marlin",
        ):
            yield case.find(
                "R-QUANT",
                Severity.ERROR,
                f"--quantization {named} on a BF16 checkpoint: it carries no such weights",
                "leave it out, or use the NVFP4 checkpoint",
                "config.json of the checkpoint",
                "quantization",
            )
        elif model.precision in ("nvfp4", "fp8") and not any(word in named for word in fits):
            yield case.find(
                "R-QUANT",
                Severity.ERROR,
                f"--quantization {named}, but {model.name} is quantised with modelopt ({model.precision})",
                "leave it out: the engine reads it from the checkpoint",
                "hf_quant_config.json of the checkpoint",
                "quantization",
            )
    if model is not None and model.precision == "nvfp4" and gpu is not None:
        major = hardware.capability(gpu)[0]
        if major < 8:
            yield case.find(
                "R-QUANT",
                Severity.ERROR,
                f"NVFP4 has no kernels for compute capability {gpu.compute_capability}",
                "use a newer GPU",
                "vLLM quantisation support",
                *("tensor_parallel_size", "tp_size"),
            )
        elif major < 10 and case.engine == "sglang" and model.family == "ultra":
            yield case.find(
                "R-SUPPORT",
                Severity.DISAGREE,
                "Ultra NVFP4 on Hopper: NVIDIA's cookbook lists it for SGLang, SGLang's own page says Blackwell only",
                "test it, or use vLLM",
                "NVIDIA-NeMo/Nemotron usage-cookbook; sgl-project cookbook Nemotron3-Ultra",
                "tp_size",
            )
        elif major < 10 and case.engine == "trtllm" and model.family == "ultra":
            yield case.find(
                "R-SUPPORT",
                Severity.DISAGREE,
                "Ultra NVFP4 on Hopper: TensorRT-LLM's guide has it as a slower W4A16 "
                "fallback, NVIDIA's notebook says Blackwell only",
                "test it, or use vLLM",
                "TensorRT-LLM deployment guide; NVIDIA-NeMo/Nemotron usage-cookbook",
                "tensor_parallel_size",
            )
        elif major < 10:
            yield case.find(
                "R-QUANT",
                Severity.INFO,
                f"{gpu.name} has no FP4 units: the weights are multiplied as 16-bit values (W4A16)",
                "",
                "Nemotron 3 Ultra technical report",
                *("tensor_parallel_size", "tp_size"),
            )
    if (
        model is not None
        and model.precision == "nvfp4"
        and model.family == "nano"
        and gpu is not None
        and hardware.capability(gpu) == (12, 0)
        and case.engine == "vllm"
    ):
        yield case.find(
            "R-MOE-BACKEND",
            Severity.WARNING,
            "Nano NVFP4 on compute capability 12.0 was refused: no NVFP4 MoE backend for the configuration",
            "test the start-up, or use another precision",
            "vllm#35065",
            "moe_backend",
        )
    if s.kv_dtype == "nvfp4" and case.hybrid:
        yield case.find(
            "R-QUANT",
            Severity.WARNING,
            "an NVFP4 KV cache: no published profile of this family uses it",
            "use fp8, as the published profiles do",
            "published profiles",
            "kv_cache_dtype",
            **({"yaml": "kv_cache_config.dtype"} if case.yaml("kv_cache_config.dtype") else {}),
        )
    if s.kv_dtype and "fp8" in s.kv_dtype and gpu and hardware.capability(gpu) < (8, 9):
        yield case.find(
            "R-QUANT",
            Severity.WARNING,
            f"{gpu.name} has no FP8 units: an fp8 KV cache is emulated or refused",
            "use bfloat16",
            "vLLM quantised KV cache documentation",
            "kv_cache_dtype",
        )


@rule("R-EAGER", "CUDA graphs stay on in production", "vllm")
def eager(case: Case) -> Findings:
    if case.settings.eager:
        yield case.find(
            "R-EAGER",
            Severity.WARNING,
            "--enforce-eager switches CUDA graphs off: decode is slower, and hybrids run with graphs by default",
            "drop it outside debugging",
            "vLLM 0.22.0 model_executor/models/config.py",
            "enforce_eager",
        )
    if case.on("disable_log_stats"):
        yield case.find(
            "R-STATS",
            Severity.WARNING,
            "--disable-log-stats also removes the statistics that dashboards and autoscaling read",
            "drop it where the server is monitored",
            "vLLM metrics documentation",
            "disable_log_stats",
        )
    s = case.settings
    tiny = case.model is not None and case.model.family == "miniature"
    if s.utilisation is not None and s.utilisation < 0.5 and not tiny:
        yield case.find(
            "R-RANGE",
            Severity.WARNING,
            f"utilisation {s.utilisation:g} leaves most of the memory unused; published values are 0.85 to 0.95",
            "use 0.9",
            "published profiles",
            "gpu_memory_utilization",
        )


@rule("M-CUBIN", "the automatic MoE kernels are built at start without the cubin package", "vllm")
def cubin(case: Case) -> Findings:
    install = [w.text for words in case.script.commands if any(x.text == "install" for x in words) for w in words]
    if (
        any(t.startswith("vllm") for t in install)
        and not any("cubin" in t for t in install)
        and case.settings.moe_backend in (None, "auto")
        and case.hybrid
    ):
        yield case.find(
            "M-CUBIN",
            Severity.WARNING,
            "without the flashinfer-cubin package the MoE kernels are compiled at start: over 6 minutes",
            "install flashinfer-cubin of the same version, or use --moe-backend triton",
            "measured on vLLM 0.22.0, H200",
            "moe_backend",
        )
