"""NIM: a container that starts its engine itself; profiles set variables, engine flags pass through one of them.

Source: NVIDIA NIM for LLMs 2.0 documentation (quickstart, configuration, local cache, observability).
"""

from __future__ import annotations

import shlex

from nemolab.core.errors import UsageError
from nemolab.engines.command import Command, Place, flags, repository
from nemolab.engines.profile import Profile

CACHE = "/opt/nim/.cache"
_USER = (1000, 2000)  # userID and groupID of the NIM operator's NIMService; the cache must be writable for them


def command(profile: Profile, place: Place) -> Command:
    """The container; flags of the engine inside go through `NIM_PASSTHROUGH_ARGS`."""
    if profile.files:
        raise UsageError("a NIM takes no options file", where=profile.where("files"))
    env: dict[str, str] = {}
    if profile.port != 8000:
        env["NIM_SERVER_PORT"] = str(profile.port)
    if profile.args:
        env["NIM_PASSTHROUGH_ARGS"] = shlex.join(flags(profile.args, profile.where("args"), negative="no-"))
    return Command(
        argv=(),
        env=tuple(env.items()),
        served=repository(profile).lower() or profile.model,
        health="/v1/health/live",
        ready="/v1/health/ready",
        metrics="/v1/metrics",
        user=_USER,
    )
