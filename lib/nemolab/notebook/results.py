"""A notebook's results: typed values, shown under an own MIME type and written as one JSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from nemolab.core import step
from nemolab.core.contract import Results
from nemolab.core.errors import NemolabError
from nemolab.core.files import write_json
from nemolab.core.finding import Finding
from nemolab.core.secrets import find_key_shapes
from nemolab.notebook import frontend, html
from nemolab.notebook.values import cell

MIME = "application/vnd.nemolab.results.v1+json"
SCHEMA = 1


def publish(results: Results, findings: Sequence[Finding] = ()) -> None:
    """Show the results and write them beside the executed notebook; the last cell of every notebook.

    In replay nothing is written: what the notebook computed must equal the file, to the last digit, for JSON keeps
    every digit of a float.

    Raises:
        NemolabError: a value is NaN, infinite or has the shape of a key; or, in replay, a value differs.
        TypeError: `results` or a finding is of another class.
    """
    if not isinstance(results, Results):
        raise TypeError(f"publish takes a subclass of nemolab.core.contract.Results, not {type(results).__name__}")
    for item in findings:
        if not isinstance(item, Finding):
            raise TypeError(f"findings are nemolab.core.finding.Finding, not {type(item).__name__}")
    name = frontend.notebook_name()
    document = {
        "schema": SCHEMA,
        "notebook": name,
        "values": results.as_document(),
        "findings": [finding.as_dict() for finding in findings],
    }
    _refuse_unfit(results, document, name)
    here = step.current()
    path = here.folder / f"{name}.results.json"
    if here.replay:
        _compare(document, path)
    else:
        write_json(path, document)
    frontend.emit(output(document))


def differences(expected: Any, actual: Any, at: str = "") -> Iterator[str]:
    """What differs between two JSON values, one sentence a difference, with the path to it."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            where = f"{at}.{key}" if at else str(key)
            if key not in actual:
                yield f"{where} is missing"
            elif key not in expected:
                yield f"{where} is new"
            else:
                yield from differences(expected[key], actual[key], where)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(left, right, f"{at}[{index}]")
    elif expected != actual or isinstance(expected, bool) is not isinstance(actual, bool):
        yield f"{at}: {_short(expected)} is in the file, {_short(actual)} was computed"


def _compare(document: dict[str, Any], path: Any) -> None:
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise NemolabError(
            f"nothing to compare with: {error}", where=str(path.name), fix="run the notebook live to measure again"
        ) from None
    found = list(differences(stored, json.loads(json.dumps(document))))
    if found:
        more = f"\n  and {len(found) - 8} more" if len(found) > 8 else ""
        raise NemolabError(
            "the replay does not reproduce the results\n  " + "\n  ".join(found[:8]) + more,
            where=path.name,
            fix="if code changed on purpose, run live and commit the new report; else the report was edited",
        )


def _refuse_unfit(results: Results, document: dict[str, Any], name: str) -> None:
    for at, value in _leaves(results.model_dump(mode="python"), ""):
        if isinstance(value, float) and not math.isfinite(value):
            raise NemolabError(
                f"{at} is {value}, which JSON and a verdict cannot hold",
                where=name,
                fix="make the field `float | None`, leave it None and say why in a finding",
            )
    for at, value in _leaves({"values": document["values"], "findings": document["findings"]}, ""):
        if isinstance(value, str) and (hits := find_key_shapes(value)):
            raise NemolabError(f"{at} has the shape of a key ({hits[0][0]})", where=name, fix="publish what it is for")


def _leaves(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{at}[{index}]")
    else:
        yield at, value


def output(document: dict[str, Any]) -> dict[str, Any]:
    """A results document as a notebook output."""
    rows = [(name, cell(entry["value"]), entry["unit"], entry["help"]) for name, entry in document["values"].items()]
    table = html.Table(
        header=("result", "value", "unit", "meaning"), rows=tuple(rows), numeric=(False, True, False, False)
    )
    return {MIME: document, "text/html": table.as_html(), "text/plain": table.as_text()}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
