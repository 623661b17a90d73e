"""A notebook's parameters: declared in its `parameters` cell, defined by a pydantic model, checked before use.

papermill writes parameters into a notebook as code and its command line guesses their types: `-p k true` stays the
text "true", `-p k 007` becomes 7, `-p k 1e3` becomes 1000.0, `-p k [1,2]` stays text; a name that the notebook lacks
is only warned of, and pasted into the code unchecked. So what arrives is checked here against the model. Text for a
field that is no text is read as JSON reads it (`true`, `8`, `[1, 2]`; also `True` and `None`); 1000.0 is a whole
number; a number is never text, a truth value never a number, NaN and infinity never a number.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import io
import json
import keyword
import math
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from nemolab.core.contract import Params
from nemolab.core.errors import UsageError
from nemolab.core.secrets import find_key_shapes, redact, secret_like
from nemolab.notebook import frontend, source
from nemolab.notebook.spelling import limits, type_of

P = TypeVar("P", bound=Params)

_checked: set[type[Params]] = (
    set()
)  # models checked in this kernel: from then on the namespace holds more than parameters


@dataclass(frozen=True, slots=True)
class Declared:
    """One line of a `parameters` cell: `name = default  # type: help`.

    Attributes:
        name: of the parameter.
        default: the literal's value.
        type: as the comment spells it, such as `int` or `list[str]`; "" if the line has no comment.
        help: the comment's text.
        line: in the cell, from 1.
    """

    name: str
    default: Any
    type: str
    help: str
    line: int


def check(model: type[P], namespace: Mapping[str, Any]) -> P:
    """The notebook's parameters, checked: `p = params.check(LadderParams, globals())`.

    Shows the parameters that differ from their defaults. In a headless run the first check also refuses variables
    that the model does not know: by then only parameters can be there, so one is a misspelled `papermill -p`.

    Raises:
        UsageError: naming every parameter that is missing, unknown, of a wrong type or outside its limits.
    """
    given = {name: namespace[name] for name in model.model_fields if name in namespace}
    missing = [name for name in model.model_fields if name not in namespace]
    if missing:
        raise UsageError(
            f"the parameters cell does not set {', '.join(missing)}",
            where=model.__name__,
            fix="run the cell tagged `parameters` first; `nemolab lint-notebooks --fix` writes it from the model",
        )
    if model not in _checked and not frontend.person_is_there():
        given |= {name: value for name, value in namespace.items() if _stray(name, value, model)}
    checked = bind(model, given)
    _checked.add(model)
    frontend.known_as(model.__name__.removesuffix("Params").lower() or "notebook")
    _show_changed(checked)
    return checked


def bind(model: type[P], given: Mapping[str, Any]) -> P:
    """`given` as the model's parameters, defaults filled in; what `check`, the runner and `--set` share.

    Raises:
        UsageError: one error for everything that is wrong, each with name, value, limits and help. A value that has
            the shape of a key is never repeated.
    """
    fields = model.model_fields
    wrong = [_unknown(name, fields) for name in given if name not in fields]
    wrong += [_secret(name) for name in given if secret_like(name)]
    wrong += [_key(name, given[name]) for name in given if name in fields and find_key_shapes(str(given[name]))]
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in fields:
            problem, read = _read(value, fields[name])
            if problem:
                wrong.append(_describe(name, value, problem, fields[name]))
            else:
                values[name] = read
    try:
        checked = model.model_validate(values)
    except ValidationError as error:
        for item in error.errors():
            name = str(item["loc"][0]) if item["loc"] else ""
            text = item["msg"].removeprefix("Value error, ")
            wrong.append(_describe(name, given.get(name), text, fields[name]) if name in fields else text)
    if wrong:
        raise _error(model, wrong)
    return checked


def declared(notebook: Path | source.Notebook) -> list[Declared]:
    """The parameters that a notebook's `parameters` cell declares, in order.

    Raises:
        UsageError: there is not exactly one such cell, or it holds anything but lines `name = literal  # type: help`.
    """
    document = source.read(notebook)
    where = str(notebook) if isinstance(notebook, Path) else "notebook"
    found = source.tagged(document, "parameters")
    if len(found) != 1:
        raise UsageError(
            f"{len(found)} cells are tagged `parameters`, one is needed", where=where, fix="tag exactly one code cell"
        )
    return parse(found[0].source, where=f"{where}, {found[0].label}")


def parse(code: str, where: str = "parameters cell") -> list[Declared]:
    """The declarations in the text of a `parameters` cell. Errors as for `declared`."""
    try:
        tree = ast.parse(code)
        comments = {
            token.start[0]: token.string.lstrip("# ").strip()
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
            if token.type == tokenize.COMMENT
        }
    except (SyntaxError, tokenize.TokenError) as error:
        raise UsageError(f"not Python: {error}", where=where) from None
    found = []
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name):
            raise UsageError(
                f"line {statement.lineno} is no parameter", where=where, fix="write `name = literal  # type: help`"
            )
        try:
            default = ast.literal_eval(statement.value)
        except ValueError:
            raise UsageError(
                f"line {statement.lineno}: the default of {target.id} is no literal",
                where=where,
                fix="write the value itself; compute in a later cell",
            ) from None
        kind, _, text = comments.get(statement.end_lineno or statement.lineno, "").partition(":")
        found.append(Declared(target.id, default, kind.strip(), text.strip(), statement.lineno))
    return found


def model_of(notebook: Path | source.Notebook) -> type[Params]:
    """The pydantic model that the notebook's metadata names as `nemolab.params`.

    Raises:
        UsageError: it names none, or none that can be imported.
    """
    where = str(notebook) if isinstance(notebook, Path) else "notebook"
    model = imported(str(source.lab_metadata(source.read(notebook)).get("params", "")), where)
    if not (isinstance(model, type) and issubclass(model, Params)):
        raise UsageError("metadata nemolab.params names no subclass of nemolab.core.contract.Params", where=where)
    return model


def imported(name: str, where: str) -> Any:
    """The object that `module:Name` names.

    Raises:
        UsageError: there is no such module or object.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise UsageError(
            f"metadata nemolab names {name!r}, not a model",
            where=where,
            fix='set it to "package.module:Model", such as "nemolab.load.params:LadderParams"',
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"cannot import {name}: {error}", where=where) from None


def _stray(name: str, value: Any, model: type[Params]) -> bool:
    """Whether a name in the notebook's namespace looks like a parameter that the model does not know."""
    plain = isinstance(value, str | int | float | bool | list | tuple | dict | type(None))
    # Upper case is an imported constant; leading underscores, In and Out are IPython's.
    return plain and name not in model.model_fields and not (name.startswith("_") or name.isupper() or name in _IPYTHON)


_IPYTHON = ("In", "Out")
_READ_AS_JSON = ("int", "float", "bool", "None", "list", "tuple", "dict", "set")  # what text is not


def _read(value: Any, field: FieldInfo) -> tuple[str, Any]:
    """What is wrong with a value ("" if nothing) and the value as the field wants it, before pydantic sees it."""
    kind = type_of(field)
    if isinstance(value, str) and all(part.startswith(_READ_AS_JSON) for part in kind.split(" | ")):
        try:
            value = json.loads({"True": "true", "False": "false", "None": "null"}.get(value.strip(), value))
        except ValueError:
            return f"not {_article(kind)}", value
        if isinstance(value, str):
            return f"not {_article(kind)}", value
    if isinstance(value, bool) and "bool" not in kind and kind != "Any":
        return f"a truth value, not {_article(kind)}", value
    if isinstance(value, float) and not math.isfinite(value):
        return "not a finite number", value
    if kind == "bool" and not isinstance(value, bool):
        return "not a bool (true or false)", value
    if kind == "str" and not isinstance(value, str):
        return f"{_article(type(value).__name__)}, not text (papermill: `-r NAME VALUE` passes text as it is)", value
    return "", value


def _describe(name: str, value: Any, problem: str, field: FieldInfo) -> str:
    bounds = limits(field)
    shown = redact(repr(value))
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    about = "; ".join(
        part for part in (f"{type_of(field)}{f', {bounds}' if bounds else ''}", field.description) if part
    )
    return f"{name} = {shown}: {problem} ({about})"


def _unknown(name: str, fields: Mapping[str, FieldInfo]) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        return f"{name!r}: not a parameter name"
    near = difflib.get_close_matches(name, fields, n=1)
    return f"{name}: unknown parameter" + (f", did you mean {near[0]}?" if near else f"; known: {', '.join(fields)}")


def _secret(name: str) -> str:
    return f"{name}: its name says that it holds a secret; pass the name of an environment variable ({name}_env)"


def _key(name: str, value: Any) -> str:
    kind = find_key_shapes(str(value))[0][0]
    return (
        f"{name}: its value has the shape of a key ({kind}); pass the name of an environment variable. If "
        "papermill got it, the key is in the output notebook: delete that file and revoke the key"
    )


def _error(model: type[Params], wrong: list[str]) -> UsageError:
    lines = "\n  ".join(dict.fromkeys(wrong))
    count = len(dict.fromkeys(wrong))
    return UsageError(
        f"{'a parameter is' if count == 1 else f'{count} parameters are'} wrong\n  {lines}", where=model.__name__
    )


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _show_changed(checked: Params) -> None:
    from nemolab.notebook import show

    rows = [
        {"parameter": name, "value": value, "default": field.get_default(call_default_factory=True)}
        for name, field in type(checked).model_fields.items()
        if (value := getattr(checked, name)) != field.get_default(call_default_factory=True)
    ]
    if not rows:
        show.note(f"All {len(type(checked).model_fields)} parameters have their default values.")
    else:
        show.table(
            [{key: repr(v) if key != "parameter" else v for key, v in row.items()} for row in rows],
            caption=f"{len(rows)} of {len(type(checked).model_fields)} parameters differ from their defaults",
        )
