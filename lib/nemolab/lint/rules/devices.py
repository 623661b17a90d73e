"""Rules on kinds of GPU: Blackwell on SGLang, unified memory."""

from __future__ import annotations

from nemolab.core.finding import Severity
from nemolab.lint import hardware
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule


@rule("R-SGL-BLACKWELL", "Blackwell: trtllm_mha attention and the extra buffer", "sglang")
def sglang_blackwell(case: Case) -> Findings:
    s, gpu = case.settings, case.gpu
    if (
        gpu is not None
        and s.attention_backend == "trtllm_mha"
        and case.before("0.5.20")
        and not hardware.datacentre_blackwell(gpu)
    ):
        yield case.find(
            "R-SGL-BLACKWELL",
            Severity.ERROR,
            "trtllm_mha prefill is for B200, GB200, B300 and GB300 in this "
            f"version; {gpu.name} has {gpu.compute_capability}",
            "use --attention-backend flashinfer or fa3",
            "SGLang 0.5.13 server_args.py",
            "attention_backend",
        )
    if not case.hybrid or gpu is None or not hardware.datacentre_blackwell(gpu):
        return
    chosen = s.attention_backend
    drafts = s.speculation is not None
    if chosen not in ("trtllm_mha",) and not (chosen is None and case.text("prefill_attention_backend")):
        severity = (
            Severity.ERROR
            if drafts and chosen == "flashinfer" and case.version and case.version.startswith("0.5.13")
            else Severity.WARNING
        )
        what = f"attention backend {chosen}" if chosen else "no attention backend is given"
        harm = (
            "flashinfer attention gave NaN with MTP"
            if drafts
            else "the default falls back to a slower kernel (105 against 127 tokens/s)"
        )
        yield case.find(
            "R-SGL-BLACKWELL",
            severity,
            f"{what} on {gpu.name}: {harm}",
            "use --attention-backend trtllm_mha with the extra_buffer strategy"
            + (" and --page-size 64" if drafts else ""),
            "sglang#27814; sglang#26733",
            "attention_backend",
        )


@rule("R-GB10", "unified memory: utilisation, autotuning, one tenant", "vllm", "sglang", "trtllm")
def unified(case: Case) -> Findings:
    s, gpu = case.settings, case.gpu
    if gpu is None or not gpu.unified:
        return
    fraction = s.utilisation
    if case.engine == "vllm" and (fraction is None or fraction > 0.85):
        have = f"{fraction:g}" if fraction else "the default of 0.92"
        yield case.find(
            "R-GB10",
            Severity.WARNING,
            f"utilisation {have} on unified memory: the host shares it, and published guides use 0.7 to 0.85",
            "use --gpu-memory-utilization 0.8",
            "dgx-spark-playbooks; vllm-project/recipes#879",
            "gpu_memory_utilization",
        )
    if case.on("enable_flashinfer_autotune"):
        yield case.find(
            "R-GB10",
            Severity.WARNING,
            "FlashInfer autotuning adds memory pressure on unified memory: a 128K prefill reset the machine",
            "leave --enable-flashinfer-autotune out",
            "dgx-spark-playbooks#97",
            "enable_flashinfer_autotune",
        )
    if (
        len(case.script.launches) > 1
        and case.engine == "vllm"
        and case.script.launches[0] is not case.launch
        and not _nodes(case)
    ):
        yield case.find(
            "R-GB10",
            Severity.WARNING,
            "a second instance plans for the same memory and crashes the first",
            "run one instance, or split the budget",
            "vllm#38489",
            "gpu_memory_utilization",
        )


def _nodes(case: Case) -> bool:
    return any("--nnodes" in launch.argv or "--node-rank" in launch.argv for launch in case.script.launches)
