"""Rules for the two contracts: the parameters cell equals its model, and the last cell publishes the results."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nemolab.core.contract import Params, Results
from nemolab.core.errors import UsageError
from nemolab.core.secrets import secret_like
from nemolab.notebook import params
from nemolab.notebook.rules.subject import Hit, Rules, Subject
from nemolab.notebook.source import Cell, lab_metadata
from nemolab.notebook.spelling import literal, type_of

RULES = Rules()


@RULES.add(
    "N060", "one parameters cell of literals", "one code cell tagged `parameters`, lines `name = literal  # type: help`"
)
def _cell(subject: Subject) -> Iterator[Hit]:
    try:
        declared = params.declared(subject.document)
    except UsageError as error:
        yield _tagged(subject, "parameters"), error.what
        return
    for item in declared:
        if not item.type or not item.help:
            yield _tagged(subject, "parameters"), f"{item.name} has no `# type: help`"


@RULES.add(
    "N061", "metadata names the two models", 'metadata: "nemolab": {"params": "nemolab.X.params:...", "results": ...}'
)
def _models(subject: Subject) -> Iterator[Hit]:
    for name, base in (("params", Params), ("results", Results)):
        try:
            model = params.imported(str(lab_metadata(subject.document).get(name, "")), subject.path.name)
        except UsageError as error:
            yield None, error.what
            continue
        if not (isinstance(model, type) and issubclass(model, base)):
            yield None, f"metadata nemolab.{name} names no subclass of nemolab.core.contract.{base.__name__}"


@RULES.add("N062", "the parameters cell equals the model", "run `nemolab lint-notebooks --fix`, which writes the cell")
def _equal(subject: Subject) -> Iterator[Hit]:
    try:
        declared = {item.name: item for item in params.declared(subject.document)}
        model = params.model_of(subject.document)
    except UsageError:
        return  # N060 and N061 say so
    cell = _tagged(subject, "parameters")
    fields = model.model_fields
    for name in fields:
        if name not in declared:
            yield cell, f"{name} of {model.__name__} is missing"
    for name, item in declared.items():
        if name not in fields:
            yield cell, f"{name} is not in {model.__name__}"
            continue
        field = fields[name]
        default = field.get_default(call_default_factory=True)
        if field.is_required():
            yield cell, f"{name} has no default in {model.__name__}"
        elif literal(item.default) != literal(default):
            yield cell, f"{name} = {literal(item.default)}, but {literal(default)} in {model.__name__}"
        if _squeezed(item.type) != _squeezed(type_of(field)):
            yield cell, f"{name} is called {item.type or 'nothing'}, but {type_of(field)} in {model.__name__}"
        if item.help != (field.description or ""):
            yield cell, f"the help of {name} is {item.help!r}, but {field.description or ''!r} in {model.__name__}"
    if list(declared) != list(fields) and set(declared) == set(fields):
        yield cell, f"the parameters are in another order than in {model.__name__}"


@RULES.add("N063", "no parameter holds a secret", "take the name of an environment variable: api_key_env")
def _secret(subject: Subject) -> Iterator[Hit]:
    try:
        names = [item.name for item in params.declared(subject.document)]
    except UsageError:
        return
    for name in names:
        if secret_like(name):
            yield _tagged(subject, "parameters"), f"the parameter {name} would hold a secret"


@RULES.add("N064", "the parameters are checked", "after the parameters: `p = params.check(Model, globals())`")
def _checked(subject: Subject) -> Iterator[Hit]:
    wanted = str(lab_metadata(subject.document).get("params", "")).partition(":")[2]
    after = [cell for cell in subject.code if (found := _tagged(subject, "parameters")) and cell.number > found.number]
    first = after[0] if after else None
    calls = (
        [node for node in ast.walk(subject.trees.get(first.number, ast.Module([], []))) if _is(node, "params", "check")]
        if first
        else []
    )
    if not calls:
        yield first, "the first code after the parameters does not call params.check"
        return
    call = calls[0]
    assert isinstance(call, ast.Call)
    if [ast.unparse(argument) for argument in call.args] != [wanted, "globals()"] or call.keywords:
        yield first, f"params.check is called with other arguments than ({wanted}, globals())"


@RULES.add(
    "N065", "the last cell publishes the results", "end with one code cell tagged `results`: `results.publish(...)`"
)
def _results(subject: Subject) -> Iterator[Hit]:
    tagged = [cell for cell in subject.code if "results" in cell.tags]
    if len(tagged) != 1:
        yield None, f"{len(tagged)} cells are tagged `results`, one is needed"
        return
    if tagged[0] is not subject.cells[-1]:
        yield tagged[0], "the cell tagged `results` is not the last cell"
    published = [cell for cell, node in subject.nodes() if _is(node, "results", "publish")]
    if published != tagged:
        yield tagged[0], f"results.publish is called {len(published)} times; once, in the last cell, is right"


@RULES.add("N066", "a parameter keeps its value", "give the new value another name")
def _overwritten(subject: Subject) -> Iterator[Hit]:
    cell = _tagged(subject, "parameters")
    try:
        names = {item.name for item in params.declared(subject.document)}
    except UsageError:
        return
    for other, node in subject.nodes():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names and other is not cell:
            yield other, f"{node.id} is a parameter; running the check again in JupyterLab would read this value"


def _tagged(subject: Subject, tag: str) -> Cell | None:
    return next((cell for cell in subject.code if tag in cell.tags), None)


def _is(node: ast.AST, module: str, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == f"{module}.{name}"


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text).replace("'", '"')
