"""What the readers make of a text: launches, the other commands around them, and what is wrong with the text itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nemolab.core.finding import Finding


class Word(NamedTuple):
    """A word of a command.

    Attributes:
        text: as the shell hands it over.
        line: line of the text that it starts on, from 1.
        quoted: some of it stood in quotes.
        raw: as written, quotes included.
    """

    text: str
    line: int = 0
    quoted: bool = False
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """The container that a launch runs in; what a source does not say is empty.

    Attributes:
        kind: `docker`, `compose` or `kubernetes`.
        options: options of `docker run` in their long form, each with its values ("" for a switch).
        memory: host memory limit, as written.
        startup_seconds: how long a Kubernetes start-up (or else liveness) probe allows; None without a probe.
        shm: the source gives the container shared memory.
        product: kind of GPU that a node selector asks for.
        follower: a further node of a group, which answers no requests.
    """

    kind: str
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    memory: str | None = None
    startup_seconds: float | None = None
    probes: tuple[str, ...] = ()
    shm: bool = False
    gpus: int | None = None
    product: str | None = None
    follower: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One server start.

    Attributes:
        engine: `vllm`, `sglang`, `trtllm`, `nim`, `dynamo`, `llamacpp`; None when the text does not tell.
        entry: how it is started: `vllm serve`, `sglang.launch_server`, ...
        version: engine version, from the image tag or a pinned install in the same text.
        words: the arguments after the entry.
        env: variables set for it, with the line each is set on.
        yaml: options file of TensorRT-LLM (or vLLM/SGLang `--config`), when the text contains it.
        role: `prefill` or `decode` in a disaggregated set.
    """

    engine: str | None
    entry: str
    words: tuple[Word, ...] = ()
    env: dict[str, tuple[str, int]] = field(default_factory=dict)
    version: str | None = None
    image: str | None = None
    image_line: int = 0
    container: Container | None = None
    yaml: dict[str, Any] | None = None
    yaml_lines: dict[str, int] = field(default_factory=dict)
    role: str | None = None
    line: int = 0

    @property
    def argv(self) -> list[str]:
        return [word.text for word in self.words]


@dataclass(slots=True)
class Script:
    """Everything found in a text.

    Attributes:
        launches: server starts, in order.
        commands: every simple command, launches included, for rules on what stands around a launch.
        findings: what is wrong with the text itself.
        kind: `shell`, `compose`, `kubernetes`, `unit` (of systemd), `profile`, `config` (of `vllm serve --config`) or
            `options` (of TensorRT-LLM).
    """

    text: str
    kind: str = "shell"
    launches: list[Launch] = field(default_factory=list)
    commands: list[list[Word]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


# Image name -> engine. The tag of the engine's own image is the engine's version.
_IMAGES: tuple[tuple[str, str, bool], ...] = (
    (r"(?:^|/)vllm/vllm-openai(?:[:@]|$)", "vllm", True),
    (r"(?:^|/)lmsysorg/sglang(?:[:@]|$)", "sglang", True),
    (r"nvidia/tensorrt-llm(?:/release)?(?:[:@]|$)", "trtllm", True),
    (r"ai-dynamo/vllm-runtime(?:[:@]|$)", "dynamo", False),
    (r"nvcr\.io/nim/|(?:^|/)nim/nvidia/", "nim", False),
    (r"nvcr\.io/nvidia/vllm(?:[:@]|$)", "vllm", False),
    (r"nvcr\.io/nvidia/sglang(?:[:@]|$)", "sglang", False),
    (r"ggml-org/llama\.cpp|ggerganov/llama\.cpp", "llamacpp", False),
)
# What a Dynamo image contains (NVIDIA Dynamo 1.4.0 release, vllm-runtime image).
_DYNAMO_VLLM = {"1.4.0": "0.26.0"}


def passed_through(launch: Launch) -> Launch | None:
    """The engine's command line that a NIM passes on: `NIM_PASSTHROUGH_ARGS` holds vLLM flags."""
    import shlex

    given = launch.env.get("NIM_PASSTHROUGH_ARGS")
    if launch.engine != "nim" or given is None:
        return None
    text, line = given
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return replace(launch, engine="vllm", entry="nim", words=tuple(Word(word, line) for word in words), version=None)


def image_tag(image: str) -> str | None:
    """Tag of an image reference, None without one (a digest is not a tag)."""
    name = image.split("@")[0]
    last = name.rsplit("/", 1)[-1]
    return last.split(":", 1)[1] if ":" in last else None


def image_engine(image: str) -> tuple[str | None, str | None]:
    """Engine in an image and its version, each None when the reference does not tell."""
    for pattern, engine, versioned in _IMAGES:
        if not re.search(pattern, image):
            continue
        tag = image_tag(image) or ""
        if engine == "dynamo":
            return engine, _DYNAMO_VLLM.get(tag)
        match = re.match(r"v?(\d+\.\d+\.\d+(?:(?:\.post|rc|\.dev)\d+)?)", tag)
        return engine, match[1] if versioned and match else None
    return None, None
