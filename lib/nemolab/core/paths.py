"""Where the lab's own files are."""

from __future__ import annotations

import os
from pathlib import Path

from nemolab.core.errors import UsageError


def root() -> Path:
    """The checkout: the nearest folder, from the working directory up, that holds `runbooks/` and `notebooks/`.

    `NEMOLAB_ROOT` overrides it; without either, the checkout that this library is installed from.
    """
    if named := os.environ.get("NEMOLAB_ROOT"):
        return Path(named).resolve()
    here = Path.cwd().resolve()
    installed = Path(__file__).resolve().parents[3]
    for folder in (here, *here.parents, installed):
        if (folder / "runbooks").is_dir() and (folder / "notebooks").is_dir():
            return folder
    raise UsageError(
        "no nemolab checkout here", where=str(here), fix="run inside a checkout, or set NEMOLAB_ROOT to one"
    )


def inside(path: Path) -> str | None:
    """`path` relative to the checkout, also where a folder of the checkout is a link; None if it lies elsewhere."""
    for full in (path.absolute(), path.resolve()):
        if full.is_relative_to(root()):
            return str(full.relative_to(root()))
    return None


def notebooks() -> Path:
    """Folder of the source notebooks."""
    return root() / "notebooks"


def runbooks() -> Path:
    """Folder of the runbooks."""
    return root() / "runbooks"


def reports() -> Path:
    """Folder of executed runs."""
    return root() / "reports"


def state() -> Path:
    """Per-user folder for what outlives a process (locks of running servers): XDG state, `NEMOLAB_STATE` overrides."""
    if named := os.environ.get("NEMOLAB_STATE"):
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "nemolab"


def cache() -> Path:
    """Per-user folder for what can be made again (GGUF files written from the weights): `NEMOLAB_CACHE` overrides."""
    if named := os.environ.get("NEMOLAB_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nemolab"
