"""A compose file of one service (compose specification; `docker compose up`)."""

from __future__ import annotations

from typing import Any

from nemolab.engines.command import yaml_text
from nemolab.engines.profile import Profile
from nemolab.engines.render import box as boxes
from nemolab.engines.render.quoting import comment, compose
from nemolab.engines.render.settings import Settings


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`compose.yaml`, and the options files that it mounts.

    Raises:
        UsageError: Dynamo, several machines, or no image.
    """
    boxes.one_node(profile, "compose")
    boxes.not_dynamo(profile, "compose")
    made = boxes.box(profile, settings)
    head = comment(boxes.headed(profile, "compose", made.sizes.assumption, *boxes.model_note(made)))
    document = {"services": {profile.engine: _service(made, settings)}}
    return boxes.with_files(made, {"compose.yaml": head + yaml_text(document)})


def _service(made: boxes.Box, settings: Settings) -> dict[str, Any]:
    profile = made.profile
    service: dict[str, Any] = {"image": compose(made.image), "container_name": made.name}
    if made.command.image_argv:
        service["command"] = [compose(word) for word in made.command.image_argv]
    environment = {name: compose(value) for name, value in made.env}
    for name, secret in made.command.secrets.items():  # taken from the caller's environment
        environment[name] = f"${{{name}:?export it first}}" if secret.required else f"${{{name}:-}}"
    service["environment"] = environment
    service["ports"] = [f"{settings.bind}:{profile.port}:{profile.port}"]
    service["volumes"] = [
        compose(f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")) for mount in made.mounts
    ]
    service["shm_size"] = f"{settings.shm_gib}gb"
    service["ulimits"] = {"memlock": -1, "nofile": {"soft": 65536, "hard": 65536}}
    service["security_opt"] = ["no-new-privileges:true"]
    service["restart"] = "unless-stopped"
    service["stop_grace_period"] = "60s"
    service["healthcheck"] = {
        "test": ["CMD", *(compose(word) for word in boxes.health_check(made))],
        "interval": "30s",
        "timeout": "20s",
        "retries": 10,  # /health waits while a prompt of megabytes is tokenised: vllm-project/vllm#24910
        "start_period": f"{made.sizes.startup_s}s",
    }
    service["logging"] = {"driver": "json-file", "options": {"max-size": "100m", "max-file": "3"}}
    if profile.hardware.gpus:
        device = {"driver": "nvidia", "count": profile.hardware.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return service
