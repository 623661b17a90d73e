"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from nemolab.core.errors import NemolabError


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write `data` to `path` in one step: complete, or not at all.

    Raises:
        NemolabError: the disk refused (full, read-only); `path` keeps its old content.
    """
    raw = data.encode() if isinstance(data, str) else data
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise NemolabError(
            f"cannot write: {error.strerror or error}", where=str(path), fix="free space or choose another folder"
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Write `value` as stable, readable JSON, atomically."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def sha256(data: bytes) -> str:
    """Hex digest of `data`."""
    return hashlib.sha256(data).hexdigest()
