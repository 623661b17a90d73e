"""Tells documents from commands and reads them: compose files, Kubernetes manifests, units, profiles, options files."""

from __future__ import annotations

import re
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint.containers import compose, kubernetes
from nemolab.lint.launch import Container, Launch, Script, Word, image_engine
from nemolab.lint.near import nearest
from nemolab.lint.units import read_unit
from nemolab.lint.yamltext import all_documents, flag_words, line_of, mapping_lines, text_of

_PROFILE_KEYS = {
    *("title", "model", "engine", "engine_version", "image", "revision", "goal", "fits", "notes", "hardware", "args"),
    *("env", "files", "frontend", "ports", "secrets", "reasons", "disagreements", "extends", "variants"),
}


# A word of these makes a mapping an options file of TensorRT-LLM.
_OPTIONS = {
    *("kv_cache_config", "moe_config", "cuda_graph_config", "speculative_config", "attn_backend", "transforms"),
    *("enable_attention_dp", "enable_chunked_prefill", "max_batch_size", "max_num_tokens", "max_seq_len", "backend"),
    *("tensor_parallel_size", "moe_expert_parallel_size", "pipeline_parallel_size", "stream_interval", "build_config"),
    *("print_iter_log", "disable_overlap_scheduler", "nvfp4_gemm_config", "scheduler_config", "torch_compile_config"),
}


def looks_like_document(text: str) -> str | None:
    """`kubernetes`, `compose`, `profile`, `config` or `options` for YAML of that kind, `unit` for one of systemd."""
    if re.search(r"(?m)^apiVersion:\s*\S", text) and re.search(r"(?m)^kind:\s*\S", text):
        return "kubernetes"
    if re.search(r"(?m)^services:\s*(#.*)?$", text):
        return "compose"
    if re.search(r"(?m)^\[Service\]\s*$", text) and re.search(r"(?m)^ExecStart=", text):
        return "unit"
    keys = re.findall(r"(?m)^([A-Za-z_][\w-]*):(?:\s|$)", text)
    commands = re.search(
        r"(?m)^\s*(?:\$ )?(?:docker|podman|vllm|python3?|sglang|trtllm-serve|export|sudo|pip|uv|cat|ray)\s", text
    )
    if commands or not keys:
        return None
    if {"model", "engine"} <= set(keys):
        return "profile"
    if any("-" in key for key in keys) and "model" in keys:
        return "config"
    return "options" if _OPTIONS & set(keys) else None


def is_profile(text: str) -> bool:
    """Whether a text is a profile's file, which may take model and engine from the file that it extends."""
    keys = set(re.findall(r"(?m)^([a-z_]+):(?:\s|$)", text))
    return "extends" in keys or {"model", "engine", "hardware"} <= keys


def read_document(text: str, kind: str) -> Script:
    """Launches of a text of that kind."""
    if kind == "unit":
        return read_unit(text)
    script = Script(text, kind)
    document, _, problem = mapping_lines(text, 1)
    if problem:
        script.findings.append(problem)
        if not isinstance(document, dict):
            return script
    documents = all_documents(text)
    if kind == "kubernetes":
        for document in documents:
            kubernetes(document, script, text)
    elif kind == "compose":
        for document in documents:
            compose(document, script, text)
    elif kind == "profile":
        profile(documents[0] if documents else {}, script, text)
    elif kind == "config":
        body = documents[0] if documents and isinstance(documents[0], dict) else {}
        model = Word(text_of(body.get("model")), line_of(text, "model:"))
        rest = flag_words({k: v for k, v in body.items() if k != "model"}, lambda key: line_of(text, f"{key}:"))
        script.launches.append(Launch("vllm", "vllm serve", (model, *rest), line=1))
    else:
        _, lines, _ = mapping_lines(text, 1)
        body = documents[0] if documents and isinstance(documents[0], dict) else {}
        script.launches.append(Launch("trtllm", "options file", yaml=body, yaml_lines=lines, line=1))
    return script


def profile(document: Any, script: Script, text: str) -> None:
    """A profile: model, engine, `args` as the engine's flags without dashes, `env`."""
    if not isinstance(document, dict):
        return
    for key in document:
        if key not in _PROFILE_KEYS:
            near = nearest(str(key), _PROFILE_KEYS)
            script.findings.append(
                Finding(
                    "R-PROFILE",
                    Severity.ERROR,
                    f"unknown key {key!r} in a profile",
                    f"did you mean {near}?" if near else "remove it",
                    "profile schema",
                    where=f"line {line_of(text, str(key))}",
                )
            )
    engine = text_of(document.get("engine"))
    words: list[Word] = []
    args = document.get("args") or {}
    if engine in ("vllm", "trtllm"):
        words.append(Word(text_of(document.get("model")), line_of(text, "model:")))
    else:
        words += [
            Word("--model-path", line_of(text, "model:")),
            Word(text_of(document.get("model")), line_of(text, "model:")),
        ]
    if isinstance(args, dict):
        words += flag_words(args, lambda key: line_of(text, f"{key}:"), dashes=engine != "trtllm")
    env = (
        {str(k): (text_of(v), line_of(text, f"{k}:")) for k, v in (document.get("env") or {}).items()}
        if isinstance(document.get("env"), dict)
        else {}
    )
    image = text_of(document.get("image")) or None
    files, hardware = document.get("files"), document.get("hardware")
    options = next((f for f in files.values() if isinstance(f, dict)), None) if isinstance(files, dict) else None
    version = text_of(document.get("engine_version")) or (image_engine(image)[1] if image else None)
    script.launches.append(
        Launch(
            engine or None,
            {"vllm": "vllm serve", "sglang": "sglang.launch_server", "trtllm": "trtllm-serve"}.get(engine, engine),
            tuple(words),
            env,
            version or None,
            image,
            line_of(text, "image:"),
            _hardware(hardware) if isinstance(hardware, dict) else None,
            options,
            line=line_of(text, "engine:"),
        )
    )


def _hardware(hardware: dict[str, Any]) -> Container:
    """The GPUs that a profile names."""
    gpus = hardware.get("gpus")
    return Container(
        "profile", gpus=gpus if isinstance(gpus, int) else None, product=text_of(hardware.get("gpu")) or None
    )
