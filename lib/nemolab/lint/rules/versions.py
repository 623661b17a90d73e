"""Rules on names and versions: model, engine version, entry point, sub-command."""

from __future__ import annotations

import re

from nemolab.core.finding import Finding, Severity
from nemolab.lint.case import Case, Findings, label
from nemolab.lint.near import nearest
from nemolab.lint.registry import rule
from nemolab.lint.schema import version_key

_ENGINE = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm"}


@rule("R-MINVER", "the engine is new enough for the model", "vllm", "sglang", "trtllm")
def minimum(case: Case) -> Findings:
    if case.model is None or case.version is None:
        return
    low = case.model.engines.get(_ENGINE[case.engine or ""])
    if low and version_key(case.version) < version_key(low):
        yield case.find(
            "R-MINVER",
            Severity.ERROR,
            f"{label(case)} is too old for {case.model.name}: {low} is the first that serves it",
            f"use {low} or newer",
            "catalogue: minimum versions from NVIDIA's cookbook and vllm-project/recipes",
            flag=case.launch.image or f"{_ENGINE[case.engine or '']}=={case.version}",
        )
    if (
        case.model.family == "nano"
        and case.engine == "vllm"
        and version_key(case.version) < version_key("0.17.0")
        and (not low or version_key(case.version) >= version_key(low))
    ):
        yield case.find(
            "R-MINVER",
            Severity.WARNING,
            "before 0.17.0 the log-probabilities of Nano differ from training",
            "use 0.17.0 or newer",
            "NVIDIA-NeMo/RL#2128",
            flag=f"vllm=={case.version}",
        )


@rule("R-MODEL", "the repository is one that exists")
def model_name(case: Case) -> Findings:
    name = case.model_text
    if case.context.model or not name or case.model is not None or "nemotron" not in name.lower():
        return
    if not re.fullmatch(r"nvidia/[\w.-]+", name, re.I):
        return
    from nemolab import models

    generation = re.search(r"nemotron[-_]?3", name, re.I)
    if not generation:
        return  # another generation: not in the catalogue
    if re.search(r"omni|vl|genrm|base|embed|rerank|parse|asr|content", name, re.I):
        return
    repos = [m.repo for m in models.entries().values() if m.repo]
    near = nearest(name, repos, 0.3)
    where = case.where("model_path", "model") or case.where()
    at = next((w.line for w in case.launch.words if w.text == name and w.line), 0)
    yield Finding(
        "R-MODEL",
        Severity.ERROR,
        f"{name} is not a published repository of this family",
        f"did you mean {near}?" if near else "nemolab models lists them",
        "catalogue",
        name,
        f"line {at}" if at else where,
    )


@rule("R-ENTRY", "the entry point is the one to use")
def entry(case: Case) -> Findings:
    name = case.launch.entry
    if name == "vllm.entrypoints.api_server":
        gone = case.at_least("0.33.0")
        yield case.find(
            "R-ENTRY",
            Severity.ERROR,
            "vllm.entrypoints.api_server is a demonstration server "
            "with /generate and /health only" + (", gone in 0.33.0" if gone is not False else "") + ": no /v1 routes",
            "use vllm serve MODEL",
            "vLLM 0.22.0 entrypoints/api_server.py",
            flag=name,
        )
    if name.startswith("sglang ") and name.split()[1] not in ("serve", "generate", "version"):
        yield case.find(
            "R-ENTRY",
            Severity.ERROR,
            f"`{name}` is no command: sglang has serve, generate and version",
            "use sglang serve, or python3 -m sglang.launch_server",
            "SGLang 0.5.13 and 0.5.23 cli/main.py",
            flag=name,
        )


@rule("R-SUPPORT", "where sources disagree on what is supported", "vllm")
def support(case: Case) -> Findings:
    if case.model is None or case.gpu is None:
        return
    m, gpu, s = case.model, case.gpu, case.settings
    if m.name == "ultra-nvfp4" and gpu.name == "b200" and s.gpus == 2:
        yield case.find(
            "R-SUPPORT",
            Severity.DISAGREE,
            "Ultra NVFP4 on 2 x B200: NIM lists it, every other source starts at 4; it fits only without MTP",
            "use 4 x B200",
            "NIM 2.0.6 support matrix; NVIDIA-NeMo/Nemotron usage-cookbook",
            "tensor_parallel_size",
        )
    if (
        m.family == "ultra"
        and s.speculation
        and s.mtp
        and (s.speculation.tokens or 0) > 1
        and s.length
        and s.length > 262144
    ):
        yield case.find(
            "R-SUPPORT",
            Severity.DISAGREE,
            "MTP at 1M: cookbook and card use 5 draft tokens at 256K, Dynamo's 1M profiles use none",
            "start without, then measure",
            "NVIDIA's model card; Dynamo 1.4.0 recipes",
            "speculative_config",
        )


@rule("R-VERSION", "the engine version is known", "vllm", "sglang", "trtllm")
def version(case: Case) -> Findings:
    if (
        case.version is None
        and case.schemas is not None
        and case.launch.entry not in ("trtllm-build", "options file", "trtllm-server")
    ):
        first = case.schemas.first
        yield Finding(
            "R-VERSION",
            Severity.UNKNOWN,
            f"the engine version is not in the text: held against {first.label}, and version-dependent rules abstain",
            "say --engine-version, or pin the image",
            "",
            None,
            f"line {case.launch.line}" if case.launch.line else None,
        )
    elif case.schemas is not None and not case.schemas.exact and case.version is not None and case.engine != "trtllm":
        yield Finding(
            "R-VERSION",
            Severity.INFO,
            f"no schema of {case.version}: held against {' and '.join(case.schemas.names)}",
            f"nemolab schemas extract {case.engine}=={case.version}",
            "",
            None,
            None,
        )
