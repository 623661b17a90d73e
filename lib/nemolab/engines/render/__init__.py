"""Renders a profile: the files with which a server is started somewhere.

    files = render(load("ultra_nvfp4_4xb200_vllm"), "compose")   # {"compose.yaml": "..."}

Pure and byte-stable: the same profile, target and settings give the same text. Secrets are named, never written.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.core.files import write_atomic
from nemolab.core.located import nearest
from nemolab.engines.profile import Profile
from nemolab.engines.render.settings import Settings

__all__ = ["TARGETS", "Settings", "possible", "render", "write"]

# target -> module of this package
TARGETS: dict[str, str] = {
    "process": "process",
    "docker": "docker",
    "compose": "compose",
    "systemd": "systemd",
    "k8s": "k8s",
    "slurm": "slurm",
    "ray": "ray",
    "dynamo": "dynamo",
}


def render(
    profile: Profile, target: str, settings: Settings | Mapping[str, str] | None = None, *, force: bool = False
) -> dict[str, str]:
    """The files of `profile` for `target`: name -> text. The first is the one to start.

    Args:
        settings: where things are on the target, as `Settings` or as `name=value` texts.
        force: also what the planner says cannot fit.

    Raises:
        UsageError: the engine cannot be started this way, a setting is unknown, or the profile says it does not fit.
    """
    if target not in TARGETS:
        raise UsageError(f"no target {target!r}", where="--to", fix=nearest(target, TARGETS))
    if not profile.fits and not force:
        raise UsageError(
            f"does not fit: {' '.join(profile.notes.split()) or profile.title}",
            where=profile.full_name,
            fix="take another profile; --force renders it all the same",
        )
    chosen = settings if isinstance(settings, Settings) else Settings.of(settings or {})
    files: dict[str, str] = importlib.import_module(f"nemolab.engines.render.{TARGETS[target]}").render(profile, chosen)
    return files


def possible(profile: Profile) -> tuple[str, ...]:
    """The targets that a profile can be rendered to."""

    def works(target: str) -> bool:
        try:
            return bool(render(profile, target, force=True))
        except UsageError:
            return False

    return tuple(target for target in TARGETS if works(target))


def write(files: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    """Write rendered files into `folder`, each whole; scripts can be run.

    Raises:
        NemolabError: the disk refused.
    """
    written = []
    for name, text in files.items():
        path = folder / name
        write_atomic(path, text)
        if text.startswith("#!"):
            path.chmod(0o755)
        written.append(path)
    return tuple(written)
