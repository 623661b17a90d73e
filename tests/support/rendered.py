"""Every profile of the checkout, with its variants, and what each renders to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache

from nemolab.core.errors import UsageError
from nemolab.engines import profile as profiles
from nemolab.engines.profile import Profile
from nemolab.engines.render import TARGETS, render

ONE_NODE = frozenset({"process", "docker", "compose", "systemd", "k8s", "slurm"})
_POSSIBLE: Mapping[str, frozenset[str]] = {
    "vllm": ONE_NODE,
    "sglang": ONE_NODE,
    "trtllm": ONE_NODE,
    "nim": frozenset({"docker", "compose", "systemd", "k8s"}),
    "dynamo": frozenset({"dynamo"}),
    "llamacpp": frozenset({"process", "systemd"}),
}


def expected(profile: Profile) -> frozenset[str]:
    """The targets that a profile can be started by: this table, not the renderers' own word."""
    if profile.hardware.nodes > 1:
        return frozenset({"k8s", "slurm"} | ({"ray"} if profile.engine == "vllm" else set()))
    return _POSSIBLE[profile.engine]


@cache
def every() -> tuple[Profile, ...]:
    """Profiles and variants."""
    return tuple(profiles.every())


def rendering(target: str) -> list[Profile]:
    """Those that render to a target."""
    return [profile for profile in every() if target in expected(profile)]


def outcome(profile: Profile, target: str) -> dict[str, str] | UsageError:
    """The files, or why there are none."""
    try:
        return render(profile, target, force=True)
    except UsageError as error:
        return error


def digest() -> str:
    """One number for every file of every profile and target, names and order included."""
    whole = hashlib.sha256()
    for profile in profiles.every():
        for target in TARGETS:
            found = outcome(profile, target)
            text = str(found) if isinstance(found, UsageError) else json.dumps(list(found.items()))
            whole.update(f"{profile.full_name} {target} {text}\n".encode())
    return whole.hexdigest()


if __name__ == "__main__":
    print(digest())
