"""`nemolab report`, `nemolab diff`, `nemolab check-report`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from nemolab.cli import text
from nemolab.core.errors import ExitCode
from nemolab.core.finding import Severity

if TYPE_CHECKING:
    from nemolab.runbook.diff import RunDiff, StepDiff, ValueDiff

_RUN = (
    "RUN is a run's folder, its id or the beginning of one, or a runbook's name: its newest run, "
    "with ~1 the one before, as in quickstart~1."
)


@click.command(epilog=_RUN)
@click.argument("run")
@click.option("--open", "path_only", is_flag=True, help="Print nothing but the path of index.html.")
def report(run: str, path_only: bool) -> int:
    """Write a RUN's HTML again from its record and executed notebooks.

    The record decides what the pages say; nothing is executed. Pages are byte-identical for the same record.

    \b
      nemolab report quickstart
      xdg-open "$(nemolab report quickstart --open)"
    """
    from nemolab.runbook import report as pages
    from nemolab.runbook import store

    folder = store.find(run)
    record = store.read(folder)
    written = pages.write(folder)
    if path_only:
        click.echo(written[0])
        return ExitCode.PASSED
    click.echo(f"{record.run_id}: {record.status}")
    for path in written:
        click.echo(f"  {path}  {path.stat().st_size / 1000:,.0f} kB")
    return ExitCode.PASSED


@click.command("check-report", epilog=_RUN)
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check_report(run: str, as_json: bool) -> int:
    """Check that the report of a RUN is whole, unedited, and that its verdict follows from its numbers.

    Nothing is executed. Exit code 1 if a finding is an error. The hashes find accidents and the edit of single files;
    they cannot stop somebody who rewrites every file: `nemolab run --replay RUN` computes the numbers again.
    """
    from nemolab.runbook import check, store

    folder = store.find(run)
    found = check.check_report(folder)
    failed = any(finding.severity is Severity.ERROR for finding in found)
    if as_json:
        document = {"run": folder.name, "whole": not failed, "findings": [finding.as_dict() for finding in found]}
        click.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        if found:
            click.echo(text.findings(found))
        click.echo(f"{folder.name}: " + ("not to be trusted" if failed else "whole and consistent"))
    return ExitCode.FAILED if failed else ExitCode.PASSED


@click.command(epilog=_RUN)
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option(
    "--fail-on-worse", is_flag=True, help="Exit with 1 if a result got worse or a passed step no longer passes."
)
def diff(first: str, second: str, as_json: bool, fail_on_worse: bool) -> int:
    """Compare the results of two runs: the second RUN against the first.

    Results are compared as values with their unit, the direction that is better and the noise of the measurement, not
    as text. A change within the noise is no change.

    \b
      nemolab diff quickstart~1 quickstart
    """
    from nemolab.runbook import store
    from nemolab.runbook.diff import compare

    found = compare(store.read(store.find(first)), store.read(store.find(second)))
    if as_json:
        click.echo(json.dumps({**found.model_dump(mode="json"), "regressed": found.regressed}, indent=1))
    else:
        click.echo("\n".join(_lines(found)))
    return ExitCode.FAILED if fail_on_worse and found.regressed else ExitCode.PASSED


def _lines(found: RunDiff) -> Iterator[str]:
    from nemolab.runbook.diff import Change

    yield f"{found.a} ({found.status_a})  ->  {found.b} ({found.status_b})"
    for title, plain in (("parameters", found.parameters), ("versions", found.versions), ("host", found.host)):
        for item in plain:
            yield f"  {title}: {item.name}  {_text(item.a)} -> {_text(item.b)}"
    for step in found.steps:
        yield from _step(step)
    counts = [f"{found.count(change)} {change}" for change in Change if found.count(change)]
    yield ""
    yield ", ".join(counts) or "no results in either run"


def _step(step: StepDiff) -> Iterator[str]:
    yield ""
    changed = "" if step.status_a == step.status_b else f" (was {step.status_a or 'not there'})"
    yield f"{step.id}: {step.title}, {step.status_b or 'not there'}{changed}"
    for item in step.parameters:
        yield f"  parameter {item.name}  {_text(item.a)} -> {_text(item.b)}"
    if step.values:
        yield text.table([_row(value) for value in step.values], indent="  ")


def _row(value: ValueDiff) -> dict[str, Any]:
    wanted = {"higher": "higher", "lower": "lower", "equal": "equal", "none": ""}[value.better]
    return {
        "result": value.name,
        "first": _text(value.a),
        "second": _text(value.b),
        "unit": value.unit,
        "change": "" if value.relative is None else f"{value.relative:+.1%}",
        "better": wanted,
        "verdict": f"{_SIGN.get(value.change, ' ')} {value.change}",
    }


_SIGN = {"better": "+", "worse": "!", "same within noise": "=", "changed": "~"}


def _text(value: Any) -> str:
    from nemolab.notebook.values import cell

    return cell(value)
