"""SGLang: `python3 -m sglang.launch_server --model-path MODEL --flag value`.

Source: `sglang/srt/server_args.py` of 0.5.12.post1 and 0.5.23. Switches have no negative form. The image has no entry
point of its own that starts a server.
"""

from __future__ import annotations

from nemolab.engines.command import Command, Place, flags, model_word, served_name
from nemolab.engines.profile import Profile

MASTER_PORT = 5000


def command(profile: Profile, place: Place) -> Command:
    """`sglang.launch_server`, on one machine or several."""
    args = dict(profile.args)
    if profile.revision and not place.model:
        args |= {"revision": profile.revision}
    words = flags(args, profile.where("args"))
    spread: list[str] = []
    if node := place.node:
        spread = ["--nnodes", str(profile.hardware.nodes), "--node-rank", node.rank]
        spread += ["--dist-init-addr", type(node.address)(f"{node.address}:{MASTER_PORT}")]
    listen = ["--host", place.host, "--port", str(profile.port)]
    model = ["--model-path", model_word(profile, place)]
    return Command(
        argv=("python3", "-m", "sglang.launch_server", *model, *words, *spread, *listen),
        served=served_name(profile),
        ready="/health_generate",
    )
