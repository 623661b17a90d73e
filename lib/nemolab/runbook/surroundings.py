"""Where a run took place: the host in a few lines, and the versions that may explain a difference."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Any

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
_GIB = 1 << 30


def host() -> dict[str, Any]:
    """Facts of this host that matter to a measurement. Names no person, machine or address."""
    from nemolab.host.collect import facts

    found = facts(ports=(), folders={})
    return {
        "os": found.system.os,
        "kernel": found.system.kernel,
        "architecture": found.system.architecture,
        "product": found.system.product,
        "container": found.system.container,
        "cpu": found.cpu.model,
        "cpus": found.cpu.logical,
        "cpus usable": found.cpu.usable,
        "memory GiB": _gib(found.memory.total),
        "memory limit GiB": _gib(found.memory.limit),
        "driver": found.driver.version,
        "cuda": found.driver.cuda,
        "gpus": None  # nobody could be asked: unknown, not none
        if found.gpus is None
        else [{"name": gpu.name, "memory GiB": _gib(gpu.memory_total)} for gpu in found.gpus],
    }


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
    return None if size is None else round(size / _GIB, 1)
