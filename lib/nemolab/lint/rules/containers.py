"""Rules on containers: options that contradict each other, probes, memory."""

from __future__ import annotations

import re

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule


@rule("R-CONTAINER", "container options that contradict each other or starve the server")
def container(case: Case) -> Findings:
    box = case.launch.container
    if box is None:
        return
    options = box.options
    if "--shm-size" in options and options.get("--ipc") == ("host",):
        yield case.find(
            "R-CONTAINER",
            Severity.WARNING,
            "--shm-size has no effect with --ipc=host: the host's shared memory is used",
            "keep one of the two",
            "docker run reference",
            flag="--shm-size",
        )
    if options.get("--network") == ("host",) and "--publish" in options:
        yield case.find(
            "R-CONTAINER",
            Severity.WARNING,
            "published ports have no effect with --network=host",
            "drop -p, or host networking",
            "docker run reference",
            flag="--publish",
        )
    if box.kind == "docker" and case.engine in ("vllm", "sglang", "trtllm") and not box.shm and case.settings.gpus > 1:
        yield case.find(
            "R-CONTAINER",
            Severity.WARNING,
            f"{case.settings.gpus} ranks share 64 MB of shared memory by default: NCCL fails or falls back",
            "add --ipc=host or --shm-size=16g",
            "vLLM container documentation",
            flag="--shm-size",
        )
    if (
        box.kind == "docker"
        and "--gpus" not in options
        and "--runtime" not in options
        and "--device" not in options
        and case.launch.engine not in (None, "llamacpp")
    ):
        yield case.find(
            "R-CONTAINER",
            Severity.WARNING,
            "no --gpus: the container sees no GPU",
            "add --gpus all",
            "NVIDIA Container Toolkit documentation",
            flag="--gpus",
        )
    if box.kind == "kubernetes":
        yield from _kubernetes(case)


def _kubernetes(case: Case) -> Findings:
    box = case.launch.container
    assert box is not None
    model = case.model
    if (
        model is not None
        and box.memory
        and (limit := _bytes(box.memory)) is not None
        and limit < model.size * 0.25 / max(1, case.settings.pp)
    ):
        yield case.find(
            "R-CONTAINER",
            Severity.WARNING,
            f"a host memory limit of {box.memory}: loading {model.size / 1e9:.0f} "
            "GB of weights needs more, and the pod is killed",
            "give at least a quarter of the checkpoint, or leave the limit out",
            "planner; Kubernetes memory limits",
            flag="resources.limits.memory",
        )
    elif model is None and box.memory and (limit := _bytes(box.memory)) is not None and limit < 32 * 2**30:
        yield case.find(
            "R-CONTAINER",
            Severity.WARNING,
            f"a host memory limit of {box.memory} is below what loading and the server's processes need",
            "give at least 32Gi and a quarter of the checkpoint",
            "Kubernetes memory limits",
            flag="resources.limits.memory",
        )
    if not box.shm:
        yield case.find(
            "R-CONTAINER",
            Severity.WARNING,
            "no memory-backed volume: /dev/shm has 64 MB",
            "mount an emptyDir with medium: Memory on /dev/shm",
            "Kubernetes emptyDir",
            flag="volumes",
        )
    if box.follower:
        return
    if "startupProbe" not in box.probes:
        yield case.find(
            "M-READY",
            Severity.WARNING,
            "no startupProbe: the liveness probe restarts a server that is still loading",
            "add a startupProbe longer than the predicted start",
            "measured start of 165 s for Nano; Ultra takes tens of minutes",
            flag="startupProbe",
        )
    elif box.startup_seconds is not None and model is not None:
        expected = 165 + model.size / 1e9 / (max(1, case.settings.gpus)) * 1.5
        if box.startup_seconds < expected:
            yield case.find(
                "M-READY",
                Severity.WARNING,
                f"the startup probe allows {box.startup_seconds:.0f} s, below the expected "
                f"{expected:.0f} s (weights, compile, warm-up, graphs)",
                "raise failureThreshold x periodSeconds",
                "measured phases on H200, vLLM 0.22.0; weights at 0.7 GB/s a GPU",
                flag="startupProbe",
            )


def _bytes(text: str) -> int | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?", text.strip(), re.I)
    if not match:
        return None
    unit = (match[2] or "").upper()
    power = "KMGT".find(unit[:1]) + 1 if unit else 0
    return int(float(match[1]) * (1024 if unit.endswith("I") else 1000) ** power)
