"""vLLM over several machines by Ray: scripts for the head and the workers, and one that serves on the whole cluster."""

from __future__ import annotations

from nemolab.core.errors import UsageError
from nemolab.engines.command import Expr
from nemolab.engines.profile import Profile
from nemolab.engines.render import box as boxes
from nemolab.engines.render.quoting import comment, shell, shell_lines
from nemolab.engines.render.settings import Settings

_PORT = 6379


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`ray_head.sh`, `ray_worker.sh` and `serve.sh`.

    Raises:
        UsageError: another engine than vLLM, or one machine.
    """
    if profile.engine != "vllm":
        raise UsageError(
            f"{profile.engine} does not spread itself by Ray",
            where=profile.full_name,
            fix="render it to slurm or k8s" if profile.engine == "sglang" else "take a vLLM profile of several nodes",
        )
    if profile.hardware.nodes < 2:
        raise UsageError("one machine needs no Ray", where=profile.full_name, fix="render it to docker or compose")
    made = boxes.box(profile, settings, ray=True, host=settings.bind)
    head = shell_lines(_run(made, settings, "start", "--head", "--port", str(_PORT), "--block"))
    worker = shell_lines(_run(made, settings, "start", "--block"))
    address = shell(f":{_PORT}").strip("'")
    return boxes.with_files(
        made,
        {
            "ray_head.sh": _script(
                profile,
                "Starts Ray's head on this machine: ray_head.sh ADDRESS_OF_THIS_MACHINE",
                "own=${1:?address of this machine}\n"
                + _folder(made)
                + f'exec docker {head} --node-ip-address "$own"\n',
            ),
            "ray_worker.sh": _script(
                profile,
                "Joins the head: ray_worker.sh ADDRESS_OF_THE_HEAD ADDRESS_OF_THIS_MACHINE",
                "head=${1:?address of the head}\nown=${2:?address of this machine}\n"
                + _folder(made)
                + f'exec docker {worker} --address "$head"{address} --node-ip-address "$own"\n',
            ),
            "serve.sh": _script(
                profile,
                f"Serves on the head, inside {made.image.split('@')[0]}, once all {profile.hardware.gpus} GPUs have "
                f"joined. {made.sizes.assumption}",
                _wait(made) + f"exec docker exec {shell_lines([*_env(profile), _name(made), *made.command.argv])}\n",
            ),
        },
    )


def _env(profile: Profile) -> list[str]:
    """The profile's own variables, said again where the server starts: the script is whole without its container's."""
    return [word for name, value in profile.env.items() for word in ("--env", f"{name}={value}")]


def _name(made: boxes.Box) -> str:
    return f"{made.name}-ray"


def _script(profile: Profile, what: str, body: str) -> str:
    return "#!/usr/bin/env bash\n" + comment(boxes.headed(profile, "ray", what)) + "set -euo pipefail\n" + body


def _folder(made: boxes.Box) -> str:
    source = made.mounts[0].source
    here = 'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n' if "./" in [m.source[:2] for m in made.mounts] else ""
    return here + (
        f'mkdir -p "$here"{shell(source[1:])}\n' if source.startswith("./") else f"mkdir -p {shell(source)}\n"
    )


def _run(made: boxes.Box, settings: Settings, *ray: str) -> list[str]:
    """`docker run` of Ray in the engine's own image: one Ray version on all nodes, host network for NCCL."""
    words = boxes.docker_words(made, settings, detach=True, root="$here")
    words[words.index("--name") + 1] = _name(made)
    at = words.index("--publish")
    words[at : at + 2] = ["--network", "host", "--entrypoint", "ray"]
    image = len(words) - len(made.command.image_argv) - 1
    env = ["--env", Expr('VLLM_HOST_IP="$own"')]
    if settings.interface:
        env += [
            "--env",
            f"NCCL_SOCKET_IFNAME={settings.interface}",
            "--env",
            f"GLOO_SOCKET_IFNAME={settings.interface}",
        ]
    return [*words[:image], *env, made.image, *ray]


def _wait(made: boxes.Box) -> str:
    test = (
        "import ray, sys; ray.init(address='auto', log_to_driver=False); "
        f"sys.exit(ray.cluster_resources().get('GPU', 0) < {made.profile.hardware.gpus})"
    )
    return (
        f"for _ in $(seq 60); do\n  if docker exec {_name(made)} python3 -c {shell(test)}; then joined=1; break; fi\n"
        "  sleep 5\ndone\n"
        'if [ -z "${joined:-}" ]; then echo "not all GPUs have joined the Ray cluster" >&2; exit 1; fi\n'
    )
