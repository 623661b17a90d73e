"""The schema of a profile file, strict: what is not in it is refused, with the line and the nearest right spelling.

Every key may be left out in one layer (a base, a variant); `profile` puts the layers together and asks for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from nemolab.core.errors import UsageError
from nemolab.core.located import Located, nearest
from nemolab.core.secrets import find_key_shapes, secret_like

Engine = Literal["vllm", "sglang", "trtllm", "nim", "dynamo", "llamacpp"]
Goal = Literal["quick-check", "latency", "throughput", "long-context", "agents"]
Scalar = bool | int | float | str | None
Value = Scalar | list[Any] | dict[str, Any]
ENGINES: tuple[str, ...] = get_args(Engine)
GOALS: tuple[str, ...] = get_args(Goal)


def _env_text(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("'0' or '1' as text: a variable has no truth values")
    return str(value) if isinstance(value, int | float) else value


EnvText = Annotated[str | None, BeforeValidator(_env_text)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())


class Hardware(_Model):
    """Where a profile runs: `gpus` of one kind in all, on `nodes` machines of equal size. 0 GPUs: a CPU."""

    gpu: str = ""
    gpus: int = Field(1, ge=0)
    nodes: int = Field(1, ge=1)

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one machine."""
        return self.gpus // self.nodes


class Reason(_Model):
    """Why a setting stands there, and who says so."""

    why: str = Field(min_length=1)
    source: str = Field(min_length=1)


class Secret(_Model):
    """An environment variable that holds a secret; its value never stands in a profile or a rendered file."""

    help: str = Field(min_length=1)
    required: bool = False


class Disagreement(_Model):
    """Sources that contradict each other, or a finding that stays: what it is about, who says what, what was chosen.

    `finding` is the code of the lint finding that it accounts for, "" when no rule speaks of it.
    """

    about: str = Field(min_length=1)
    says: dict[str, str] = Field(min_length=1)
    chosen: str = Field(min_length=1)
    finding: str = ""


class Layer(_Model):
    """One layer of a profile: the file itself, a base that it extends, or a variant. Absent keys come from below."""

    title: str | None = None
    model: str | None = None
    engine: Engine | None = None
    engine_version: str | None = None
    image: str | None = None
    revision: str | None = None
    goal: Goal | None = None
    fits: bool | None = None
    notes: str | None = None
    hardware: dict[str, Any] = Field(default_factory=dict)
    args: dict[str, Value] = Field(default_factory=dict)
    env: dict[str, EnvText] = Field(default_factory=dict)
    files: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    frontend: dict[str, Value] = Field(default_factory=dict)
    ports: dict[str, int] = Field(default_factory=dict)
    secrets: dict[str, Secret | None] = Field(default_factory=dict)
    reasons: dict[str, Reason | None] = Field(default_factory=dict)
    disagreements: list[Disagreement] = Field(default_factory=list)

    @field_validator("args", "frontend")
    @classmethod
    def _spelled(cls, args: dict[str, Value]) -> dict[str, Value]:
        for name in args:
            if name.startswith("-"):
                raise ValueError(f"flags without dashes in front: {name.lstrip('-')!r}")
        return args


class File(Layer):
    """A profile file: a layer that may extend another file of its folder and may have variants."""

    extends: str | None = None
    variants: dict[str, Layer | None] = Field(default_factory=dict)


def parse(source: Located) -> File:
    """The file, checked as far as one layer can be.

    Raises:
        UsageError: with file and line: an unknown key, a wrong type, a secret.
    """
    if not isinstance(source.value, dict):
        raise UsageError("a profile is a mapping with title, model, engine and args", where=source.at())
    try:
        file = File.model_validate(source.value)
    except ValidationError as error:
        raise _located(source, error) from None
    refuse_secrets(source, file)
    return file


def refuse_secrets(source: Located, file: File) -> None:
    """Refuse settings that would hold a secret."""
    fix = "name the variable under `secrets:`; whoever starts the server sets it"
    layers: list[tuple[tuple[str | int, ...], Layer]] = [((), file)]
    layers += [(("variants", name), layer) for name, layer in file.variants.items() if layer]
    for at, layer in layers:
        for part, names in (("args", layer.args), ("env", layer.env)):
            for name, value in names.items():
                if secret_like(name.replace("-", "_")) and isinstance(value, str):
                    raise UsageError(f"{name!r} would hold a secret", where=source.at(*at, part, name), fix=fix)
    if shapes := find_key_shapes(source.text):
        kind, offset = shapes[0]
        line = source.text.count("\n", 0, offset) + 1
        raise UsageError(f"this has the shape of a key ({kind})", where=f"{source.path}:{line}", fix=fix)


_INNER: Mapping[str, type[BaseModel]] = {"secrets": Secret, "reasons": Reason, "disagreements": Disagreement}


def _located(source: Located, error: ValidationError) -> UsageError:
    # A misspelled key is also a missing one: say the misspelling.
    first = next((e for e in error.errors() if e["type"] == "extra_forbidden"), error.errors()[0])
    loc = tuple(part for part in first["loc"] if part not in ("list[any]", "dict[str,any]"))
    name = ".".join(str(part) for part in loc)
    if first["type"] == "extra_forbidden":
        known = [*_owner(loc).model_fields]
        return UsageError(f"unknown key {loc[-1]!r}", where=source.at(*loc), fix=nearest(str(loc[-1]), known))
    if first["type"] == "missing":
        return UsageError(f"{name} is missing", where=source.at(*loc[:-1]), fix=f"add `{loc[-1]}:`")
    if first["type"] == "literal_error":
        choices = ENGINES if loc[-1] == "engine" else GOALS
        return UsageError(
            f"{name}: no such {loc[-1]} {first['input']!r}",
            where=source.at(*loc),
            fix=nearest(str(first["input"]), choices),
        )
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    fix = "put it in quotes" if "string" in message and not isinstance(first["input"], dict | list) else None
    return UsageError(f"{name}: should be {message}, not {first['input']!r}", where=source.at(*loc), fix=fix)


def _owner(loc: tuple[str | int, ...]) -> type[BaseModel]:
    if loc[0] == "variants":
        return Layer if len(loc) <= 3 else _owner(loc[2:])
    return _INNER.get(str(loc[0]), Layer) if len(loc) > 1 else File
