"""What is installed: Python, tools, packages, container engines; and which tokens are present."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from nemolab.host.facts import Containers, Security, Software
from nemolab.host.probe import Probe

TOOLS = ("git", "make", "curl", "docker", "podman", "nvidia-smi", "nvidia-ctk", "numactl", "systemctl")
PACKAGES = (
    "vllm", "sglang", "tensorrt-llm", "torch", "flashinfer-python", "flashinfer-cubin", "fastapi",
    "prometheus-fastapi-instrumentator", "ray", "transformers", "xllamacpp",
)  # fmt: skip
_EFI = "8be4df61-93ca-11d2-aa0d-00e098032b8c"


def software(probe: Probe) -> Software:
    """Python, command-line tools, and the versions of packages that engines trip over."""
    if not probe.live:
        return Software()
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Software(
        python=platform.python_version(),
        virtual_environment=sys.prefix != sys.base_prefix,
        tools={name: bool(probe.which(name)) for name in TOOLS},
        packages=versions,
    )


def containers(probe: Probe) -> Containers:
    """Docker (asked through its client), podman, and NVIDIA's container toolkit."""
    if not probe.live:
        return Containers()
    client = bool(probe.which("docker"))
    info = _docker_info(probe) if client else {}
    runtimes = info.get("Runtimes")
    podman = re.search(r"[\d.]+\d", probe.output("podman", "--version") or "")
    toolkit = re.search(r"version\s+v?([\d.]+\d)", probe.output("nvidia-ctk", "--version") or "")
    return Containers(
        docker=info.get("ServerVersion") or None,
        docker_client=client,
        podman=podman.group(0) if podman else None,
        toolkit=toolkit.group(1) if toolkit else None,
        nvidia_runtime="nvidia" in runtimes if isinstance(runtimes, dict) else _runtime_in_file(probe),
        default_runtime=info.get("DefaultRuntime") or None,
        cdi_specs=_cdi(probe),
    )


def _docker_info(probe: Probe) -> dict[str, Any]:
    """`docker info` as JSON; {} when the server does not answer (not running, or not allowed to this user)."""
    text = probe.output("docker", "info", "--format", "{{json .}}")
    try:
        document = json.loads(text) if text else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) and document.get("ServerVersion") else {}


def _runtime_in_file(probe: Probe) -> bool | None:
    """Whether docker's own configuration registers the runtime, when the server cannot be asked."""
    text = probe.read("/etc/docker/daemon.json")
    if text is None:
        return None
    try:
        return "nvidia" in json.loads(text).get("runtimes", {})
    except (ValueError, AttributeError):
        return None


def _cdi(probe: Probe) -> int | None:
    folders = [names for path in ("/etc/cdi", "/var/run/cdi") if (names := probe.names(path)) is not None]
    return sum("nvidia" in name for names in folders for name in names) if probe.live else None


def security(probe: Probe) -> Security:
    """Secure Boot, lockdown, and whether tokens are there. No value of a token is ever kept or returned."""
    lockdown = re.search(r"\[(\w+)\]", probe.read("/sys/kernel/security/lockdown") or "")
    enforce = probe.read("/sys/module/module/parameters/sig_enforce")
    selinux = probe.number("/sys/fs/selinux/enforce")
    return Security(
        secure_boot=_secure_boot(probe),
        lockdown=lockdown.group(1) if lockdown else None,
        module_signatures_enforced={"Y": True, "N": False}.get(enforce or ""),
        selinux={0: "permissive", 1: "enforcing"}.get(selinux) if selinux is not None else None,
        hf_token=_token(probe, ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), _hf_token_file()),
        ngc_api_key=_token(probe, ("NGC_API_KEY",), None),
    )


def _secure_boot(probe: Probe) -> bool | None:
    """The EFI variable's last byte. A machine without EFI cannot have Secure Boot."""
    if not probe.at("/sys/firmware/efi").exists():
        return False if probe.names("/sys/firmware") is not None else None
    try:
        return probe.at(f"/sys/firmware/efi/efivars/SecureBoot-{_EFI}").read_bytes()[-1:] == b"\x01"
    except OSError:
        answer = probe.output("mokutil", "--sb-state")
        return None if answer is None else "enabled" in answer


def _hf_token_file() -> Path:
    if named := os.environ.get("HF_TOKEN_PATH"):
        return Path(named)
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "token"


def _token(probe: Probe, variables: tuple[str, ...], file: Path | None) -> bool | None:
    if not probe.live:
        return None
    try:
        in_file = file is not None and file.stat().st_size > 0
    except OSError:
        in_file = False
    return in_file or any(os.environ.get(name) for name in variables)
