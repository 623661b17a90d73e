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
