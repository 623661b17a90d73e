"""Where a run took place: the host in a few lines, and the versions that may explain a difference."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Any

from nemolab.core.sizes import GIB
from nemolab.runbook.record import StepRecord

_PACKAGES = (
    "nemolab",
    "papermill",
    "nbclient",
    "ipykernel",
    "pydantic",
    "numpy",
    "pandas",
    "scipy",
    "plotly",
    "openai",
    "aiohttp",
    "xllamacpp",
)


def host() -> dict[str, Any]:
    """Facts of this host that matter to a measurement. Names no person, machine or address.

    Only what is cheap to ask, for it is asked beside a measurement: NVML, a process of its own, only where there is
    an NVIDIA device. The notebook that checks the host asks for everything.
    """
    from nemolab.host import driver, machine, nvml
    from nemolab.host.probe import Probe

    probe = Probe()
    system, cpu, memory, found = machine.system(probe), machine.cpu(probe), machine.memory(probe), driver.driver(probe)
    reply = nvml.ask(probe) if driver.nvidia_devices(probe) != 0 or found.module_loaded else nvml.Reply(gpus=())
    gpus: Any = "unknown" if reply.gpus is None else [_gpu(gpu) for gpu in reply.gpus]
    return {
        "os": system.os,
        "kernel": system.kernel,
        "architecture": system.architecture,
        "product": system.product,
        "container": system.container,
        "cpu": cpu.model,
        "cpus": cpu.logical,
        "cpus usable": cpu.usable,
        "memory GiB": _gib(memory.total),
        "memory limit GiB": _gib(memory.limit),
        "driver": reply.driver or found.version,
        "cuda": reply.cuda,
        "gpus": gpus,
    }


def _gpu(gpu: Any) -> dict[str, Any]:
    return {"name": gpu.name, "memory GiB": _gib(gpu.memory_total)}


def versions(steps: Iterable[StepRecord] = ()) -> dict[str, str]:
    """Python, packages of the lab, and the engines that the steps say they met."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    for step in steps:
        engine, its = (step.results.get(key, {}).get("value") for key in ("engine", "engine_version"))
        if engine and its:
            found[str(engine)] = str(its)
    return found


def _gib(size: int | None) -> float | None:
    return None if size is None else round(size / GIB, 1)
