"""Dynamo with vLLM workers: `python3 -m dynamo.vllm --model MODEL --flag value` behind `python3 -m dynamo.frontend`.

Source: ai-dynamo/dynamo recipes for Nemotron 3 Ultra (1.4.0): a worker takes vLLM's flags and `--dyn-...` ones.
"""

from __future__ import annotations

from nemolab.engines.command import Command, Place, flags, model_word, repository
from nemolab.engines.profile import Profile

SYSTEM_PORT = 9090


def command(profile: Profile, place: Place) -> Command:
    """One worker, and the frontend that takes the requests."""
    named = profile.args.get("served-model-name") or repository(profile) or profile.model
    args = {"served-model-name": named} | {k: v for k, v in profile.args.items() if k != "served-model-name"}
    words = flags(args, profile.where("args"), negative="no-")
    front = flags(profile.frontend, profile.where("frontend"), negative="no-")
    return Command(
        argv=("python3", "-m", "dynamo.vllm", "--model", model_word(profile, place), *words),
        served=str(named),
        health="/live",
        frontend=(
            *("python3", "-m", "dynamo.frontend", *front),
            *("--http-host", place.host, "--http-port", str(profile.port)),
        ),
    )
