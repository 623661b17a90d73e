"""The schema of a runbook, strict: what is not in it is refused, with the line and the nearest right spelling."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nemolab.core import located, paths
from nemolab.core.errors import UsageError
from nemolab.core.files import sha256
from nemolab.core.located import Located, nearest
from nemolab.core.secrets import find_key_shapes, secret_like
from nemolab.runbook import references

_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


def seconds(value: object) -> float:
    """Seconds of `90`, `"60s"`, `"5 min"` or `"2h"`."""
    match = _DURATION.fullmatch(str(value)) if not isinstance(value, bool) else None
    if not match or match[2] not in _UNITS or float(match[1]) <= 0:
        raise ValueError("a duration such as 60s, 5 min or 2h")
    return float(match[1]) * _UNITS[match[2]]


Duration = Annotated[float, BeforeValidator(seconds)]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Scalar = bool | int | float | str | None
DEFAULT_TIMEOUT = 600.0


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Parameter(_Model):
    """A value that whoever runs the runbook may set with `--set name=value`."""

    type: Literal["str", "int", "float", "bool", "list"]
    default: Any
    help: str
    choices: list[Scalar] | None = None
    min: float | None = None
    max: float | None = None

    def parse(self, text: str) -> Any:
        """The value that `text`, typed at the command line, stands for.

        Raises:
            ValueError: it is none of this type, or outside the limits.
        """
        if self.type == "str":
            return self.check(text)
        return self.check(located.scalar(text))

    def check(self, value: Any) -> Any:
        """`value`, if it has this type and is within the limits.

        Raises:
            ValueError: it has not, or is not.
        """
        fits = {
            "str": isinstance(value, str),
            "bool": isinstance(value, bool),
            "int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, int | float) and not isinstance(value, bool),
            "list": isinstance(value, list),
        }[self.type]
        if not fits:
            raise ValueError(f"{value!r} is not {_TYPE_WORDS[self.type]}")
        value = float(value) if self.type == "float" else value
        if self.choices is not None and value not in self.choices:
            close = nearest(str(value), map(str, self.choices))
            raise ValueError(f"{value!r} is none of {', '.join(map(str, self.choices))}; {close}")
        for item in value if self.type == "list" else [value]:
            if isinstance(item, int | float) and not isinstance(item, bool):
                if self.min is not None and not item >= self.min:
                    raise ValueError(f"{item} is under the minimum, {self.min:g}")
                if self.max is not None and not item <= self.max:
                    raise ValueError(f"{item} is over the maximum, {self.max:g}")
        return value


_TYPE_WORDS = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "a list such as [1, 2]",
}


class Step(_Model):
    """One notebook of the runbook, with its parameters and what must come out of it.

    Attributes:
        needs: steps that must have passed; left out, the step before. `[]` makes it independent.
        cell_timeout: limit of one cell; left out, the whole step's.
        service: the step leaves a server that its dependants use, so it is kept only when they all are.
        exclusive: nothing else runs beside it, as a measurement wants.
        when: conditions on the runbook's parameters; when one does not hold the step is skipped.
        on_fail: notebook that helps when the step does not pass.
        sign_off: roles that must answer for the step before its dependants run.
    """

    id: Word
    notebook: str
    with_: dict[str, Any] = Field(default_factory=dict, alias="with")
    needs: list[str] | None = None
    expect: dict[str, Any] = Field(default_factory=dict)
    when: dict[str, Any] = Field(default_factory=dict)
    timeout: Duration = DEFAULT_TIMEOUT
    cell_timeout: Duration | None = None
    on_fail: str | None = None
    sign_off: list[Word] = Field(default_factory=list)
    service: bool = False
    exclusive: bool = False


class Symptom(_Model):
    """What a person may see, why, and what to do."""

    symptom: str
    cause: str
    fix: str


class Runbook(_Model):
    """A runbook as written."""

    title: str
    purpose: str
    audience: str = ""
    time: str = ""
    risk: str = ""
    rollback: str = ""
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    steps: list[Step] = Field(min_length=1)
    symptoms: list[Symptom] = Field(default_factory=list)


class Spec(BaseModel):
    """A runbook that holds together: schema, names, references and order are checked. Notebooks are not yet.

    Attributes:
        needs: for each step id, the steps it waits for: written, implied by order, and by `${step.value}`.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    name: str
    source: Located
    sha256: str
    book: Runbook
    needs: dict[str, tuple[str, ...]]

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.path

    def step(self, step_id: str) -> Step:
        """The step of this id, or a UsageError with the nearest."""
        for step in self.book.steps:
            if step.id == step_id:
                return step
        ids = [step.id for step in self.book.steps]
        raise UsageError(f"no step {step_id!r}", where=str(self.path), fix=nearest(step_id, ids))


def find(name: str) -> Path:
    """The runbook file that `name` means: a path, or the stem of a file in `runbooks/`."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path if path.exists() or path.is_absolute() else paths.root() / path
    inside = paths.runbooks() / f"{name}.yaml"
    if inside.exists():
        return inside
    known = [p.stem for p in paths.runbooks().glob("*.yaml")]
    raise UsageError(f"no runbook {name!r}", where=str(paths.runbooks()), fix=nearest(name, known))


def load(path: Path) -> Spec:
    """Read and check the runbook at `path`.

    Raises:
        UsageError: with file and line: an unknown key, a wrong type, a secret-like name, an unknown reference, a cycle.
    """
    source = located.read(path)
    if not isinstance(source.value, dict):
        raise UsageError("a runbook is a mapping with title, purpose and steps", where=source.at())
    try:
        book = Runbook.model_validate(source.value)
    except ValidationError as error:
        raise _schema_error(source, error) from None
    _check_secrets(source, book)
    _check_parameters(source, book)
    needs = _needs(source, book)
    return Spec(name=path.stem, source=source, sha256=sha256(source.text.encode()), book=book, needs=needs)


def _schema_error(source: Located, error: ValidationError) -> UsageError:
    # A misspelled key is also a missing one: say the misspelling.
    first = next((e for e in error.errors() if e["type"] == "extra_forbidden"), error.errors()[0])
    loc = first["loc"]
    name = ".".join(str(part) for part in loc)
    if first["type"] == "extra_forbidden":
        owner = _model_at(loc)
        known = [field.alias or key for key, field in owner.model_fields.items()]
        return UsageError(f"unknown key {loc[-1]!r}", where=source.at(*loc), fix=nearest(str(loc[-1]), known))
    if first["type"] == "missing":
        return UsageError(f"{name} is missing", where=source.at(*loc[:-1]), fix=f"add `{loc[-1]}:`")
    if first["type"] == "string_pattern_mismatch":
        message = f"{name}: {first['input']!r} is not a name of small letters, digits and _"
        return UsageError(message, where=source.at(*loc))
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return UsageError(f"{name}: should be {message}, not {first['input']!r}", where=source.at(*loc))


def _model_at(loc: tuple[str | int, ...]) -> type[BaseModel]:
    inner: dict[str | int, type[BaseModel]] = {"parameters": Parameter, "steps": Step, "symptoms": Symptom}
    return inner[loc[0]] if len(loc) > 2 else Runbook


def _check_secrets(source: Located, book: Runbook) -> None:
    fix = "name the environment variable that holds it instead, as in `api_key_env: NAME`"
    names: list[tuple[str | int, ...]] = [("parameters", key) for key in book.parameters]
    names += [("steps", i, "with", key) for i, step in enumerate(book.steps) for key in step.with_]
    for at in names:
        if secret_like(str(at[-1])):
            raise UsageError(f"parameter {at[-1]!r} would hold a secret", where=source.at(*at), fix=fix)
    if shapes := find_key_shapes(source.text):
        kind, offset = shapes[0]
        line = source.text.count("\n", 0, offset) + 1
        raise UsageError(f"this has the shape of a key ({kind})", where=f"{source.path}:{line}", fix=fix)


def _check_parameters(source: Located, book: Runbook) -> None:
    for name, parameter in book.parameters.items():
        if not name.isidentifier():
            raise UsageError(f"{name!r} is not a name", where=source.at("parameters", name))
        try:
            parameter.check(parameter.default)
        except ValueError as error:
            raise UsageError(f"default of {name!r}: {error}", where=source.at("parameters", name, "default")) from None


def _needs(source: Located, book: Runbook) -> dict[str, tuple[str, ...]]:
    ids: list[str] = []
    for index, step in enumerate(book.steps):
        where = source.at("steps", index, "id")
        if step.id in ids:
            raise UsageError(f"two steps are called {step.id!r}", where=where, fix="rename one")
        if step.id in book.parameters:
            raise UsageError(f"{step.id!r} is a step and a parameter", where=where, fix="rename one")
        ids.append(step.id)
    needs: dict[str, tuple[str, ...]] = {}
    for index, step in enumerate(book.steps):
        before = [book.steps[index - 1].id] if index else []
        wanted = before if step.needs is None else step.needs
        for position, other in enumerate(wanted):
            if other not in ids:
                where = source.at("steps", index, "needs", position)
                raise UsageError(f"{step.id!r} needs the unknown step {other!r}", where=where, fix=nearest(other, ids))
        implied = _implied(source, book, index, ids)
        needs[step.id] = tuple(dict.fromkeys([*wanted, *implied]))
    try:
        tuple(TopologicalSorter(needs).static_order())
    except CycleError as error:
        ring = " needs ".join(repr(step) for step in reversed(error.args[1]))
        first = min(ids.index(step) for step in error.args[1])
        raise UsageError(f"a cycle: {ring}", where=source.at("steps", first), fix="drop one of the needs") from None
    for name in [*book.parameters, *needs]:
        if name in ("when", "with"):
            raise UsageError(f"{name!r} is a word of the schema", where=source.at(), fix="rename it")
    return needs


def _implied(source: Located, book: Runbook, index: int, ids: list[str]) -> list[str]:
    """Steps that step `index` takes values from. Checks every reference's owner on the way."""
    step = book.steps[index]
    owners: list[str] = []
    for part, tree in (("with", step.with_), ("expect", step.expect), ("when", step.when)):
        for key, value in tree.items():
            where = source.at("steps", index, part, key)
            try:
                found = list(references.find(value))
            except references.BadReferenceError as error:
                fix = "write ${parameter} or ${step.value}; $${ stands for a literal ${"
                raise UsageError(f"{error} is no reference", where=where, fix=fix) from None
            for ref in found:
                if ref.value is None and ref.owner not in book.parameters:
                    raise UsageError(
                        f"unknown parameter in {ref}", where=where, fix=nearest(ref.owner, book.parameters)
                    )
                if ref.value is not None and part == "when":
                    raise UsageError(f"{ref}: only parameters can stand in `when`", where=where)
                if ref.value is not None and ref.owner not in ids:
                    raise UsageError(f"unknown step in {ref}", where=where, fix=nearest(ref.owner, ids))
                if ref.value is not None:
                    owners.append(ref.owner)
    for name in step.when:
        if name not in book.parameters:
            where = source.at("steps", index, "when", name)
            raise UsageError(
                f"`when` names the unknown parameter {name!r}", where=where, fix=nearest(name, book.parameters)
            )
    return owners
