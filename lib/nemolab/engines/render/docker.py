"""A shell script with one `docker run`."""

from __future__ import annotations

from nemolab.engines.command import Expr
from nemolab.engines.profile import Profile
from nemolab.engines.render import box as boxes
from nemolab.engines.render.quoting import comment, shell, shell_lines
from nemolab.engines.render.settings import Settings


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`run.sh`, and the options files that it mounts.

    Raises:
        UsageError: Dynamo, several machines, or no image.
    """
    boxes.one_node(profile, "docker")
    boxes.not_dynamo(profile, "docker")
    made = boxes.box(profile, settings)
    needed = "".join(
        f': "${{{name}:?export it first}}"\n' for name, secret in made.command.secrets.items() if secret.required
    )
    cache = made.mounts[0].source
    folder = Expr(f'"$here"{shell(cache.removeprefix("."))}') if cache.startswith("./") else cache
    words = boxes.docker_words(made, settings, detach=True, root="$here")
    health = " ".join(shell(word) for word in boxes.health_check(made))
    at = words.index("--publish")
    words[at:at] = ["--health-cmd", health, "--health-interval", "30s", "--health-timeout", "20s"]
    words[at:at] = ["--health-start-period", f"{made.sizes.startup_s}s"]
    text = (
        "#!/usr/bin/env bash\n"
        + comment(boxes.headed(profile, "docker", made.sizes.assumption, *boxes.model_note(made)))
        + 'set -euo pipefail\nhere=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'
        + needed
        + f"mkdir -p {shell(folder)}\n"
        + f"exec docker {shell_lines(words)}\n"
    )
    return boxes.with_files(made, {"run.sh": text})
