"""Rules on images and containers: pinned, rightly named, able to hold the model."""

from __future__ import annotations

import re

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings
from nemolab.lint.launch import image_tag
from nemolab.lint.registry import rule

_MOVING = re.compile(
    r"(?i)^(latest|nightly|dev|main|edge|stable|cu\d+-nightly|nightly-.*|dev-.*|.*-latest|.*nightly.*)$"
)


@rule("R-PIN", "image and checkpoint pinned")
def pinned(case: Case) -> Findings:
    image = case.launch.image
    where = f"line {case.launch.image_line}" if case.launch.image_line else None
    from nemolab.core.finding import Finding

    if image and not image.startswith(("$", "<", "{{")) and "@sha256:" not in image:
        tag = image_tag(image)
        if tag is None or _MOVING.match(tag):
            yield Finding(
                "R-PIN",
                Severity.WARNING,
                f"the image {image} has {'no tag, which means latest' if tag is None else f'the moving tag {tag}'}: "
                "tomorrow it is another engine",
                "pin a version and its digest: IMAGE:TAG@sha256:...",
                "Nemotron#262; dgx-spark-playbooks#78",
                image,
                where,
            )
        else:
            yield Finding(
                "R-PIN",
                Severity.INFO,
                f"the image {image} has no digest: a tag can be moved",
                "add @sha256:... from the registry",
                "OCI image references",
                image,
                where,
            )
    remote = (
        case.model_text
        and re.fullmatch(r"[\w.-]+/[\w.-]+", case.model_text)
        and not case.model_text.startswith((".", "/"))
    )
    if (
        remote
        and case.engine in ("vllm", "sglang")
        and not case.option("revision")
        and case.engine == case.launch.engine
    ):
        trusts = case.on("trust_remote_code")
        yield case.find(
            "R-PIN",
            Severity.WARNING if trusts else Severity.INFO,
            "the checkpoint has no --revision"
            + (
                ", and its repository's code is run: whoever can push there decides what runs here"
                if trusts
                else ": the repository can change"
            ),
            "pin --revision to a commit (and --code-revision)",
            "Hugging Face revisions",
            "revision",
            flag="--revision",
        )


@rule("R-TRUST", "remote code only where it is needed", "vllm", "sglang", "trtllm")
def trust(case: Case) -> Findings:
    if case.on("trust_remote_code"):
        yield case.find(
            "R-TRUST",
            Severity.WARNING,
            "--trust-remote-code runs Python from the checkpoint's repository; vLLM "
            "and SGLang have native classes for this family",
            "leave it out unless the tokenizer or a parser needs it, and pin the revision",
            "vLLM 0.22.0 loads this family's config without it, measured on H200",
            "trust_remote_code",
        )


@rule("R-IMAGE", "the image exists under that name")
def image_name(case: Case) -> Findings:
    image = case.launch.image or ""
    from nemolab.core.finding import Finding

    where = f"line {case.launch.image_line}" if case.launch.image_line else None
    name = image.split("@")[0].rsplit(":", 1)[0] if image_tag(image) else image.split("@")[0]
    if name.endswith("nvcr.io/nvidia/tensorrt-llm") or name == "nvidia/tensorrt-llm":
        yield Finding(
            "R-IMAGE",
            Severity.ERROR,
            f"{name} is no image: releases are in the release repository below it",
            "use nvcr.io/nvidia/tensorrt-llm/release:VERSION",
            "NGC catalogue",
            image,
            where,
        )
    if "nim" in name and re.search(r"nim/(?!nvidia/)[\w.-]*nemotron", name):
        yield Finding(
            "R-IMAGE",
            Severity.ERROR,
            f"{name} is no image: NVIDIA's models are under nim/nvidia/",
            "such as nvcr.io/nim/nvidia/nemotron-3.5-lightning-30b-a3b:TAG or "
            "nvcr.io/nim/nvidia/nemotron-3-ultra-550b-a55b:TAG",
            "NGC catalogue",
            image,
            where,
        )
    elif re.search(r"nemotron[\w.-]*-nim$", name):
        yield Finding(
            "R-IMAGE",
            Severity.ERROR,
            f"{name}: no such image name",
            "NIM images are named after the checkpoint, such as nemotron-3.5-lightning-30b-a3b",
            "NGC catalogue",
            image,
            where,
        )
    if "nemotron" in name and (tag := image_tag(image)) and re.fullmatch(r"2[34]\.\d\d", tag):
        yield Finding(
            "R-IMAGE",
            Severity.ERROR,
            f"tag {tag} is older than the model",
            "use a published tag, such as 2.0.9-variant",
            "release dates of the family (2025-12 and later)",
            image,
            where,
        )


@rule("R-NIM", "NIM: cache, prefix reuse, precision, memory", "nim")
def nim(case: Case) -> Findings:
    container = case.launch.container
    hybrid_name = "nemotron" in (case.launch.image or "")
    reuse = case.env("NIM_ENABLE_KV_CACHE_REUSE")
    if hybrid_name and reuse is None:
        yield case.find(
            "R-NIM",
            Severity.WARNING,
            "prefix reuse is off for hybrids unless NIM_ENABLE_KV_CACHE_REUSE=1",
            "set it to 1 or 0 deliberately",
            "retail-shopping-assistant#217",
            flag="NIM_ENABLE_KV_CACHE_REUSE",
        )
    if container is None:
        return
    volumes = " ".join(container.options.get("--volume", ()) + container.options.get("--mount", ()))
    if "model_cache" in volumes:
        yield case.find(
            "R-NIM",
            Severity.WARNING,
            "the cache of a NIM is /opt/nim/.cache: this mount is not used, and "
            "the weights are downloaded again at each start",
            "mount it there: -v DIR:/opt/nim/.cache",
            "NIM documentation",
            flag="--volume",
        )
    elif container.kind == "docker" and "/opt/nim/.cache" not in volumes:
        yield case.find(
            "R-NIM",
            Severity.WARNING,
            "no volume on /opt/nim/.cache: the weights are downloaded again at each start",
            "add -v DIR:/opt/nim/.cache",
            "NIM documentation",
            flag="--volume",
        )
    if container.kind == "docker" and not container.shm:
        yield case.find(
            "R-NIM",
            Severity.WARNING,
            "no shared memory: 64 MB is the default and NIM wants 16 GB",
            "add --shm-size=16GB",
            "NIM documentation",
            flag="--shm-size",
        )
    if "--rm" in container.options and "--user" not in container.options and container.kind == "docker":
        yield case.find(
            "R-NIM",
            Severity.INFO,
            "--rm deletes the container with its logs, and without --user the cache is written as the image's user",
            "",
            "NIM documentation",
            flag="--rm",
        )
    for words in (case.launch.words,):
        for word in words:
            if re.fullmatch(r"--dtype(=.*)?", word.text) or word.text.lower() in ("int8", "int4", "fp16"):
                yield case.find(
                    "R-NIM",
                    Severity.ERROR,
                    "a NIM takes no precision on its command line: Nemotron checkpoints "
                    "are BF16, FP8 or NVFP4, and the profile decides",
                    "list-model-profiles, then NIM_MODEL_PROFILE",
                    "NIM documentation",
                    flag=word.text,
                )
                return
    precision = next(
        (p for p in ("int8", "int4", "fp16") if re.search(rf"[-:_]{p}\b", (case.launch.image or "").lower())), None
    )
    if precision:
        yield case.find(
            "R-NIM",
            Severity.ERROR,
            f"no Nemotron 3 checkpoint is published in {precision.upper()}",
            "choose BF16, FP8 or NVFP4 through NIM_MODEL_PROFILE",
            "catalogue",
            flag=case.launch.image,
        )


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
