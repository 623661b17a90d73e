"""Installing an engine as a container image: log in where the registry wants it, pull, say what is pinned.

No key passes through here: `docker login` reads it from its standard input, which is filled from the environment
variable that the registry's documentation names.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.core.secrets import redact


@dataclass(frozen=True, slots=True)
class Image:
    """A published image of an engine.

    Attributes:
        reference: with tag, and with a digest where it is known.
        holds: the version of the engine inside, where the tag does not say it.
        key_env: variable with the registry's key, "" where images can be pulled without one.
        source: who names it.
    """

    engine: str
    version: str
    reference: str
    holds: str = ""
    key_env: str = ""
    source: str = ""

    @property
    def pinned(self) -> bool:
        """Whether the reference means one image for ever."""
        return "@sha256:" in self.reference

    @property
    def registry(self) -> str:
        """The registry's host."""
        return registry_of(self.reference)


# The user that NVIDIA's registry knows; the key is the password. docs.nvidia.com/ngc, "Accessing the NGC registry".
NGC_USER, NGC_KEY, NGC = "$oauthtoken", "NGC_API_KEY", "nvcr.io"

# Digests as public Dockerfiles and Go sources pin them; a tag without one can move.
_COOKBOOK = "NVIDIA-NeMo/Nemotron cookbook, 2026"
_DIGESTS = {
    "vllm/vllm-openai:v0.22.0": "0fec7ec5f3e6bc168e54899935fb0557da908a4832a1dbc88e2debcf2f889416",
    "vllm/vllm-openai:v0.27.1": "0a51ea5b4ae2dc5d81890e5173f54203d2a3ae0cfffe51b8fd2afd4391bfd967",
    "lmsysorg/sglang:v0.5.15": "af911a303a12516adf23ab8bb89c8fdf161ec0ceafc278a436fa111f5c118988",
    "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.0": "8401411dc8e968eff9310462102491509e3f93d3ce03d6febc8d5566f067a7b1",
}


def _image(engine: str, version: str, name: str, source: str = _COOKBOOK, holds: str = "") -> Image:
    digest = _DIGESTS.get(name)
    reference = f"{name}@sha256:{digest}" if digest else name
    return Image(engine, version, reference, holds, NGC_KEY if registry_of(name) == NGC else "", source)


def registry_of(reference: str) -> str:
    """Host of the registry that an image reference names; Docker's own when it names none."""
    first, _, rest = reference.partition("/")
    return first if rest and ("." in first or ":" in first or first == "localhost") else "docker.io"


IMAGES: tuple[Image, ...] = (
    _image("vllm", "0.22.0", "vllm/vllm-openai:v0.22.0"),
    _image("vllm", "0.25.1", "vllm/vllm-openai:v0.25.1-aarch64"),
    _image("vllm", "0.27.1", "vllm/vllm-openai:v0.27.1"),
    _image("sglang", "0.5.12.post1", "lmsysorg/sglang:v0.5.12.post1"),
    _image("sglang", "0.5.15", "lmsysorg/sglang:v0.5.15", "SGLang's page of the model, 2026"),
    _image("trtllm", "1.3.0rc17", "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc17"),
    _image("trtllm", "1.3.0rc24", "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc24"),
    _image("nim", "2.0.9", "nvcr.io/nim/nvidia/nemotron-3-nano:2.0.9", "NGC catalogue, 2026"),
    _image(
        "dynamo",
        "1.4.0",
        "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.0",
        "ai-dynamo/dynamo 1.4.0 release",
        "vLLM 0.26.0, CUDA 13.0",
    ),
)


def find(engine: str, version: str = "") -> Image:
    """The image of an engine version; "" takes the newest known.

    Raises:
        UsageError: none is known.
    """
    known = [image for image in IMAGES if image.engine == engine]
    for image in reversed(known):
        if version in ("", image.version):
            return image
    raise UsageError(
        f"no image of {engine} {version} is known".rstrip(),
        fix=f"one of: {', '.join(image.version for image in known)}; or name one with --image" if known else "--image",
    )


def of(engine: str, reference: str) -> Image:
    """An image by its reference, such as a profile's."""
    known = next((image for image in IMAGES if image.reference == reference), None)
    key = NGC_KEY if registry_of(reference) == NGC else ""
    return known or Image(engine, reference.rpartition(":")[2], reference, key_env=key, source="the profile")


def check(image: Image) -> list[Finding]:
    """What should be known before the image is pulled."""
    found = []
    if not image.pinned:
        found.append(
            Finding(
                "I-201",
                Severity.WARNING,
                f"{image.reference} is named by tag: what it means can change",
                "pull it once, then write NAME:TAG@sha256:... with the digest that `nemolab install` prints",
                source=image.source,
                where=image.reference,
            )
        )
    if image.key_env and not os.environ.get(image.key_env):
        found.append(
            Finding(
                "I-202",
                Severity.INFO,
                f"{image.key_env} is not set; {image.registry} gives some images only to those who are logged in",
                f"export {image.key_env}, from ngc.nvidia.com",
                source="NIM for LLMs documentation",
                where=image.registry,
            )
        )
    if shutil.which("docker") is None:
        found.append(
            Finding("I-203", Severity.ERROR, "docker is not there", "install Docker 24 or newer", where="docker")
        )
    return found


def commands(image: Image) -> list[str]:
    """The steps as a person types them; the key is named, not shown."""
    login = f"docker login {image.registry} --username '{NGC_USER}' --password-stdin"
    steps = [f'printf %s "${image.key_env}" | {login}'] if image.key_env else []
    return [*steps, f"docker pull {image.reference}"]


def size(image: Image) -> int | None:
    """Bytes of the image's layers, compressed, as the registry tells; None when it does not.

    Raises:
        NemolabError: docker is not there.
    """
    try:
        found = json.loads(_docker(["manifest", "inspect", "--verbose", image.reference]))
    except (ValueError, NemolabError):
        return None
    wanted = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    for entry in found if isinstance(found, list) else [found]:
        described = entry.get("Descriptor", {}).get("platform", {}).get("architecture", wanted)
        manifest = entry.get("OCIManifest") or entry.get("SchemaV2Manifest") or {}
        if described == wanted and manifest.get("layers"):
            return sum(int(layer["size"]) for layer in manifest["layers"])
    return None


def pull(image: Image, on_line: Callable[[str], None] | None = None) -> str:
    """Log in where a key is there, pull, and return the digest that was pulled.

    Docker keeps the layers that it has finished, so an interrupted pull goes on when it is started again.

    Raises:
        UsageError: docker is not there.
        NemolabError: docker failed; says what it said.
    """
    if refused := [f for f in check(image) if f.severity is Severity.ERROR]:
        raise UsageError(refused[0].message, fix=refused[0].fix)
    if image.key_env and (key := os.environ.get(image.key_env)):
        _docker(["login", image.registry, "--username", NGC_USER, "--password-stdin"], given=key)
    _docker(["pull", image.reference], on_line=on_line)
    said = _docker(["image", "inspect", "--format", "{{json .RepoDigests}}", image.reference])
    try:
        digests = json.loads(said)
    except ValueError:
        digests = []
    return str(digests[0]).rpartition("@")[2] if digests else ""


def _docker(arguments: list[str], *, given: str = "", on_line: Callable[[str], None] | None = None) -> str:
    if shutil.which("docker") is None:
        raise NemolabError("docker is not there", fix="install Docker 24 or newer")
    process = subprocess.Popen(
        ["docker", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(given)
        process.stdin.close()
        said = []
        for line in process.stdout:
            said.append(line)
            if on_line:
                on_line(line.rstrip())
        process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.returncode:
        tail = redact("".join(said)).strip().splitlines()[-5:]
        fix = "read what docker says"
        if any(word in "".join(said).lower() for word in ("unauthorized", "denied", "authentication")):
            fix = f"export {NGC_KEY} with a key that may pull this image, and run it again"
        raise NemolabError(f"docker {arguments[0]} failed: {' / '.join(tail)}", where=arguments[-1], fix=fix)
    return "".join(said)
