"""uv as a program: found, run with lists of arguments, its progress read; the lab's environment does not leak in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nemolab.core import paths
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.secrets import redact

_DOWNLOADED = re.compile(r"^\s*(?:Downloaded|Built)\s+(?P<what>\S+)")
# What would point uv, or the new environment, at the lab's own.
_DROPPED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "UV_SYSTEM_PYTHON")


def find() -> Path:
    """The uv program: `NEMOLAB_UV`, the checkout's own, or the one on the path.

    Raises:
        UsageError: there is none.
    """
    if named := os.environ.get("NEMOLAB_UV"):
        return Path(named)
    try:
        own = paths.root() / ".uv" / "bin" / "uv"
    except UsageError:
        own = Path("uv")
    found = str(own) if own.is_file() else shutil.which("uv")
    if not found:
        raise UsageError("uv is not there", where=str(own), fix="`make report` puts it into .uv; or install uv")
    return Path(found)


def environment() -> dict[str, str]:
    """This process's environment without what belongs to the lab."""
    return {name: value for name, value in os.environ.items() if name not in _DROPPED} | {"UV_NO_PROGRESS": "1"}


def cache_folder() -> Path:
    """Where uv keeps what it has downloaded: an interrupted install goes on from there."""
    return Path(run(["cache", "dir"]).strip())


def run(
    arguments: Sequence[str], *, on_package: Callable[[str], None] | None = None, extra: Mapping[str, str] | None = None
) -> str:
    """Run uv; what it wrote to standard output.

    Args:
        on_package: called with the name of each large package when it is downloaded.
        extra: more environment variables.

    Raises:
        NemolabError: it failed; carries the end of what it said.
    """
    process = subprocess.Popen(
        [str(find()), *arguments],
        env=environment() | dict(extra or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if on_package else subprocess.PIPE,
        text=True,
        errors="replace",
    )
    said: list[str] = []
    errors = ""
    try:
        if on_package:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                if match := _DOWNLOADED.match(line):
                    on_package(match["what"])
            process.wait()
        else:
            output, errors = process.communicate()
            said.append(output)
    except BaseException:
        process.terminate()  # uv keeps what it has; the next install goes on from there
        process.wait()
        raise
    if process.returncode:
        raise _failed(arguments, "".join(said) + errors)
    return "".join(said)


def _failed(arguments: Sequence[str], said: str) -> NemolabError:
    tail = "\n".join(f"  {line}" for line in redact(said).strip().splitlines()[-12:])
    fix = "run the command again: what is downloaded is kept"
    if any(text in said for text in ("No interpreter found", "No download found", "python-build-standalone")):
        fix = "install that version of Python, or let uv fetch it (UV_PYTHON_INSTALL_MIRROR names a mirror)"
    elif "Hash mismatch" in said:
        fix = "the index gave another file than the lock names: do not install it; check the index and its mirror"
    elif "No space left" in said:
        fix = "free space, or point NEMOLAB_CACHE and UV_CACHE_DIR to another disk"
    return NemolabError(f"uv {' '.join(arguments[:2])} failed\n{tail}", fix=fix)
