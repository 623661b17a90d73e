"""Locks of engines: what exactly an engine version is installed with, as it was on the day of its release.

A lock is a `pylock.toml` (PEP 751) that `nemolab install --relock` made: every file with its size, hash and day of
upload, nothing newer than the release. The table `[tool.nemolab]` adds what the standard has no place for.
"""

from __future__ import annotations

import platform
import tomllib
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from nemolab.core import paths
from nemolab.core.errors import UsageError

SHIPPED = Path(__file__).with_name("locks")
ENGINES = ("vllm", "sglang")
MACHINES = ("x86_64", "aarch64")


@dataclass(frozen=True, slots=True)
class Package:
    """One locked package.

    Attributes:
        size: of the file that is downloaded, in bytes; 0 where the lock does not say.
        uploaded: newest upload of its files.
        built: it has no wheel for this machine and is built from its source archive.
    """

    name: str
    version: str
    size: int
    uploaded: datetime | None
    built: bool = False


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock as data.

    Attributes:
        path: the file, as uv reads it.
        released: when the engine's own wheel was uploaded, ISO date.
        exclude_newer: nothing uploaded after this is in it.
        python: version that it was resolved for, such as `3.12`.
        glibc: oldest C library that its wheels run on, such as `2.34`.
        unpacked: bytes on disk, from the directories of the large wheels; 0 where it was not measured.
    """

    path: Path
    engine: str
    version: str
    machine: str
    released: str
    exclude_newer: str
    python: str
    glibc: str
    unpacked: int
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """Bytes that a first install downloads."""
        return sum(package.size for package in self.packages)

    @property
    def cuda(self) -> str:
        """CUDA version of the runtime in it, "" for a lock without one."""
        found = next((self.find(n) for n in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12") if self.find(n)), None)
        return ".".join(found.version.split(".")[:2]) if found else ""

    def find(self, name: str) -> Package | None:
        """The locked package of this name."""
        return next((package for package in self.packages if package.name == name), None)


def read(path: Path) -> Lock:
    """The lock in a file.

    Raises:
        UsageError: it cannot be read as a lock that nemolab made.
    """
    try:
        document = tomllib.loads(path.read_text())
        about = document["tool"]["nemolab"]
        packages = tuple(
            Package(
                name=entry["name"],
                version=entry.get("version", ""),
                size=min((file.get("size", 0) for file in _files(entry)), default=0),
                uploaded=max((file["upload-time"] for file in _files(entry) if "upload-time" in file), default=None),
                built=not entry.get("wheels"),
            )
            for entry in document["packages"]
        )
        names = ("engine", "version", "machine", "released", "exclude_newer", "python", "glibc")
        texts = {name: str(about[name]) for name in names}
        return Lock(path=path, unpacked=int(about["unpacked_bytes"]), packages=packages, **texts)
    except OSError as error:
        raise UsageError(f"no lock there: {error.strerror}", where=str(path)) from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"not a lock of nemolab: {error}", where=str(path), fix="make it again: nemolab install ENGINE --relock"
        ) from None


def folders() -> tuple[Path, ...]:
    """Where locks are looked for: those made by the user, then those that come with nemolab."""
    return (paths.cache() / "engines" / "locks", SHIPPED)


def path_of(folder: Path, engine: str, version: str, machine: str) -> Path:
    """The file of a lock in `folder`; PEP 751 wants the name `pylock.NAME.toml`, and no dot in NAME."""
    return folder / f"{engine}-{version}" / f"pylock.{machine}.toml"


def versions(engine: str) -> tuple[str, ...]:
    """Versions of `engine` that there are locks of, newest first."""
    prefix = f"{engine}-"
    found = {path.name.removeprefix(prefix) for folder in folders() for path in folder.glob(f"{prefix}*")}
    return tuple(sorted(found, key=_order, reverse=True))


def find(engine: str, version: str = "", machine: str = "") -> Lock:
    """The lock of an engine version.

    Args:
        version: "" for the newest that there is a lock of.
        machine: such as `x86_64`; "" for this one.

    Raises:
        UsageError: there is none; says which there are and how to make one.
    """
    if engine not in ENGINES:
        raise UsageError(f"no locks of {engine!r}", fix=f"one of: {', '.join(ENGINES)}")
    known = versions(engine)
    version = version or (known[0] if known else "")
    machine = machine or this_machine()
    for folder in folders():
        if (path := path_of(folder, engine, version, machine)).is_file():
            return _cached(path, path.stat().st_mtime_ns)
    raise UsageError(
        f"no lock of {engine} {version} for {machine}",
        where=str(SHIPPED),
        fix=f"one of: {', '.join(known) or 'none'}; or make one: nemolab install {engine} --version {version} --relock",
    )


def this_machine() -> str:
    """This machine's architecture as Python's wheels spell it."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())


@cache
def _cached(path: Path, mtime: int) -> Lock:
    return read(path)


def _files(entry: dict[str, Any]) -> list[dict[str, Any]]:
    return entry.get("wheels") or ([entry["sdist"]] if "sdist" in entry else [])


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
