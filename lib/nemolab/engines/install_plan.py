"""What installing an engine would do, and what is installed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from nemolab.core import paths
from nemolab.core.errors import UsageError
from nemolab.core.files import sha256
from nemolab.engines import install_lock as locks
from nemolab.engines.install_lock import Lock

MARKER = "nemolab-install.json"  # in the environment: which lock, and whether it is complete
_UNPACKED = 2.3  # bytes on disk for a byte of wheel, where a lock does not say; the shipped locks lie at 2.1 to 2.5


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """What an install would do.

    Attributes:
        folder: the environment.
        download, disk: bytes to fetch when nothing is cached, and bytes it takes unpacked.
        state: `new`, `interrupted`, `installed`, or `outdated` (another lock than this one).
    """

    lock: Lock
    folder: Path
    download: int
    disk: int
    state: str

    @property
    def engine(self) -> str:
        return self.lock.engine

    @property
    def version(self) -> str:
        return self.lock.version

    @property
    def interpreter(self) -> Path:
        """Python of the environment: the `python` of `29_engine_smoke` and of profiles."""
        return self.folder / "bin" / "python"


def folder_of(engine: str, version: str) -> Path:
    """Where an engine version is installed."""
    return paths.cache() / "engines" / f"{engine}-{version}"


def plan(engine: str, version: str = "", *, lock: Path | None = None) -> InstallPlan:
    """What installing `engine` would do.

    Args:
        version: "" for the newest with a lock.
        lock: another lock file, in place of the one that fits this machine.

    Raises:
        UsageError: there is no such lock, or it is for another machine.
    """
    found = locks.read(lock) if lock else locks.find(engine, version)
    if found.engine != engine or (version and found.version != version):
        raise UsageError(f"that is the lock of {found.engine} {found.version}", where=str(found.path))
    folder = folder_of(engine, found.version)
    return InstallPlan(
        lock=found,
        folder=folder,
        download=found.download,
        disk=found.unpacked or int(found.download * _UNPACKED),
        state=state_of(folder, found),
    )


def installed(engine: str, version: str = "") -> Path | None:
    """Python of an installed engine, None when it is not there; "" takes the newest."""
    root = paths.cache() / "engines"
    found = sorted(root.glob(f"{engine}-{version or '*'}/{MARKER}"), key=lambda p: locks._order(p.parent.name))
    ready = [marker.parent / "bin" / "python" for marker in found if _marker(marker.parent).get("complete")]
    return ready[-1] if ready else None


def state_of(folder: Path, lock: Lock) -> str:
    """`new`, `interrupted`, `installed`, or `outdated`."""
    marker = _marker(folder)
    if not marker:
        return "new" if not (folder / "bin").exists() else "interrupted"
    if not marker.get("complete"):
        return "interrupted"
    return "installed" if marker.get("lock_sha256") == sha256(lock.path.read_bytes()) else "outdated"


def _marker(folder: Path) -> dict[str, object]:
    try:
        return dict(json.loads((folder / MARKER).read_bytes()))
    except (OSError, ValueError):
        return {}
