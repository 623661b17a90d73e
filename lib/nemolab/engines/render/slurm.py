"""Slurm: a batch script, and what each node runs inside the container (pyxis and enroot)."""

from __future__ import annotations

import re

from nemolab.core.errors import UsageError
from nemolab.engines.command import Expr, Node
from nemolab.engines.profile import Profile
from nemolab.engines.render import box as boxes
from nemolab.engines.render.quoting import comment, exports, shell, shell_lines
from nemolab.engines.render.settings import Settings

_NODE = Node(Expr('"$SLURM_NODEID"'), Expr('"$HEAD_ADDRESS"'))
_JOB = "/job"


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`job.sbatch` and `server.sh`, and the options files.

    Raises:
        UsageError: NIM and Dynamo, which are not started as a command, or no image.
    """
    boxes.not_dynamo(profile, "slurm")
    if profile.engine == "nim":
        raise UsageError(
            "a NIM is started by its image's entry point, which pyxis skips",
            where=profile.full_name,
            fix="render it to docker, compose or k8s",
        )
    spread = profile.hardware.nodes > 1
    made = boxes.box(profile, settings, node=_NODE if spread else None, host=settings.bind)
    return boxes.with_files(made, {"job.sbatch": _job(made, settings), "server.sh": _server(made, settings)})


def _job(made: boxes.Box, settings: Settings) -> str:
    profile, hardware = made.profile, made.profile.hardware
    whole = hardware.nodes > 1 or hardware.gpus_per_node >= 8
    mpi = profile.engine == "trtllm" and hardware.nodes > 1
    options = {
        "job-name": made.name,
        "partition": settings.partition,
        "account": settings.account,
        "nodes": str(hardware.nodes),
        "ntasks-per-node": str(hardware.gpus_per_node if mpi else 1),
        "gpus-per-node": str(hardware.gpus_per_node) if hardware.gpus else "",
        "cpus-per-task": "" if whole or mpi else str(made.sizes.cpus),
        "mem": "0" if whole else f"{made.sizes.memory_gib}G",
        "exclusive": None if whole else "",
        "time": settings.time,
        "output": "%x-%j.log",
        "signal": "B:TERM@120",
    }
    lines = [f"#SBATCH --{name}" + (f"={value}" if value else "") for name, value in options.items() if value != ""]
    needed = "".join(
        f': "${{{name}:?export it first}}"\n' for name, secret in made.command.secrets.items() if secret.required
    )
    run = ["srun", "--kill-on-bad-exit=1", *(["--mpi=pmix"] if mpi else [])]
    run += [
        f"--container-image={_image(made.image)}",
        Expr('--container-mounts="$mounts"'),
        "--no-container-mount-home",
    ]
    run += ["--container-remap-root", "bash", f"{_JOB}/server.sh"]
    return (
        "#!/usr/bin/env bash\n"
        + "\n".join(lines)
        + "\n"
        + comment(boxes.headed(profile, "slurm", made.sizes.assumption, *_digest(made.image)))
        + "set -euo pipefail\nhere=$SLURM_SUBMIT_DIR\n"
        + needed
        + _head(made, settings)
        + _mounts(made)
        + f"{shell_lines(run)} &\n"
        + 'server=$!\ntrap \'kill -TERM "$server"; wait "$server"\' TERM INT\nwait "$server"\n'
    )


def _head(made: boxes.Box, settings: Settings) -> str:
    """The first node, whose address the others need."""
    where = "127.0.0.1" if settings.bind == "127.0.0.1" else "its address"
    lines = [
        'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f'echo "answers on $head, {where}, port {made.profile.port}, once it is ready"',
    ]
    if made.profile.hardware.nodes > 1:
        address = "srun --nodes=1 --ntasks=1 --nodelist=\"$head\" hostname --ip-address | awk '{print $1}'"
        lines += [f"HEAD_ADDRESS=$({address})", "export HEAD_ADDRESS"]
    return "\n".join(lines) + "\n"


def _mounts(made: boxes.Box) -> str:
    lines = ['mounts="$here:' + _JOB + ':ro"']
    for mount in made.mounts:
        relative = mount.source.startswith("./")
        if mount.target.startswith(boxes.CONFIG):
            continue
        source = f'"$here"{shell(mount.source[1:])}' if relative else shell(mount.source)
        end = f":{mount.target}:ro" if mount.read_only else f":{mount.target}"
        if not mount.read_only:
            lines.append(f"mkdir -p {source}")
        lines.append(f'mounts="$mounts,"{source}{shell(end)}')
    return "\n".join(lines) + "\n"


def _server(made: boxes.Box, settings: Settings) -> str:
    env = dict(made.env)
    if settings.interface:
        env |= {"NCCL_SOCKET_IFNAME": settings.interface, "GLOO_SOCKET_IFNAME": settings.interface}
    argv = [
        word.replace(f"{boxes.CONFIG}/", f"{_JOB}/") if not isinstance(word, Expr) else word
        for word in made.command.argv
    ]
    more = ""
    if made.command.follower:
        argv.append(Expr('"${follower[@]}"'))
        more = (
            "follower=()\n"
            f'if [ "$SLURM_NODEID" -gt 0 ]; then follower=({" ".join(map(shell, made.command.follower))}); fi\n'
        )
    return (
        "#!/usr/bin/env bash\n"
        + comment(f"Runs on every node, inside {made.image.split('@')[0]}; started by job.sbatch.")
        + "set -euo pipefail\n"
        + exports(env.items())
        + more
        + f"exec {shell_lines(argv)}\n"
    )


def _image(image: str) -> str:
    """An image as enroot writes it: `REGISTRY#NAME:TAG`, without digest."""
    name = image.split("@")[0]
    registry, _, rest = name.partition("/")
    return f"{registry}#{rest}" if re.search(r"[.:]", registry) and rest else name


def _digest(image: str) -> tuple[str, ...]:
    digest = image.partition("@")[2]
    return (f"enroot takes no digest; compare what it imported with {digest}.",) if digest else ()
