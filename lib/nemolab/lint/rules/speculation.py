"""R-SPEC: speculative decoding."""

from __future__ import annotations

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule

_VLLM = ("speculative_config", "spec_method")


@rule("R-SPEC", "speculation: with one pipeline stage, a drafter, enough tokens", "vllm")
def vllm(case: Case) -> Findings:
    s, spec = case.settings, case.settings.speculation
    if spec is None:
        return
    if s.pp > 1:
        yield case.find(
            "R-SPEC",
            Severity.ERROR,
            f"speculation with pipeline parallelism {s.pp}: the drafter is missing "
            "on a stage and the engine crashes (open report)",
            "drop speculation, or use tensor parallelism instead",
            "vllm#30436",
            *_VLLM,
        )
    if spec.method == "mtp" and case.model and case.model.architecture and not case.model.shape.has_mtp:
        yield case.find(
            "R-SPEC",
            Severity.ERROR,
            f"{case.model.name} has no MTP layer: method mtp cannot load",
            "drop --speculative-config",
            "config.json of the checkpoint",
            *_VLLM,
        )
    if spec.method in ("dspark", "dflash") and not spec.drafter:
        yield case.find(
            "R-SPEC",
            Severity.ERROR,
            f'method {spec.method} needs a drafter checkpoint in "model"',
            'add "model": "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4-DSpark"',
            "NVIDIA's Lightning cookbook",
            *_VLLM,
        )
    drafter = (spec.drafter or "").lower()
    if not spec.method and ("dspark" in drafter or "dflash" in drafter):
        yield case.find(
            "R-SPEC",
            Severity.WARNING,
            "the drafter is named, but no method: vLLM then guesses it from the drafter's config",
            f'add "method": "{"dspark" if "dspark" in drafter else "dflash"}"',
            "vLLM config/speculative.py",
            *_VLLM,
        )
    dspark = spec.method == "dspark" or "dspark" in drafter
    if dspark and case.before("0.27.1"):
        yield case.find(
            "R-SPEC",
            Severity.ERROR,
            f"quantised DSpark drafters need vLLM 0.27.1; this is {case.version}",
            "use vllm/vllm-openai:v0.27.1 or newer",
            "NVIDIA's Lightning cookbook (0.27.1 is the first with the fix)",
            *_VLLM,
        )
    if dspark and spec.tokens is not None and spec.tokens < 3:
        yield case.find(
            "R-SPEC",
            Severity.WARNING,
            f"{spec.tokens} draft tokens are fewer than the published DSpark block "
            "of 3: vLLM refuses fewer than the drafter's block",
            "use num_speculative_tokens 3 (or the drafter's own block)",
            "vllm#50012",
            *_VLLM,
        )
    if dspark and case.gpu and case.gpu.name == "gb10" and s.kv_dtype and s.kv_dtype.startswith("fp8"):
        yield case.find(
            "R-GB10",
            Severity.ERROR,
            "an fp8 KV cache next to DSpark fails on GB10 (error 715 in an FP8 GEMM)",
            "leave --kv-cache-dtype at its default",
            "vllm-project/recipes#836; dgx-spark-playbooks#107",
            "kv_cache_dtype",
        )
    if spec.tokens and spec.tokens > 8:
        yield case.find(
            "R-SPEC",
            Severity.WARNING,
            f"{spec.tokens} draft tokens: published depths are 1 to 5, and the best measured draft length is 6",
            "use 3 to 5",
            "Nemotron 3 Ultra technical report; published profiles",
            *_VLLM,
        )
    if s.mtp and case.env("VLLM_FLASHINFER_MOE_BACKEND") == "latency":
        yield case.find(
            "R-MOE-BACKEND",
            Severity.ERROR,
            "VLLM_FLASHINFER_MOE_BACKEND=latency breaks the MTP drafter of this family",
            "leave the variable out, or drop speculation",
            "vllm#39809",
            env="VLLM_FLASHINFER_MOE_BACKEND",
        )
    if (
        spec.method
        and s.prefix_caching is None
        and case.context
        and spec.tokens
        and s.length
        and case.model
        and s.length > 524288
        and s.mtp
    ):
        yield case.find(
            "R-SPEC",
            Severity.INFO,
            "the official 1M profiles run without speculation: MTP adds 17 to 25 % to the cache of each request",
            "",
            "Dynamo 1.4.0 recipes; KV arithmetic",
            *_VLLM,
        )


@rule("R-SPEC", "speculation: steps, tokens, the radix cache", "sglang")
def sglang(case: Case) -> Findings:
    s, spec = case.settings, case.settings.speculation
    if spec is None:
        return
    known = case.schema.registries.get("speculative_algorithm") if case.schema else None
    if (
        known
        and spec.method.upper() not in known
        and case.schemas
        and all(
            spec.method.upper() not in (schema.registries.get("speculative_algorithm") or [spec.method.upper()])
            for schema in case.schemas
        )
    ):
        yield case.find(
            "F-REGISTRY",
            Severity.ERROR,
            f"--speculative-algorithm {case.text('speculative_algorithm')} is not an algorithm of "
            f"SGLang {case.version or ''}: the parser accepts it and the engine fails when it starts".replace(
                " :", ":"
            ),
            f"one of: {', '.join(known)}",
            case.schema.source if case.schema else "",
            "speculative_algorithm",
        )
    steps, topk = case.number("speculative_num_steps"), case.number("speculative_eagle_topk")
    if (
        spec.method in ("eagle", "nextn", "eagle3")
        and steps
        and spec.tokens
        and topk in (1, None)
        and spec.tokens != steps + 1
    ):
        yield case.find(
            "R-SPEC",
            Severity.WARNING,
            f"{steps} steps with top-k 1 draft {steps + 1} tokens, but {spec.tokens} are asked for",
            f"use --speculative-num-draft-tokens {steps + 1}",
            "SGLang speculative decoding; NVIDIA's Lightning profile 5/1/6",
            "speculative_num_draft_tokens",
        )
    if not case.hybrid or case.on("disable_radix_cache"):
        return
    strategy = s.cache_mode or "auto"
    if strategy in ("auto", "no_buffer") and case.before("0.5.14") and case.at_least("0.5.7"):
        yield case.find(
            "R-SPEC",
            Severity.ERROR,
            f"speculation with the radix cache needs the extra_buffer strategy on this family; {strategy} "
            + ("means no_buffer before 0.5.14, which " if strategy == "auto" else "")
            + "is refused",
            "add --mamba-scheduler-strategy extra_buffer, or --disable-radix-cache",
            "SGLang 0.5.13 server_args.py; sglang#27814",
            "mamba_scheduler_strategy",
            "mamba_radix_cache_strategy",
            "speculative_algorithm",
        )
    elif strategy == "no_buffer":
        yield case.find(
            "R-SPEC",
            Severity.WARNING,
            "no_buffer goes without the overlap schedule, and was refused with speculation before 0.5.14",
            "use --mamba-radix-cache-strategy extra_buffer",
            "SGLang 0.5.23 arg_groups/mamba_hook.py",
            "mamba_radix_cache_strategy",
        )


@rule("R-SPEC", "speculation: one name for the depth", "trtllm")
def trtllm(case: Case) -> Findings:
    spec = case.yaml("speculative_config")
    if not isinstance(spec, dict):
        return
    source = "TensorRT-LLM, from 1.3.0rc16; NVIDIA's model card"
    if "max_draft_len" in spec and "num_nextn_predict_layers" in spec:
        yield case.find(
            "R-SPEC",
            Severity.WARNING,
            "both draft-length keys are given: max_draft_len decides, num_nextn_predict_layers is deprecated",
            "keep max_draft_len",
            source,
            yaml="speculative_config.num_nextn_predict_layers",
        )
    elif "num_nextn_predict_layers" in spec and case.before("1.3.0rc16") is not True:
        yield case.find(
            "R-DEPRECATED",
            Severity.WARNING,
            "num_nextn_predict_layers is deprecated",
            "use max_draft_len",
            source,
            yaml="speculative_config.num_nextn_predict_layers",
        )
    if case.settings.pp > 1:
        yield case.find(
            "R-SPEC",
            Severity.WARNING,
            "speculation with pipeline parallelism is in no published profile",
            "test it, or drop one",
            "published profiles",
            yaml="speculative_config",
        )
