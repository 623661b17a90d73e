"""Whether a folder holds the model that a profile is for."""

from __future__ import annotations

from pathlib import Path

from nemolab import models
from nemolab.core.errors import NemolabError, UsageError
from nemolab.engines.profile import Profile
from nemolab.models import config


def of_profile(profile: Profile, folder: Path) -> None:
    """Refuse a checkpoint of another shape: what was planned would be held against the log of another model.

    A config.json that cannot be read is left to the engine, and to the rules that read its log.

    Raises:
        UsageError: the folder holds another model.
    """
    wanted = models.find(profile.model).architecture
    if wanted is None or not (folder / "config.json").is_file():
        return
    try:
        found = config.read(folder)
    except NemolabError:
        return
    names = ("hidden_size", "mamba_num_heads", "n_routed_experts")
    off = [f"{name} {getattr(found, name)}, not {getattr(wanted, name)}" for name in names
           if getattr(found, name) != getattr(wanted, name)]  # fmt: skip
    if found.layers != wanted.layers:
        off.insert(0, f"{len(found.layers)} layers, not {len(wanted.layers)}, or others")
    if off:
        raise UsageError(
            f"not {profile.model}: {'; '.join(off)}",
            where=str(folder),
            fix=f"a profile of that model, or a folder of {profile.model}",
        )
