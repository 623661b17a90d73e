"""Making a lock: the engine's version resolved with nothing newer than its release.

An engine pins few of its dependencies, so what `pip install vllm==0.22.0` gives depends on the day: in November 2026 it
gave a fastapi with which every request answered 500 (measured). The release's day is asked from the index.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.files import write_atomic
from nemolab.engines import install_lock as locks
from nemolab.engines import install_uv as uv
from nemolab.engines.install_lock import Lock

INDEX = "https://pypi.org/simple"
GLIBC = "2.34"  # SGLang's wheels want it (manylinux_2_34): Ubuntu 22.04, Debian 12, RHEL 9
PYTHON = "3.12"
_MEASURED = 8 << 20  # wheels from this size on are looked into for their size on disk
_SMALL_RATIO = 4.0  # pure Python unpacks to about four times its wheel
_SDIST = re.compile(r"^sdist = .*\n", re.MULTILINE)


def release_date(engine: str, version: str, index: str = INDEX) -> datetime:
    """When the index got the last wheel of this version.

    Raises:
        UsageError: the index has no wheel of it.
        NemolabError: the index does not answer.
    """
    uploads = [
        datetime.fromisoformat(file["upload-time"])
        for file in _files(engine, index)
        if file["filename"].startswith(f"{engine.replace('-', '_')}-{version}-") and file.get("upload-time")
    ]
    if not uploads:
        raise UsageError(f"the index has no wheel of {engine} {version}", where=index, fix="check the version")
    return max(uploads)


def make(
    engine: str,
    version: str,
    machine: str,
    *,
    folder: Path | None = None,
    say: Callable[[str], None] | None = None,
) -> Lock:
    """Resolve a lock and write it, by default among the user's own.

    Args:
        machine: `x86_64` or `aarch64`; need not be this one.
        say: told what is being done.

    Raises:
        UsageError, NemolabError: no such version, or it cannot be resolved as of its day.
    """
    say = say or (lambda line: None)
    if engine not in locks.ENGINES or machine not in locks.MACHINES:
        raise UsageError(f"no locks of {engine} on {machine}", fix=f"{', '.join(locks.ENGINES)} on x86_64, aarch64")
    released = release_date(engine, version)
    # Midnight after the release: packages that were released with it are in, what came later is not.
    newest = (released + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    say(f"{engine} {version} was released on {released:%Y-%m-%d}; resolving as of {newest:%Y-%m-%d}")
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "in.txt").write_text(f"{engine}=={version}\n")
        made = Path(scratch) / "pylock.toml"
        resolve = [
            *("pip", "compile", "--quiet", "--no-header", "--format", "pylock.toml", "--output-file", str(made)),
            *("--python-version", PYTHON, "--python-platform", f"{machine}-manylinux_{GLIBC.replace('.', '_')}"),
            *("--exclude-newer", newest.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), str(Path(scratch) / "in.txt")),
        ]
        try:
            uv.run([*resolve, "--no-build"])
        except NemolabError as error:
            if "no usable wheels" not in str(error):
                raise
            say("a package has no wheel for this machine; it will be built when it is installed")
            uv.run(resolve)
        text = without_sources(made.read_text())
    packages = tomllib.loads(text)["packages"]
    say(f"{len(packages)} packages; measuring the large wheels")
    about = {
        "engine": engine,
        "version": version,
        "machine": machine,
        "released": f"{released:%Y-%m-%d}",
        "exclude_newer": f"{newest:%Y-%m-%d}",
        "python": PYTHON,
        "glibc": GLIBC,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in about.items()]
    lines.append(f"unpacked_bytes = {unpacked(packages)}")
    head = f"# Made by: nemolab install {engine} --version {version} --relock --machine {machine}\n"
    path = locks.path_of(folder or locks.folders()[0], engine, version, machine)
    write_atomic(path, head + text.rstrip() + "\n\n[tool.nemolab]\n" + "\n".join(lines) + "\n")
    return locks.read(path)


def without_sources(text: str) -> str:
    """A lock without the source archives of packages that have a wheel: those are never built."""
    parts = re.split(r"(?m)^(?=\[\[packages\]\])", text)
    return "".join(_SDIST.sub("", part) if "\nwheels = " in part else part for part in parts)


def unpacked(packages: Iterable[dict[str, Any]]) -> int:
    """Bytes that the packages take on disk: exact for large wheels, by a ratio for small ones."""
    wheels = [min(entry["wheels"], key=lambda wheel: wheel["size"]) for entry in packages if entry.get("wheels")]
    large = [wheel for wheel in wheels if wheel["size"] >= _MEASURED]
    small = sum(wheel["size"] for wheel in wheels if wheel["size"] < _MEASURED)
    with ThreadPoolExecutor(8) as pool:
        return int(small * _SMALL_RATIO) + sum(
            pool.map(_unpacked, (w["url"] for w in large), (w["size"] for w in large))
        )


def _unpacked(url: str, size: int) -> int:
    """Size on disk of a wheel, from the directory at its end."""
    with zipfile.ZipFile(_Remote(url, size)) as archive:
        return sum(item.file_size for item in archive.infolist())


class _Remote(io.RawIOBase):
    """A file on a server, read piece by piece."""

    def __init__(self, url: str, size: int) -> None:
        self._url, self._size, self._at = url, size, 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, count: int = -1) -> bytes:
        end = self._size if count < 0 else min(self._size, self._at + count)
        if end <= self._at:
            return b""
        piece = _get(self._url, {"Range": f"bytes={self._at}-{end - 1}"})
        self._at += len(piece)
        return piece


def _files(engine: str, index: str) -> list[dict[str, Any]]:
    document = json.loads(_get(f"{index}/{engine}/", {"Accept": "application/vnd.pypi.simple.v1+json"}))
    return list(document["files"])


def _get(url: str, headers: dict[str, str]) -> bytes:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError) as error:
        raise NemolabError(f"the index does not answer: {error}", where=url, fix="check network and proxy") from None
