"""A launch as words: what one server process of a profile is started with, wherever it is started.

`command(profile, place)` is pure: the engine's module says how its command line is spelled, the place says where the
model, the options files and the other machines are. Renderers write it down; `launch` makes a process of it.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.core.files import write_atomic
from nemolab.engines import checkpoint
from nemolab.engines.launch import Launch
from nemolab.engines.profile import Profile, Secret, Value

MODULES: tuple[str, ...] = ("vllm", "sglang", "trtllm", "nim", "dynamo", "llamacpp")


class Expr(str):
    """A word that is written into the rendered file as it stands, because it is expanded when the server starts."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of a start over several: what its rank and the address of rank 0 are called there."""

    rank: str
    address: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server runs.

    Attributes:
        model: what the engine is told to load; "" for the checkpoint's repository.
        host: address that it listens on.
        config: folder in which it finds its options files.
        node: set for a start over several machines; `ray`: they are a Ray cluster instead.
    """

    model: str = ""
    host: str = "127.0.0.1"
    config: str = "."
    node: Node | None = None
    ray: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """What is started.

    Attributes:
        argv: program and arguments; a word of class `Expr` is expanded at the start.
        entry: how many of the first words the container image's own entry point already holds; all of them: the image
            takes no arguments.
        env: variables, in order; no secrets.
        files: options files: name -> text.
        secrets: variables that whoever starts it sets.
        served: model name that clients ask for.
        health, ready, metrics: paths of the HTTP API.
        user: user and group ids that the image runs as without root; None when it needs root or nothing is known.
        frontend: a second process that takes the requests (Dynamo).
        follower: words that every rank but the first has besides.
    """

    argv: tuple[str, ...]
    entry: int = 0
    env: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    served: str = ""
    health: str = "/health"
    ready: str = "/health"
    metrics: str = "/metrics"
    user: tuple[int, int] | None = None
    frontend: tuple[str, ...] = ()
    follower: tuple[str, ...] = ()

    @property
    def image_argv(self) -> tuple[str, ...]:
        """The arguments of the container image."""
        return self.argv[self.entry :]


def command(profile: Profile, place: Place = Place()) -> Command:
    """The server of `profile` at `place`.

    Raises:
        UsageError: the engine cannot be started like this.
    """
    made: Command = _module(profile.engine).command(profile, place)
    return replace(
        made,
        env=tuple((name, value) for name, value in {**dict(made.env), **profile.env}.items()),
        files={name: yaml_text(content) for name, content in profile.files.items()},
        secrets=profile.secrets,
    )


def launch(
    profile: Profile,
    *,
    bin: Path | None = None,
    model: str = "",
    port: int | None = None,
    files: Path | None = None,
    timeout_s: float = 1800.0,
) -> Launch:
    """The process to start on this machine: `nemolab.engines.process.start(launch(profile))`.

    Args:
        bin: folder of the engine's programs, of its own environment; None: they are on PATH.
        model: folder of the checkpoint; "" for the repository, and for the miniature its own weights.
        files: folder to write the options files to, needed when the profile has any.

    Raises:
        UsageError: no log rules or no process for this engine, several nodes, or options files without a folder.
    """
    from nemolab.engines.registry import log_rules

    if port is not None:
        profile = replace(profile, ports={**profile.ports, "http": port})
    if profile.engine == "llamacpp":
        from nemolab.engines.commands import llamacpp

        return llamacpp.launch(profile, model)
    if profile.engine in ("nim", "dynamo"):
        raise UsageError(
            f"{profile.engine} does not run as one process here",
            where=profile.full_name,
            fix="render it to docker or dynamo, start that, and attach",
        )
    if profile.hardware.nodes > 1:
        raise UsageError("several nodes", where=profile.full_name, fix="render it to slurm, ray or k8s, and attach")
    if profile.files and files is None:
        raise UsageError("the profile has options files", where=profile.full_name, fix="give a folder for them")
    if model:
        checkpoint.of_profile(profile, Path(model).expanduser())
    made = command(profile, Place(model or local_model(profile), config=str(files or ".")))
    for name, text in made.files.items():
        write_atomic(Path(files or ".") / name, text)
    program = str(bin / made.argv[0]) if bin else made.argv[0]
    return Launch(
        engine=profile.engine,
        title=profile.title,
        model=made.served,
        argv=(program, *made.argv[1:]),
        log=log_rules(profile.engine),
        port=profile.port,
        env=made.env,
        secret_env=tuple(name for name, secret in profile.secrets.items() if secret.required),
        health=made.health,
        timeout_s=timeout_s,
        grace_s=60.0,
    )


def local_model(profile: Profile) -> str:
    """Folder of the miniature's weights; "" for every other model, which is named by its repository."""
    if profile.model != "miniature":  # a model cut to its first layers has no repository either
        return ""
    from nemolab import miniature

    return str(miniature.checkpoint_folder())


def repository(profile: Profile) -> str:
    """Hugging Face repository of the profile's model; "" for the miniature, which has none."""
    from nemolab import models

    return models.find(profile.model).repo


def model_word(profile: Profile, place: Place) -> str:
    """What the engine is told to load.

    Raises:
        UsageError: the model has no repository and no folder is given.
    """
    if word := place.model or repository(profile):
        return word
    raise UsageError(
        f"{profile.model} has no repository", where=profile.full_name, fix="give its folder: --set model_dir=DIR"
    )


def served_name(profile: Profile) -> str:
    """The name that clients ask for: as set, else the repository's or the model's own."""
    named = profile.args.get("served-model-name") or profile.args.get("served_model_name")
    if isinstance(named, list):
        named = named[0]
    return str(named or repository(profile) or profile.model)


def flags(args: Mapping[str, Value], where: str, *, negative: str = "") -> list[str]:
    """The words of `args`, in order: `--name value`; a list is several words, a mapping is JSON.

    Args:
        negative: prefix of a switch that is off, as `no-`; "" when the engine has no such form.

    Raises:
        UsageError: a switch is off and the engine has no word for that.
    """
    words: list[str] = []
    for name, value in args.items():
        if value is True:
            words.append(f"--{name}")
        elif value is False:
            if not negative:
                raise UsageError(f"--{name} has no negative form: leave it out", where=where)
            words.append(f"--{negative}{name}")
        elif isinstance(value, list):
            words += [f"--{name}", *map(_word, value)]
        elif value is not None:
            words += [f"--{name}", _word(value)]
    return words


def _word(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def yaml_text(content: Mapping[str, Any]) -> str:
    """A mapping as YAML, in the order it is in."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    text: str = yaml.dump(dict(content), Dumper=Plain, sort_keys=False, default_flow_style=False, width=120)
    return text


def _module(engine: str) -> ModuleType:
    if engine not in MODULES:
        raise UsageError(f"unknown engine {engine!r}", fix=f"one of: {', '.join(MODULES)}")
    return importlib.import_module(f"nemolab.engines.commands.{engine}")
