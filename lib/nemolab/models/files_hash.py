"""The hash of every shard against the one that its download recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from nemolab.core.finding import Finding, Severity
from nemolab.models.files_check import some

_CHUNK = 16 << 20


def hash_shards(
    folder: str, expected: dict[str, str], progress: Callable[[float], object] | None = None
) -> dict[str, bool]:
    """Whether each shard has the SHA-256 that its download recorded. Reads every byte: minutes for large checkpoints.

    Args:
        progress: called with the number of bytes read so far.
    """
    found, done = {}, 0
    for name, wanted in expected.items():
        digest = hashlib.sha256()
        try:
            with (Path(folder).expanduser() / name).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    done += len(chunk)
                    if progress:
                        progress(done)
        except OSError:
            found[name] = False
            continue
        found[name] = digest.hexdigest() == wanted
    return found


def hash_findings(checked: dict[str, bool]) -> tuple[Finding, ...]:
    """Shards whose content is not what was downloaded."""
    wrong = [name for name, right in checked.items() if not right]
    if not wrong:
        return ()
    message = f"SHA-256 differs from the download's record: {some(wrong)}"
    return (Finding("C-HASH", Severity.ERROR, message, "delete them and download again"),)
