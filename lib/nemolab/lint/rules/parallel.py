"""Rules on parallelism: experts, disaggregation, nodes."""

from __future__ import annotations

import re

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule


@rule("R-EP", "expert parallelism: a size the engine takes; whether it helps is disputed", "vllm", "sglang", "trtllm")
def experts(case: Case) -> Findings:
    s = case.settings
    if case.engine == "sglang" and isinstance(s.ep, int) and s.ep > 1:
        if case.hybrid and s.ep != s.tp:
            yield case.find(
                "R-EP",
                Severity.ERROR,
                f"expert parallel size {s.ep} with TP {s.tp}: it must be 1 or equal to TP for this family",
                f"use --ep-size {s.tp} or leave it out",
                "SGLang cookbook, Nemotron3-Ultra (0.5.15)",
                "ep_size",
                "expert_parallel_size",
            )
        elif case.gpu and case.gpu.name == "h100" and s.tp == 8 and case.model and case.model.family == "ultra":
            yield case.find(
                "R-EP",
                Severity.WARNING,
                "TP 8 with expert parallelism runs out of memory on H100",
                "leave expert parallelism out",
                "NVIDIA's SGLang cookbook",
                "ep_size",
                "expert_parallel_size",
            )
    if s.ep and s.ep is not True and s.ep == 1:
        return
    if s.ep and case.model and case.model.family in ("ultra", "teacher") and case.engine == "vllm":
        yield case.find(
            "R-EP",
            Severity.DISAGREE,
            "expert parallelism on Ultra: NVIDIA's cookbook, the vLLM recipes and Dynamo's day-0 "
            "profile switch it on; Dynamo 1.4.0 switches it off in every profile",
            "measure both at your concurrency",
            "NVIDIA-NeMo/Nemotron usage-cookbook; vllm-project/recipes; Dynamo 1.4.0 recipes",
            "enable_expert_parallel",
        )
    if case.engine == "trtllm" and isinstance(s.ep, int) and s.tp % s.ep:
        yield case.find(
            "R-EP",
            Severity.ERROR,
            f"expert parallel size {s.ep} does not divide TP {s.tp}",
            "use a divisor of TP",
            "TensorRT-LLM mapping",
            "moe_expert_parallel_size",
            "ep_size",
        )


@rule("R-PP-NIXL", "pipeline parallelism with NIXL is not for hybrids", "vllm")
def nixl(case: Case) -> Findings:
    config = case.document("kv_transfer_config")
    name = str((config or {}).get("kv_connector", ""))
    if case.settings.pp < 2 or not case.hybrid or not name.startswith("Nixl"):
        return
    source = "vLLM 0.27.1 and 0.33.0 nixl/base_worker.py; vllm#43366"
    if case.version is None or case.at_least("0.34.0"):
        yield case.find(
            "R-PP-NIXL",
            Severity.UNKNOWN,
            f"{name} with pipeline parallelism refuses hybrids up to vLLM 0.33; newer versions were not read",
            "say --engine-version, or use pipeline parallelism 1",
            source,
            "pipeline_parallel_size",
        )
    else:
        yield case.find(
            "R-PP-NIXL",
            Severity.ERROR,
            f"{name} does not support pipeline parallelism {case.settings.pp} for hybrids",
            "use --pipeline-parallel-size 1",
            source,
            "pipeline_parallel_size",
        )


@rule("R-HYBRID-KV", "disaggregation keeps the hybrid KV manager, and one state layout on both roles", "vllm")
def hybrid_manager(case: Case) -> Findings:
    config = case.document("kv_transfer_config")
    transfers = config is not None or "--connector" in case.launch.argv
    if not case.hybrid or not transfers:
        return
    off = case.on("disable_hybrid_kv_cache_manager")
    source = "vLLM config/vllm.py; dynamo#10741"
    if off is True:
        yield case.find(
            "R-HYBRID-KV",
            Severity.ERROR,
            "the hybrid KV manager is switched off, and this family needs it: start fails",
            "use --no-disable-hybrid-kv-cache-manager",
            source,
            "disable_hybrid_kv_cache_manager",
        )
    elif off is None and case.before("0.22.0"):
        yield case.find(
            "R-HYBRID-KV",
            Severity.ERROR,
            "a KV connector switches the hybrid KV manager off in this version, and this family needs it: start fails",
            "add --no-disable-hybrid-kv-cache-manager",
            source,
            "kv_transfer_config",
        )
    elif off is None and case.version is None:
        yield case.find(
            "R-HYBRID-KV",
            Severity.UNKNOWN,
            "up to 0.21 a KV connector switches the hybrid KV manager off; the version is unknown",
            "add --no-disable-hybrid-kv-cache-manager: every published manifest does",
            source,
            "kv_transfer_config",
        )
    layout = case.env("VLLM_SSM_CONV_STATE_LAYOUT")
    if layout == "SD":
        yield case.find(
            "R-HYBRID-KV",
            Severity.WARNING,
            "disaggregated manifests use the state layout DS on both roles, this one uses SD",
            "set VLLM_SSM_CONV_STATE_LAYOUT=DS on both roles",
            "Dynamo 1.4.0 recipes",
            env="VLLM_SSM_CONV_STATE_LAYOUT",
        )
    others = {
        launch.env["VLLM_SSM_CONV_STATE_LAYOUT"][0]
        for launch in case.script.launches
        if "VLLM_SSM_CONV_STATE_LAYOUT" in launch.env
    }
    if len(others) > 1:
        yield case.find(
            "R-HYBRID-KV",
            Severity.ERROR,
            f"the roles use different state layouts ({', '.join(sorted(others))}): transferred states are misread",
            "set the same VLLM_SSM_CONV_STATE_LAYOUT on both roles",
            "Dynamo 1.4.0 recipes",
            env="VLLM_SSM_CONV_STATE_LAYOUT",
        )


@rule("R-HYBRID-KV", "prefill and decode servers agree", "sglang")
def sglang_roles(case: Case) -> Findings:
    mode = case.text("disaggregation_mode")
    if mode not in ("prefill", "decode"):
        return
    if case.settings.pp > 1 and case.hybrid:
        yield case.find(
            "R-HYBRID-KV",
            Severity.WARNING,
            "disaggregation with pipeline parallelism is in no published profile of a hybrid",
            "use pipeline parallelism 1",
            "published profiles",
            "pp_size",
        )
    modes = {word for launch in case.script.launches for word in launch.argv} & {"prefill", "decode"}
    if len(case.script.launches) > 1 and len(modes) == 1:
        yield case.find(
            "R-HYBRID-KV",
            Severity.ERROR,
            f"every server is a {mode} server: requests need both roles and a router",
            "start the other role, and a router with --pd-disaggregation",
            "SGLang PD disaggregation documentation",
            "disaggregation_mode",
        )


@rule("R-NODES", "node flags of the engine, complete and in agreement", "vllm", "sglang")
def nodes(case: Case) -> Findings:
    count, rank = case.number("nnodes"), case.number("node_rank")
    if count and count > 1:
        address = case.text("master_addr") if case.engine == "vllm" else case.text("dist_init_addr")
        flag = "--master-addr" if case.engine == "vllm" else "--dist-init-addr"
        if not address:
            yield case.find(
                "R-NODES",
                Severity.ERROR,
                f"--nnodes {count} without {flag}: the nodes cannot find each other",
                f"add {flag} of the first node",
                "multi-node documentation of the engine",
                "nnodes",
            )
        if rank is not None and rank >= count:
            yield case.find(
                "R-NODES",
                Severity.ERROR,
                f"--node-rank {rank} with --nnodes {count}: ranks run from 0 to {count - 1}",
                f"use 0 to {count - 1}",
                "multi-node documentation of the engine",
                "node_rank",
            )
        if case.engine == "vllm" and rank and not case.on("headless"):
            yield case.find(
                "R-NODES",
                Severity.WARNING,
                f"node {rank} would start an API server of its own",
                "add --headless on every node but the first",
                "NVIDIA's four-Spark guide",
                "node_rank",
            )
        if case.text("distributed_executor_backend") == "ray":
            yield case.find(
                "R-NODES",
                Severity.WARNING,
                "--nnodes is for the multiprocessing executor; with ray the cluster decides the nodes",
                "use one of the two",
                "vLLM multi-node documentation",
                "nnodes",
            )


@rule("R-RAY", "long loads across nodes: every time-out raised", "vllm")
def ray(case: Case) -> Findings:
    across = case.text("distributed_executor_backend") == "ray" or (case.number("nnodes") or 1) > 1
    if not across or case.model is None or case.model.family not in ("ultra", "teacher"):
        return
    wanted = {"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": 300, "VLLM_ENGINE_READY_TIMEOUT_S": 600}
    low = [f"{name} ({default} s)" for name, default in wanted.items() if not _raised(case.env(name), default)]
    if case.has("distributed_timeout_seconds") and not case.option("distributed_timeout_seconds"):
        low.append("--distributed-timeout-seconds")
    if low:
        yield case.find(
            "R-RAY",
            Severity.WARNING,
            f"{case.model.size / 1e9:,.0f} GB of weights over several nodes load for "
            f"more than ten minutes; not raised: {', '.join(low)}",
            "raise them, such as to 7200",
            "NVIDIA's dual-station guide; vLLM 0.22.0 envs.py",
            "distributed_executor_backend",
            "nnodes",
        )
    for words in case.script.commands:
        for word in words:
            if re.fullmatch(r"ray(==[\w.]+)?", word.text) and "install" in [w.text for w in words]:
                yield case.find(
                    "R-RAY",
                    Severity.WARNING,
                    f"{word.text} without the extra: compiled graphs are missing",
                    f"install {word.text.replace('ray', 'ray[cgraph]', 1)}, the same on every node",
                    "NVIDIA's model card",
                    flag=word.text,
                )


def _raised(value: str | None, default: int) -> bool:
    try:
        return value is not None and float(value) > default
    except ValueError:
        return False


@rule("R-NVL", "all-reduce fusion where the GPUs are joined by NVSwitch", "vllm")
def fusion(case: Case) -> Findings:
    passes = (case.document("compilation_config") or {}).get("pass_config")
    if not isinstance(passes, dict) or case.settings.tp < 2:
        return
    fused = [key for key, value in passes.items() if value is True and "allreduce" in key]
    if fused and (
        case.settings.pp > 1
        or (case.number("nnodes") or 1) > 1
        or (case.gpu and case.gpu.name in ("gb10", "rtx-pro-6000", "l40s", "a10"))
    ):
        yield case.find(
            "R-NVL",
            Severity.WARNING,
            f"{fused[0]} is on: NVIDIA's multi-node profile switches it off",
            "set it to false, or check the topology",
            "NVIDIA's model card, multi-node command",
            "compilation_config",
        )
