"""A shell script that starts the engine's own program on this machine."""

from __future__ import annotations

from nemolab.core.errors import UsageError
from nemolab.engines.command import Place, command, repository
from nemolab.engines.profile import Profile
from nemolab.engines.render.box import headed, needs, not_dynamo, one_node
from nemolab.engines.render.quoting import comment, exports, shell_lines
from nemolab.engines.render.settings import Settings


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`start.sh`, and the options files.

    Raises:
        UsageError: NIM, Dynamo, or several machines.
    """
    one_node(profile, "process")
    not_dynamo(profile, "process")
    if profile.engine == "nim":
        raise UsageError("a NIM is a container", where=profile.full_name, fix="render it to docker, compose or k8s")
    folder = settings.model_dir or ("" if repository(profile) or profile.engine == "llamacpp" else f"./{profile.model}")
    made = command(profile, Place(folder, settings.bind, "."))
    program = f"{settings.bin}/{made.argv[0]}" if settings.bin else made.argv[0]
    env = dict(made.env) | ({"HF_HOME": settings.models} if settings.models else {})
    needed = "".join(f': "${{{name}:?export it first}}"\n' for name, secret in made.secrets.items() if secret.required)
    text = (
        "#!/usr/bin/env bash\n"
        + comment(headed(profile, "process", *needs(profile)))
        + 'set -euo pipefail\ncd "$(dirname "${BASH_SOURCE[0]}")"\n'
        + needed
        + exports(env.items())
        + f"exec {shell_lines([program, *made.argv[1:]])}\n"
    )
    return {"start.sh": text, **made.files}
