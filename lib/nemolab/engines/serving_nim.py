"""What only a NIM has to be told of: it chooses a profile of its own, and takes variables in place of flags."""

from __future__ import annotations

from nemolab.engines.commands.nim import CACHE
from nemolab.engines.profile import Profile

Row = dict[str, str]
_VARIABLES = {
    "NIM_MODEL_PROFILE": "forces one profile of the image's manifest",
    "NIM_TAGS_SELECTOR": "narrows the choice, such as precision=nvfp4,tp=4",
    "NIM_MAX_MODEL_LEN": "the context; a long-context override beyond the checkpoint is not documented",
    "NIM_ENABLE_KV_CACHE_REUSE": "three states; unset means no prefix reuse for hybrid models",
    "NIM_PASSTHROUGH_ARGS": "flags for the engine inside, checked by it and not by NIM",
    "NIM_SERVER_PORT": "port of the API, 8000 by default",
}


def about(profile: Profile) -> list[Row]:
    """The image's own choice, every variable, the cache and the key."""
    rows = [
        {
            "about": "profiles in the image",
            "here": f"docker run --rm --gpus all -e NGC_API_KEY {profile.image} list-model-profiles",
            "know": "lists what fits the GPUs it sees; none: `Could not match a profile in manifest`",
        }
    ]
    rows += [
        {"about": name, "here": profile.env.get(name, "not set"), "know": meaning}
        for name, meaning in _VARIABLES.items()
        if name != "NIM_PASSTHROUGH_ARGS"
    ]
    flags = " ".join(f"--{name}" for name in profile.args) or "none"
    return [
        *rows,
        {"about": "NIM_PASSTHROUGH_ARGS", "here": flags, "know": _VARIABLES["NIM_PASSTHROUGH_ARGS"]},
        {"about": "cache", "here": CACHE, "know": "mount it writable, or every start downloads the weights again"},
        {
            "about": "keys",
            "here": ", ".join(profile.secrets) or "none",
            "know": "passed by name (-e NGC_API_KEY): never written into a file",
        },
    ]
