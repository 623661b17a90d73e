"""A profile in a container: image, words, variables, mounts. What docker, compose, units and Kubernetes share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nemolab.core.errors import UsageError
from nemolab.engines.command import Command, Expr, Node, Place, command, repository
from nemolab.engines.commands.nim import CACHE as NIM_CACHE
from nemolab.engines.profile import Profile
from nemolab.engines.render.settings import Settings
from nemolab.engines.render.sizes import Sizes, sizes

MODELS, MODEL, CONFIG = "/models", "/model", "/config"


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the host, and where it stands in the container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A container to start.

    Attributes:
        mounts: paths of the host, relative ones from where the rendered files lie.
        cache: where the model cache is mounted.
    """

    name: str
    profile: Profile
    command: Command
    image: str
    env: tuple[tuple[str, str], ...]
    mounts: tuple[Mount, ...]
    cache: str
    sizes: Sizes


def box(
    profile: Profile,
    settings: Settings,
    *,
    models: str = "./models",
    files: str = ".",
    node: Node | None = None,
    ray: bool = False,
    host: str = "0.0.0.0",
) -> Box:
    """The container of `profile`.

    Args:
        models: default of `settings.models`.
        files: folder of the options files on the host.

    Raises:
        UsageError: there is no image, or no folder of a checkpoint that has no repository.
    """
    if not profile.image:
        raise UsageError(
            f"{profile.engine} has no container image here",
            where=profile.full_name,
            fix="render it to process or systemd, or give an image: --set image=REPOSITORY:TAG@sha256:...",
        )
    folder = settings.model_dir or ("" if repository(profile) else f"./{profile.model}")
    made = command(profile, Place(MODEL if folder else "", host, CONFIG, node, ray))
    cache = NIM_CACHE if profile.engine == "nim" else MODELS
    mounts = [Mount(settings.models or models, cache)]
    mounts += [Mount(folder, MODEL, read_only=True)] if folder else []
    mounts += [Mount(f"{files}/{name}", f"{CONFIG}/{name}", read_only=True) for name in made.files]
    return Box(
        name=settings.name or profile.slug,
        profile=profile,
        command=made,
        image=profile.image,
        env=tuple({**_cache_env(profile, cache), **dict(made.env)}.items()),
        mounts=tuple(mounts),
        cache=cache,
        sizes=sizes(profile, settings.disk_gb_s),
    )


def one_node(profile: Profile, target: str) -> None:
    """Refuse several machines where the target has no way to start them together."""
    if profile.hardware.nodes > 1:
        raise UsageError(
            f"{target} starts one machine, the profile needs {profile.hardware.nodes}",
            where=profile.full_name,
            fix="render it to slurm, ray or k8s" if profile.engine == "vllm" else "render it to slurm or k8s",
        )


def not_dynamo(profile: Profile, target: str) -> None:
    """Refuse Dynamo, whose workers are found through its own control plane."""
    if profile.engine == "dynamo":
        raise UsageError(
            f"Dynamo's frontend and workers are not started by {target}",
            where=profile.full_name,
            fix="render it to dynamo; the operator starts them",
        )


def _cache_env(profile: Profile, cache: str) -> dict[str, str]:
    """Where checkpoints and compiled kernels are kept, so that a second start finds them."""
    if profile.engine == "nim":
        return {}
    found = {"HF_HOME": cache, "TRITON_CACHE_DIR": f"{cache}/cache/triton"}
    if profile.engine in ("vllm", "dynamo"):
        found["VLLM_CACHE_ROOT"] = f"{cache}/cache/vllm"
    return found


def docker_words(made: Box, settings: Settings, *, detach: bool, root: str = "") -> list[str]:
    """The words of `docker run`, image and arguments included.

    Args:
        detach: run in the background and restart by itself; otherwise the caller supervises it.
        root: shell expression that relative host paths start from; "" leaves them.
    """
    words = ["run", "--name", made.name]
    words += ["--detach", "--restart", "unless-stopped"] if detach else ["--rm"]
    if made.profile.hardware.gpus:
        words += ["--gpus", str(made.profile.hardware.gpus_per_node)]
    words += ["--shm-size", f"{settings.shm_gib}g", "--ulimit", "memlock=-1", "--ulimit", "nofile=65536:65536"]
    words += ["--security-opt", "no-new-privileges:true", "--log-opt", "max-size=100m", "--log-opt", "max-file=3"]
    words += ["--stop-timeout", "60"]
    words += ["--publish", f"{settings.bind}:{made.profile.port}:{made.profile.port}"]
    for mount in made.mounts:
        end = f":{mount.target}:ro" if mount.read_only else f":{mount.target}"
        words += ["--volume", _from(root, mount.source, end)]
    for name, value in made.env:
        words += ["--env", f"{name}={value}"]
    for name in made.command.secrets:
        words += ["--env", name]
    return [*words, made.image, *made.command.image_argv]


def health_check(made: Box) -> tuple[str, ...]:
    """A command that fails unless the server answers; Python, because every image has it and few have curl."""
    url = f"http://127.0.0.1:{made.profile.port}{made.command.health}"
    return ("python3", "-c", "import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=15)", url)


def with_files(made: Box, files: dict[str, str]) -> dict[str, str]:
    """Rendered files with the options files beside them."""
    return {**files, **made.command.files}


def model_note(made: Box, where: str = "") -> tuple[str, ...]:
    """Where the checkpoint is expected, when it is not downloaded; by default where it is mounted from."""
    folder = next((mount.source for mount in made.mounts if mount.target == MODEL), "")
    if not folder:
        return ()
    how = "; `nemolab miniature export --out DIR` writes it" if made.profile.model == "miniature" else ""
    return (f"The checkpoint is expected in {where or folder}{how}.",)


def headed(profile: Profile, target: str, *more: str) -> str:
    """The first lines of a rendered file: what it is, how it was made, what was assumed."""
    lines = [
        profile.title,
        f"Made by `nemolab render {profile.full_name} --to {target}`.",
        "Change the profile, not this file.",
    ]
    return "\n".join([*lines, *more])


def needs(profile: Profile) -> tuple[str, ...]:
    """The release that the settings were held against, as a pin, where no image says it; llama.cpp has none."""
    package = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}.get(profile.engine)
    return (f"Needs {package}=={profile.engine_version}.",) if package else ()


def _from(root: str, source: str, end: str) -> str:
    if root and re.match(r"\./|\.$", source):
        from nemolab.engines.render.quoting import shell

        rest = source.removeprefix(".")
        return Expr(f'"{root}"{shell(rest + end)}')
    return source + end
