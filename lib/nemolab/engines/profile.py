"""Profiles: model x engine x hardware x goal, as data. Read from `runbooks/profiles/*.yaml`.

    profile = load("ultra_nvfp4_4xb200_vllm")            # or a path
    profile = load("ultra_nvfp4_4xb200_vllm:long-context")  # a variant of it

A file may extend a base of its folder (`extends: _vllm`; names with `_` in front are bases, not profiles) and may
have variants, which are layers over it; those of the base lie below its own. In a layer `null` takes a setting away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nemolab.core import located, paths
from nemolab.core.errors import UsageError
from nemolab.core.located import Located, nearest
from nemolab.engines import profile_layers as layers
from nemolab.engines.profile_schema import (
    Disagreement,
    Hardware,
    Reason,
    Secret,
    Value,
)

__all__ = ["Disagreement", "Hardware", "Profile", "Reason", "Secret", "Value", "changed", "every", "load", "names"]

_REQUIRED = ("title", "model", "engine", "engine_version", "goal")


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile with its layers put together.

    Attributes:
        name: file stem; `variant` is "" for the file as it is.
        model: name in the catalogue.
        image: container image with tag, and digest where it is known; "" when the engine has none.
        revision: commit of the checkpoint; "" for the newest.
        args: the engine's flags without dashes in front, spelled as the engine spells them.
        env: environment of the server.
        files: options files by name, as the mapping that they hold.
        frontend: flags of Dynamo's frontend; empty for every other engine.
        ports: `http` and what else the engine listens on.
        secrets: environment variables that hold secrets.
        reasons: setting (flag, variable, dotted key of an options file) -> why and source.
        fits: whether the planner says that it fits; a profile may exist to show that it does not.
        lines: "args.FLAG", "env.NAME", "files.FILE.KEY" or a key of the file -> `file:line` it comes from.
    """

    name: str
    variant: str
    variants: tuple[str, ...]
    title: str
    model: str
    engine: str
    engine_version: str
    goal: str
    hardware: Hardware
    image: str = ""
    revision: str = ""
    fits: bool = True
    notes: str = ""
    args: Mapping[str, Value] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    frontend: Mapping[str, Value] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    disagreements: tuple[Disagreement, ...] = ()
    lines: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """`name` or `name:variant`, as `load` takes it."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    @property
    def slug(self) -> str:
        """The name as container, unit and Kubernetes objects may be called: small letters, digits, dashes."""
        return self.full_name.lower().replace("_", "-").replace(":", "-").replace(".", "-").strip("-")[:52].strip("-")

    @property
    def port(self) -> int:
        """Port of the HTTP API."""
        return self.ports.get("http", 8000)

    @property
    def settings(self) -> tuple[str, ...]:
        """Everything that needs a reason: flags, variables, keys of options files (dotted)."""
        keys = (key for content in self.files.values() for key in layers.leaves(content))
        return (*self.args, *self.frontend, *self.env, *keys)

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Settings without a reason of their own or of a key above them."""
        return tuple(s for s in self.settings if not any(above in self.reasons for above in _prefixes(s)))

    def where(self, key: str) -> str:
        """`file:line` of a setting, or of the profile."""
        return self.lines.get(key) or self.lines.get("", self.full_name)


def folder() -> Path:
    """Where profiles are."""
    return paths.runbooks() / "profiles"


def names() -> tuple[str, ...]:
    """Names of the profiles in the checkout, without bases."""
    return tuple(sorted(path.stem for path in folder().glob("*.yaml") if not path.stem.startswith("_")))


def every() -> Iterator[Profile]:
    """Every profile of the checkout, each followed by its variants."""
    for name in names():
        profile = load(name)
        yield profile
        for variant in profile.variants:
            yield load(name, variant)


def load(name: str | Path, variant: str | None = None) -> Profile:
    """The profile `name`: a name in `runbooks/profiles`, or the path of a YAML file; `:variant` may follow.

    Raises:
        UsageError: with file and line: no such profile or variant, an unknown key, model, GPU or engine, a secret.
    """
    path, named = _find(str(name))
    variant = variant or named
    chain = list(layers.layers(path))
    source = chain[-1][0]
    variants = layers.variants(chain)
    if variant and variant not in variants:
        raise UsageError(
            f"no variant {variant!r}", where=str(path), fix=nearest(variant, variants) if variants else "it has none"
        )
    merged = layers.Merged()
    for at, layer in chain:
        merged.add(at, (), layer)
    titled = False
    for at, layer in chain if variant else ():
        if over := layer.variants.get(str(variant)):
            merged.add(at, ("variants", str(variant)), over)
            titled |= over.title is not None
    if variant and not titled and "title" in merged.words:
        merged.words["title"] += f", {variant}"
    return _checked(merged, path, variant or "", variants, source)


def changed(profile: Profile, changes: Mapping[str, str]) -> Profile:
    """The profile with single settings changed: `args.FLAG`, `env.NAME`, `image`, `revision`, `ports.http`.

    Values are read as YAML scalars, so `null` takes a flag away.

    Raises:
        UsageError: no such setting.
    """
    args, env, ports = dict(profile.args), dict(profile.env), dict(profile.ports)
    plain: dict[str, Any] = {}
    for key, text in changes.items():
        part, _, name = key.partition(".")
        value = located.scalar(text)
        if part == "args" and name:
            _set(args, name, value)
        elif part == "env" and name:
            _set(env, name, None if value is None else text)
        elif part == "ports" and name and isinstance(value, int):
            ports[name] = value
        elif key in ("image", "revision"):
            plain[key] = text
        else:
            raise UsageError(
                f"cannot set {key!r}",
                where="--set",
                fix="args.FLAG, env.NAME, image, revision, ports.http=NUMBER, or a setting of the target",
            )
    return replace(profile, args=args, env=env, ports=ports, **plain)


def _set(values: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _find(name: str) -> tuple[Path, str | None]:
    stem, _, variant = name.rpartition(":") if ":" in name else (name, "", "")
    for text, chosen in ((name, None), (stem, variant or None)):
        path = Path(text)
        if path.suffix in (".yaml", ".yml"):
            return (path if path.exists() or path.is_absolute() else paths.root() / path), chosen
        if (inside := folder() / f"{text}.yaml").exists():
            return inside, chosen
    raise UsageError(f"no profile {name!r}", where=str(folder()), fix=nearest(stem, names()))


def _prefixes(setting: str) -> list[str]:
    parts = setting.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _checked(merged: layers.Merged, path: Path, variant: str, variants: tuple[str, ...], source: Located) -> Profile:
    at = ("variants", variant) if variant else ()
    for name in _REQUIRED:
        if not merged.words.get(name):
            raise UsageError(f"{name} is missing", where=source.at(*at), fix=f"add `{name}:`")
    if not merged.hardware:
        raise UsageError("hardware is missing", where=source.at(*at), fix="add `hardware: {gpu: h200, gpus: 8}`")
    where = merged.lines["hardware"]
    try:
        hardware = Hardware.model_validate(merged.hardware)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            known = list(Hardware.model_fields)
            raise UsageError(
                f"unknown key {first['loc'][-1]!r} in hardware", where=where, fix=nearest(str(first["loc"][-1]), known)
            ) from None
        raise UsageError(f"hardware.{first['loc'][-1]}: {first['msg']}", where=where) from None
    _known(merged, hardware, where)
    lines = {"": source.at(*at), **merged.lines}
    parts: dict[str, Any] = {**merged.words, **merged.maps}
    return Profile(
        name=path.stem,
        variant=variant,
        variants=variants,
        hardware=hardware,
        disagreements=tuple(merged.disagreements),
        lines=lines,
        **parts,
    )


def _known(merged: layers.Merged, hardware: Hardware, where: str) -> None:
    """Refuse a model, a GPU or a division that nothing is known of."""
    from nemolab import models
    from nemolab.lint import hardware as kinds

    try:
        models.find(merged.words["model"])
    except UsageError as error:
        raise UsageError(error.what, where=merged.lines["model"], fix=error.fix) from None
    if hardware.gpus:
        try:
            kinds.find(hardware.gpu)
        except UsageError as error:
            raise UsageError(error.what, where=where, fix=error.fix) from None
    if hardware.gpus % hardware.nodes:
        raise UsageError(f"{hardware.gpus} GPUs do not divide over {hardware.nodes} nodes", where=where)
