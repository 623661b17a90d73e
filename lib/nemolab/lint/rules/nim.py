"""R-NIM: cache, prefix reuse, precision, shared memory of a NIM."""

from __future__ import annotations

import re

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule


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
