"""Rules on TensorRT-LLM: the options file, and the workflow that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint import hardware
from nemolab.lint.case import Case, Findings, build
from nemolab.lint.near import nearest
from nemolab.lint.registry import rule
from nemolab.lint.schema import Schema

_FREE = ("extra", "env_overrides", "lora_config", "model_kwargs")


@rule("F-YAML", "options file: known keys, allowed values, no quarrel with the command line", "trtllm")
def options_file(case: Case) -> Findings:
    if case.launch.yaml is None or case.schemas is None or case.schema is None:
        return
    tables = [schema for schema in case.schemas if schema.yaml_keys]
    if not tables:
        return
    for path, value in _leaves(case.launch.yaml):
        if path.split(".")[0] in _FREE:
            continue
        verdicts = [_verdict(schema, path, value) for schema in tables]
        if any(verdict is None for verdict in verdicts):
            continue
        message, fix = next(v for v in verdicts if v)
        severity = Severity.ERROR if tables[0].complete or len(tables) > 1 else Severity.UNKNOWN
        yield case.find(
            "F-YAML", severity, f"{message} ({' and '.join(s.label for s in tables)})", fix, tables[0].source, yaml=path
        )
    yield from _overrides(case)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _verdict(schema: Schema, path: str, value: Any) -> tuple[str, str] | None:
    """What a table says against a key, or None."""
    keys = schema.yaml_keys
    entry = keys.get(path)
    if entry is None:
        if any(key.startswith(f"{path}.") for key in keys):
            return (
                None
                if isinstance(value, dict) or value is None
                else (f"{path} must be a mapping", "indent its keys below it")
            )
        parent = path.rpartition(".")[0]
        while parent:
            if (above := keys.get(parent)) and str(above.get("type", "")).startswith(
                ("dict", "object", "any", "union", "model")
            ):
                return None  # free-form below
            parent = parent.rpartition(".")[0]
        leaf = path.rpartition(".")[2]
        same = [key for key in keys if key.rpartition(".")[2] == leaf]
        near = same[0] if same else nearest(path, keys, 0.75)
        return f"unknown key {path} in the options file: refused", f"did you mean {near}?" if near else "remove it"
    choices = entry.get("choices")
    if (
        choices
        and isinstance(value, str)
        and value not in choices
        and value.upper() not in {str(c).upper() for c in choices}
    ):
        return f"{path}: {value} is not accepted", f"one of: {', '.join(map(str, choices))}"
    kind = entry.get("type")
    if value is None:
        return None
    wrong = (
        (kind == "bool" and not isinstance(value, bool))
        or (kind == "int" and (isinstance(value, bool) or not isinstance(value, int)))
        or (kind == "float" and (isinstance(value, bool) or not isinstance(value, int | float)))
    )
    return (f"{path}: {value!r} is not of type {kind}", f"give a value of type {kind}") if wrong else None


def _overrides(case: Case) -> Iterator[Finding]:
    """The file wins over the command line: say where the two differ."""
    pairs = {
        "max_batch_size": ("max_batch_size",),
        "max_num_tokens": ("max_num_tokens",),
        "max_seq_len": ("max_seq_len",),
        "tensor_parallel_size": ("tensor_parallel_size", "tp_size"),
        "moe_expert_parallel_size": ("moe_expert_parallel_size", "ep_size"),
        "pipeline_parallel_size": ("pipeline_parallel_size", "pp_size"),
        "kv_cache_config.free_gpu_memory_fraction": ("kv_cache_free_gpu_memory_fraction", "free_gpu_memory_fraction"),
    }
    for path, dests in pairs.items():
        file, line = case.yaml(path), case.value(*dests)
        if file is not None and line is not None and file != line:
            yield case.find(
                "F-YAML",
                Severity.WARNING,
                f"{path} is {line} on the command line and {file} in the options file: the file wins",
                "say it in one place",
                "trtllm-serve: YAML over command line",
                *dests,
            )


@rule("R-TRT", "TensorRT-LLM: block reuse, MoE backend by GPU, fraction", "trtllm")
def tensorrt(case: Case) -> Findings:
    if case.launch.entry in ("trtllm-build", "trtllm-server"):
        return
    s, gpu = case.settings, case.gpu
    if s.prefix_caching and case.hybrid:
        yield case.find(
            "R-TRT",
            Severity.WARNING,
            "block reuse on a hybrid: every published profile of this family switches it off, and hits were not seen",
            "set kv_cache_config.enable_block_reuse: false, or measure hits",
            "TensorRT-LLM#12185; published profiles",
            yaml="kv_cache_config.enable_block_reuse",
        )
    backend = s.moe_backend
    if backend in ("trtllm", "cutedsl") and gpu and hardware.capability(gpu)[0] == 9:
        yield case.find(
            "R-TRT",
            Severity.WARNING,
            f"moe_config.backend {backend.upper()} on {gpu.name}: its kernels are for Blackwell",
            "use CUTLASS, or MARLIN for NVFP4",
            "published profiles by GPU",
            yaml="moe_config.backend",
        )
    if (
        case.yaml("transforms.multi_stream_moe.enabled")
        or case.yaml("transforms.multi_stream_moe.stage")
        or case.yaml("multi_stream_moe")
    ):
        yield case.find(
            "R-TRT",
            Severity.WARNING,
            "multi_stream_moe crashed Nano at concurrency 40",
            "switch it off",
            "TensorRT-LLM#10417",
            yaml="transforms.multi_stream_moe.enabled",
        )
    if s.utilisation is not None and s.utilisation < 0.5:
        yield case.find(
            "R-RANGE",
            Severity.WARNING,
            f"a free-memory fraction of {s.utilisation:g} only makes the KV "
            "pool smaller; published values are 0.7 to 0.9",
            "use 0.8",
            "published profiles",
            "kv_cache_free_gpu_memory_fraction",
            "free_gpu_memory_fraction",
        )
    if s.batched_tokens and s.batched_tokens % 128 and s.chunked_prefill and case.hybrid:
        yield case.find(
            "R-TRT",
            Severity.WARNING,
            f"a chunk of {s.batched_tokens} tokens is no multiple of the Mamba chunk "
            "of 128: chunked prefill was wrong there before a fix",
            "use a multiple of 128",
            "TensorRT-LLM#6334",
            "max_num_tokens",
            **({"yaml": "max_num_tokens"} if case.yaml("max_num_tokens") else {}),
        )
    if gpu and gpu.name == "gb10" and case.model and case.model.family == "super" and case.before("1.3.0rc9"):
        yield case.find(
            "R-TRT",
            Severity.ERROR,
            "Super on GB10 hangs while weights are mapped before 1.3.0rc9",
            "use 1.3.0rc9 or newer",
            "dgx-spark-playbooks#78",
            flag=case.launch.image,
        )
    if gpu and gpu.name == "gb10" and s.speculation and s.rounding and case.model and case.model.family == "super":
        yield case.find(
            "R-TRT",
            Severity.WARNING,
            "MTP with stochastic rounding failed to start on GB10 in 1.3.0rc15",
            "switch both off",
            "TensorRT-LLM#14575",
            yaml="speculative_config",
        )


@rule("R-REMOVED", "the engine-building workflow is gone", "trtllm")
def removed(case: Case) -> Findings:
    source = "TensorRT-LLM#15763, #15907, #15918 (removed after 1.3.0rc20, 2026-06-30)"
    if case.launch.entry == "trtllm-build":
        yield case.find(
            "R-REMOVED",
            Severity.ERROR,
            "trtllm-build is gone: this family runs on the PyTorch backend without building an engine",
            "use trtllm-serve MODEL with an options file",
            source,
            flag="trtllm-build",
        )
        from nemolab.lint.launch import Launch

        serve = build(Launch("trtllm", "trtllm-serve", env=case.launch.env), case.context, case.script).schema
        for word in case.launch.words:
            name = word.text.partition("=")[0]
            if name.startswith("--") and serve and name not in serve.spellings:
                hint = _BUILD_FLAGS.get(name)
                yield Finding(
                    "R-REMOVED",
                    Severity.ERROR,
                    f"{name} belongs to the removed build" + (f": {hint}" if hint else ""),
                    "use the YAML key of the options file",
                    source,
                    name,
                    f"line {word.line}" if word.line else None,
                )
    elif case.launch.entry == "trtllm-server":
        yield case.find(
            "F-NEVER",
            Severity.ERROR,
            "there is no command trtllm-server",
            "use trtllm-serve: an OpenAI-compatible server",
            "trtllm-serve documentation",
            flag="trtllm-server",
        )


_BUILD_FLAGS = {
    "--model_type": "never a flag of trtllm-build",
    "--context": "meant was --context_fmha enable, gone too",
    "--enable_context_fmha": "never a flag of trtllm-build",
    "--use_draft_logits": "never a flag; drafts are set in speculative_config",
    "--use_gpt_attention_plugin": "never a flag; it was --gpt_attention_plugin",
    "--use_gemm_plugin": "never a flag; it was --gemm_plugin",
    "--layernorm_plugin": "in 0.8.0.dev only",
    "--use_custom_all_reduce": "in 0.7.1 to 0.12.0.dev only",
    "--paged_kv_cache": "deprecated in 0.13; paged KV is always on",
    "--max_output_len": "replaced by max_seq_len",
    "--world_size": "set by tensor and pipeline parallelism",
    "--tp_size": "tensor_parallel_size in the options file",
    "--pp_size": "pipeline_parallel_size in the options file",
    "--kv_cache_free_gpu_mem_fraction": "kv_cache_config.free_gpu_memory_fraction in the options file",
}
