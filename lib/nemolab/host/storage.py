"""Disks: what lies behind the folders that matter, and how fast it is."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from nemolab.core import paths
from nemolab.core.errors import NemolabError
from nemolab.host.facts import Disk
from nemolab.host.probe import Probe

NETWORK_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "virtiofs", "lustre", "ceph", "gpfs"}
)
_CHUNK = 8 << 20


def models_folder() -> Path:
    """Where Hugging Face's tools keep checkpoints: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub."""
    if named := os.environ.get("HF_HUB_CACHE"):
        return Path(named)
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "hub"


def roles() -> dict[str, Path]:
    """The folders that matter, by what they are for."""
    return {
        "lab": paths.reports(),
        "models": models_folder(),
        "tmp": Path(tempfile.gettempdir()),
        "shm": Path("/dev/shm"),
    }


def existing(folder: Path) -> Path:
    """`folder`, or the nearest folder above it that exists."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))


def disk(probe: Probe, role: str, folder: Path) -> Disk:
    """The file system that `folder` is on, or would be created on."""
    try:
        here = existing(folder)
        stat = os.statvfs(here)
        device = os.stat(here).st_dev
    except OSError:
        return Disk(role)
    return Disk(
        role=role,
        filesystem=_filesystem(probe, here),
        total=stat.f_blocks * stat.f_frsize,
        free=stat.f_bavail * stat.f_frsize,
        inodes_free=stat.f_favail if stat.f_files else None,  # some file systems have no fixed number of inodes
        read_only=bool(stat.f_flag & os.ST_RDONLY),
        rotational=_rotational(probe, device),
    )


def _filesystem(probe: Probe, folder: Path) -> str | None:
    """Type of the longest mount point above `folder`."""
    real = folder.resolve()
    best, kind = -1, None
    for line in (probe.read("/proc/self/mounts") or "").splitlines():
        fields = line.split(" ")
        point = Path(fields[1].encode().decode("unicode_escape"))
        if (point == real or point in real.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


def _rotational(probe: Probe, device: int) -> bool | None:
    base = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"
    if probe.at(base).resolve().name.startswith("vd"):
        return None  # a virtio disk always says "rotational"; it cannot know
    for path in (f"{base}/queue/rotational", f"{base}/../queue/rotational"):
        if (value := probe.number(path)) is not None:
            return bool(value)
    return None


@dataclass(frozen=True, slots=True)
class DiskSpeed:
    """One measurement of sequential speed, bytes a second. `direct`: reads went past the page cache."""

    role: str
    size: int
    write: float
    read: float
    direct: bool


def measure_speed(role: str, folder: Path, size: int = 256 << 20) -> DiskSpeed:
    """Write, flush and read back `size` bytes in `folder`; the file is removed whatever happens.

    Reads bypass the page cache where the file system allows it (O_DIRECT); otherwise the cache is asked to drop the
    file first, and `direct` is False, because the kernel may not have obeyed.

    Raises:
        NemolabError: the folder cannot be written, or has less than twice `size` free.
    """
    here = existing(folder)
    free = os.statvfs(here).f_bavail * os.statvfs(here).f_frsize
    if free < 2 * size:
        raise NemolabError(f"{free} bytes free, {2 * size} wanted for a measurement", where=f"disk of {role}")
    try:
        handle, name = tempfile.mkstemp(prefix=".nemolab-speed-", dir=here)
    except OSError as error:
        raise NemolabError(f"cannot write: {error.strerror}", where=f"disk of {role}") from error
    try:
        return _measure(role, handle, Path(name), size)
    except OSError as error:
        raise NemolabError(f"cannot measure: {error.strerror}", where=f"disk of {role}") from error
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)
        Path(name).unlink(missing_ok=True)


def speed_of(role: str, mib: int) -> DiskSpeed | None:
    """Speed of the disk behind one of the lab's folders; None when `mib` is 0."""
    return measure_speed(role, roles()[role], mib << 20) if mib else None


def _measure(role: str, handle: int, path: Path, size: int) -> DiskSpeed:
    block = mmap.mmap(-1, _CHUNK)  # page-aligned, as O_DIRECT wants it
    block.write(os.urandom(_CHUNK))  # incompressible, so that a compressing file system does not flatter itself
    rounds = max(1, size // _CHUNK)
    begin = time.perf_counter()
    for _ in range(rounds):
        os.write(handle, block)
    os.fsync(handle)
    wrote = time.perf_counter() - begin
    reader, direct = _open_uncached(path, handle)
    try:
        begin = time.perf_counter()
        while os.readv(reader, [block]):
            pass
        took = time.perf_counter() - begin
    finally:
        os.close(reader)
        block.close()
    return DiskSpeed(role, rounds * _CHUNK, rounds * _CHUNK / wrote, rounds * _CHUNK / took, direct)


def _open_uncached(path: Path, handle: int) -> tuple[int, bool]:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_DIRECT), True
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    return os.open(path, os.O_RDONLY), False
