"""Whether an install would work here, looked at before anything is fetched."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from nemolab.core.finding import Finding, Severity
from nemolab.core.sizes import human
from nemolab.engines import install_lock as locks
from nemolab.engines import install_uv as uv
from nemolab.engines.install_plan import InstallPlan

_HEADROOM = 1.1


def check(asked: InstallPlan, *, disk: bool = True) -> list[Finding]:
    """Why the plan would not work here. Without errors in it, `apply` begins."""
    found = []
    machine = locks.this_machine()
    if asked.lock.machine != machine or sys.platform != "linux":
        found.append(
            Finding(
                "I-101",
                Severity.ERROR,
                f"the lock is for Linux on {asked.lock.machine}, this is {sys.platform} on {machine}",
                "install on such a machine, or use a container",
                source="the engine's wheels",
            )
        )
    if asked.folder.is_relative_to(Path(sys.prefix)) or Path(sys.prefix).is_relative_to(asked.folder):
        found.append(
            Finding(
                "I-102",
                Severity.ERROR,
                f"{asked.folder} lies in the lab's own environment",
                "set NEMOLAB_CACHE to another folder",
            )
        )
    if built := [package.name for package in asked.lock.packages if package.built]:
        found.append(
            Finding(
                "I-104",
                Severity.WARNING,
                f"no wheel for {asked.lock.machine}: {', '.join(built)} will be built here",
                "have a C++ compiler and Python's headers (build-essential), or use the engine's image",
                source="the index, as of the release",
            )
        )
    if disk and asked.state != "installed":
        found += _disk(asked)
    return found


def _disk(asked: InstallPlan) -> list[Finding]:
    need = int(asked.disk * _HEADROOM)
    found = []
    places = {"environment": asked.folder, "uv's cache": uv.cache_folder()}
    devices = {name: _existing(path).stat().st_dev for name, path in places.items()}
    if len(set(devices.values())) == 1:  # then the environment's files are links into the cache
        places.pop("uv's cache")
    for name, path in places.items():
        free = shutil.disk_usage(_existing(path)).free
        if free < need:
            found.append(
                Finding(
                    "I-103",
                    Severity.ERROR,
                    f"{human(need)} are needed for the {name}, {human(free)} are free",
                    "free space, or set NEMOLAB_CACHE and UV_CACHE_DIR to another disk; if an interrupted install has"
                    " fetched most of it already, --skip-disk-check",
                    where=str(path),
                )
            )
    return found


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
