"""vLLM: `vllm serve MODEL --flag value`.

Sources: argument parser of vLLM 0.22.0 (`vllm/engine/arg_utils.py`, `vllm/entrypoints/openai/cli_args.py`), and
docker/Dockerfile, whose entry point holds `vllm serve`.
"""

from __future__ import annotations

from nemolab.engines.command import Command, Place, flags, model_word, served_name
from nemolab.engines.profile import Profile
from nemolab.models.units import version

MASTER_PORT = 29501
# `vllm` of the image, whose home is writable for group 0: vllm-project/vllm#40275; used in ai-dynamo/dynamo#12457.
_USER = (2000, 0)
_USER_SINCE = (0, 24)  # releases of the image after that pull request


def command(profile: Profile, place: Place) -> Command:
    """`vllm serve`, on one machine or several."""
    args = dict(profile.args)
    if profile.revision and not place.model:
        args |= {"revision": profile.revision}
    words = flags(args, profile.where("args"), negative="no-")
    spread: list[str] = []
    if place.ray:
        spread = ["--distributed-executor-backend", "ray"]
    elif node := place.node:
        spread = ["--nnodes", str(profile.hardware.nodes), "--node-rank", node.rank]
        spread += ["--master-addr", node.address, "--master-port", str(MASTER_PORT)]
    listen = ["--host", place.host, "--port", str(profile.port)]
    return Command(
        argv=("vllm", "serve", model_word(profile, place), *words, *spread, *listen),
        entry=2,
        follower=("--headless",) if place.node else (),
        served=served_name(profile),
        user=_USER if version(profile.engine_version) >= _USER_SINCE else None,
    )
