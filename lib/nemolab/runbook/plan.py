"""A runbook made ready to run: notebooks found, parameters resolved and checked, order fixed. Starts nothing."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.core.located import nearest
from nemolab.core.secrets import find_key_shapes
from nemolab.notebook import params as notebook_params
from nemolab.runbook import contracts, expect, keys, references
from nemolab.runbook.contracts import Contract
from nemolab.runbook.expect import BadExpectationError, Condition
from nemolab.runbook.references import Ref
from nemolab.runbook.spec import Spec, Step

Values = Mapping[str, Mapping[str, Any]]  # step id -> name of a result -> value


@dataclass(frozen=True)
class PlannedStep:
    """One step, ready.

    Attributes:
        name: file stem in the run folder, `04_load`.
        needs: ids of the steps it waits for.
        given: its `with:` as written.
        conditions: its `expect:` as written.
        runbook: the runbook's parameters, for references.
        skip: why it is left out ("" if it is not).
    """

    step: Step
    name: str
    contract: Contract
    needs: tuple[str, ...]
    given: Mapping[str, Any]
    conditions: Mapping[str, Any]
    runbook: Mapping[str, Any]
    skip: str
    where: str

    @property
    def id(self) -> str:
        """The step's id."""
        return self.step.id

    def refs(self) -> set[Ref]:
        """The results of other steps that its parameters take."""
        return {ref for ref in references.find(dict(self.given)) if ref.value is not None}

    def resolve(self, tree: Mapping[str, Any], results: Values) -> dict[str, Any]:
        """`tree` with the runbook's parameters and the results of other steps put in."""

        def lookup(ref: Ref) -> Any:
            return self.runbook[ref.owner] if ref.value is None else results[ref.owner][ref.value]

        resolved: dict[str, Any] = references.resolve(dict(tree), lookup)
        return resolved

    def parameters(self, results: Values) -> dict[str, Any]:
        """All its parameters, JSON-ready, with the results of the steps before put in.

        Raises:
            UsageError: a value does not fit the notebook's model, or papermill would change it on the way.
        """
        try:
            bound = notebook_params.bind(self.contract.params, self.resolve(self.given, results))
        except UsageError as error:
            raise UsageError(error.what, where=f"{self.where}, {self.contract.relative}", fix=error.fix) from None
        return plain(bound.model_dump(mode="json"), where=self.where)

    def key(self, results: Values, needed: Mapping[str, str], services: frozenset[str]) -> str:
        """Its key, given the results and keys of the steps it needs."""
        parameters = self.parameters(results)
        for name, value in self.given.items():
            found = list(references.find(value))
            if any(ref.owner in services for ref in found):
                parameters[name] = [value, {ref.owner: self.runbook[ref.owner] for ref in found if ref.value is None}]
        return keys.step_key(
            code=self.contract.code_sha256,
            library=contracts.library_sha256(),
            parameters=parameters,
            needs={step: needed[step] for step in self.needs},
        )

    def expectations(self, results: Values) -> dict[str, Condition]:
        """Its expectations with every reference put in."""
        return {name: expect.parse(value) for name, value in self.resolve(self.conditions, results).items()}


@dataclass(frozen=True)
class Plan:
    """All steps in an order that respects their needs, and the runbook's parameters."""

    spec: Spec
    parameters: Mapping[str, Any]
    steps: tuple[PlannedStep, ...]
    until: str | None = None

    @property
    def services(self) -> frozenset[str]:
        """Ids of steps that leave a server."""
        return frozenset(step.id for step in self.steps if step.step.service)

    def dependants(self, step_id: str) -> list[PlannedStep]:
        """Steps that wait for `step_id` and are not left out."""
        return [step for step in self.steps if step_id in step.needs and not step.skip]


def make(spec: Spec, sets: Mapping[str, Any], *, until: str | None = None) -> Plan:
    """Resolve and check everything that can be known before a step has run.

    Args:
        sets: `--set` values: text as typed, or values of a recorded run.
        until: run only this step and what it needs.

    Raises:
        UsageError: with file and line.
    """
    parameters = _parameters(spec, sets)
    wanted = _ancestors(spec, until) if until else None
    planned = {step.id: _step(spec, index, step, parameters, wanted) for index, step in enumerate(spec.book.steps)}
    for step in planned.values():
        _check_step(spec, step, planned)
    order = _stable_order([step.id for step in spec.book.steps], spec.needs)
    return Plan(spec, parameters, tuple(planned[step_id] for step_id in order), until)


def plain(values: dict[str, Any], *, where: str) -> dict[str, Any]:
    """`values`, if papermill hands each to the kernel unchanged: text, finite numbers, truth values, lists, dicts.

    Raises:
        UsageError: it would not (a date, a set, NaN), or a value has the shape of a key.
    """
    for name, value in values.items():
        if not _is_plain(value):
            raise UsageError(
                f"parameter {name!r} would not reach the notebook unchanged: {value!r}",
                where=where,
                fix="use text, finite numbers, true or false, lists, or dicts with text keys",
            )
        if find_key_shapes(json.dumps(value, ensure_ascii=False)):
            fix = f"name the environment variable that holds it: `{name}_env`"
            raise UsageError(f"parameter {name!r} has the shape of a key", where=where, fix=fix)
    return values


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return value is None or type(value) in (bool, int, str)


def _parameters(spec: Spec, sets: Mapping[str, Any]) -> dict[str, Any]:
    declared = spec.book.parameters
    values = {name: parameter.check(parameter.default) for name, parameter in declared.items()}
    for name, given in sets.items():
        if name not in declared:
            fix = nearest(name, declared) if declared else "this runbook takes none"
            raise UsageError(f"unknown parameter {name!r}", where="--set", fix=fix)
        try:
            values[name] = declared[name].parse(given) if isinstance(given, str) else declared[name].check(given)
        except ValueError as error:
            raise UsageError(f"{name}: {error}", where="--set", fix=declared[name].help) from None
    return plain(values, where="--set")


def _ancestors(spec: Spec, until: str) -> set[str]:
    found, todo = set[str](), [spec.step(until).id]
    while todo:
        step = todo.pop()
        if step not in found:
            found.add(step)
            todo.extend(spec.needs[step])
    return found


def _step(spec: Spec, index: int, step: Step, parameters: dict[str, Any], wanted: set[str] | None) -> PlannedStep:
    at = spec.source.at
    contract = contracts.read(contracts.find(step.notebook, where=at("steps", index, "notebook")))
    if step.on_fail:
        contracts.find(step.on_fail, where=at("steps", index, "on_fail"))
    skip = "" if wanted is None or step.id in wanted else "not asked for (--until)"
    for name, written in step.when.items():
        where = at("steps", index, "when", name)
        condition = _condition(references.resolve(written, lambda ref: parameters[ref.owner]), where)
        if not condition.holds(parameters[name]):
            skip = skip or f"it runs when {condition.of(name)}, and {name} is {expect.as_written(parameters[name])}"
    return PlannedStep(
        step=step,
        name=f"{index + 1:02d}_{step.id}",
        contract=contract,
        needs=spec.needs[step.id],
        given=step.with_,
        conditions=step.expect,
        runbook=parameters,
        skip=skip,
        where=at("steps", index, "id"),
    )


def _check_step(spec: Spec, planned: PlannedStep, others: Mapping[str, PlannedStep]) -> None:
    index = spec.book.steps.index(planned.step)
    at = spec.source.at
    fields = planned.contract.params.model_fields
    known: dict[str, Any] = {}
    for name, value in planned.given.items():
        where = at("steps", index, "with", name)
        if name not in fields:
            fix = nearest(name, fields)
            raise UsageError(f"{planned.contract.relative} takes no parameter {name!r}", where=where, fix=fix)
        found = [ref for ref in references.find(value) if ref.value is not None]
        for ref in found:
            _check_ref(ref, others, where)
        if not found:
            known[name] = planned.resolve({name: value}, {})[name]
        elif value == str(found[0]):  # the whole value is one result, so the types must agree
            source = others[found[0].owner].contract.results.model_fields[found[0].value or ""]
            if not expect.compatible(source.annotation, fields[name].annotation):
                raise UsageError(f"{found[0]} does not have the type of {name!r}", where=where)
    try:
        notebook_params.bind(planned.contract.params, known)
    except UsageError as error:
        first = next((name for name in known if f"{name} = " in error.what), None)
        where = at("steps", index, "with", first) if first else at("steps", index, "with")
        raise UsageError(error.what, where=where, fix=error.fix) from None
    plain(known, where=at("steps", index, "with"))
    published = planned.contract.results.model_fields
    for name, value in planned.conditions.items():
        where = at("steps", index, "expect", name)
        if name not in published:
            fix = nearest(name, published)
            raise UsageError(f"{planned.contract.relative} publishes no result {name!r}", where=where, fix=fix)
        found = [ref for ref in references.find(value) if ref.value is not None]
        for ref in found:
            _check_ref(ref, others, where)
        stand_in: Values = defaultdict(lambda: defaultdict(lambda: 1))
        condition = _condition(planned.resolve({name: value}, stand_in)[name], where)
        if not found:
            try:
                expect.check_type(condition, published[name].annotation)
            except BadExpectationError as error:
                raise UsageError(f"{name}: {error}", where=where) from None


def _check_ref(ref: Ref, others: Mapping[str, PlannedStep], where: str) -> None:
    published = others[ref.owner].contract.results.model_fields
    if ref.value not in published:
        fix = nearest(ref.value or "", published)
        raise UsageError(f"step {ref.owner!r} publishes no {ref.value!r}", where=where, fix=fix)


def _condition(written: Any, where: str) -> Condition:
    try:
        return expect.parse(written)
    except BadExpectationError as error:
        raise UsageError(str(error), where=where) from None


def _stable_order(ids: Iterable[str], needs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Topological order that keeps the written order wherever it may."""
    position = {step: index for index, step in enumerate(ids)}
    sorter = TopologicalSorter({step: needs[step] for step in position})
    sorter.prepare()
    ready, order = list(sorter.get_ready()), list[str]()
    while ready:
        step = min(ready, key=position.__getitem__)
        ready.remove(step)
        order.append(step)
        sorter.done(step)
        ready.extend(sorter.get_ready())
    return order
