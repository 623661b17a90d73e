"""The static check of a report: whole, unedited, and its verdict follows from its numbers. Findings `P-...`.

Nothing is executed. The record, the notebooks, the results files and the HTML repeat each other, and hashes tie them
together, so an accident or an edit of one file shows. Somebody who rewrites every file consistently is not stopped by
this; a replay (nbval) computes the numbers again from the recordings, and a sign-off names who answers for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.core.secrets import find_key_shapes
from nemolab.core.status import Status
from nemolab.runbook import check_step, record, render, report, store, verdict
from nemolab.runbook.normalise import places_here
from nemolab.runbook.record import RunRecord

_PERSONAL = re.compile(r"(?<![\w.~-])(?:/(?:home|Users)/[\w.-]+|/root\b|/tmp/[\w.-]+|[A-Z]:\\+Users\\+[\w.-]+)")
_GENERATOR = re.compile(r'<meta name="generator" content="([^"]*)">')
_HOST_NAMES = {"hostname", "fqdn", "node", "nodename", "host_name", "ip", "mac"}
_REWRITE = "`nemolab report` writes the HTML again, if the record and notebooks are as they should be"


def check_report(folder: Path) -> list[Finding]:
    """All that is wrong with the report in `folder`, gravest first; no findings mean that it is whole.

    `INFO` findings tell what does not make the report wrong, such as a notebook that has changed since.
    """
    try:
        run = store.read(folder)
    except UsageError as error:
        return [Finding("P-001", Severity.ERROR, error.what, error.fix or "run the runbook again", where=error.where)]
    checks: tuple[Callable[[Path, RunRecord], Iterator[Finding]], ...] = (
        _finished,
        _steps,
        _pages,
        _checksums,
        _secrets,
    )
    found = [finding for check in checks for finding in check(folder, run)]
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))


def _error(code: str, message: str, where: str, fix: str) -> Finding:
    return Finding(code, Severity.ERROR, message, fix, where=where)


def _finished(folder: Path, run: RunRecord) -> Iterator[Finding]:
    if run.status is Status.RUNNING or run.ended is None:
        what = (
            "the run has not ended"
            if run.status is Status.RUNNING
            else f"the run was cut off: {'; '.join(run.reasons)}"
        )
        yield _error("P-001", what, record.FILE, "wait for it, or `nemolab run --resume` it")
        return
    wanted = verdict.worst(step.status for step in run.steps)
    if (run.status is Status.PASSED) != (wanted is Status.PASSED):
        yield _error(
            "P-002",
            f"the run says {run.status}, its steps say {wanted}",
            record.FILE,
            "restore the record from where the report came from, or run again",
        )


def _steps(folder: Path, run: RunRecord) -> Iterator[Finding]:
    for step in run.steps:
        yield from check_step.check(folder, step)
    known = {name for step in run.steps for name in step.recordings}
    for path in sorted((folder / "recordings").rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        if name not in known:
            yield Finding(
                "P-009", Severity.WARNING, "a recording that the record does not know", "remove it", where=name
            )


def _pages(folder: Path, run: RunRecord) -> Iterator[Finding]:
    index = folder / report.INDEX
    if not index.is_file():
        yield _error("P-010", "the HTML was never written", report.INDEX, _REWRITE)
        return
    if writer := _other_writer(index):
        yield Finding(
            "P-012",
            Severity.WARNING,
            f"the HTML was written by {writer}, this is {render.generator()}: compared by checksum only",
            "`nemolab report` writes it anew",
            where=report.INDEX,
        )
        expected: dict[str, str] = {}
    else:
        expected = report.render(folder, run)
    for name, html in expected.items():
        path = folder / name
        if not path.is_file():
            yield _error("P-010", "this page is missing", name, _REWRITE)
        elif path.read_bytes() != html.encode():
            yield _error("P-011", "this page does not show what the record and the notebooks hold", name, _REWRITE)
    for path in sorted(folder.glob("*.html")):
        if path.stat().st_size > report.LIMIT:
            size = f"{path.stat().st_size / 1e6:.2f} MB"
            yield _error(
                "P-013", f"this page has {size}, at most 1 MB is wanted", path.name, "show less text in the step"
            )
        if expected and path.name not in expected:
            yield _error("P-011", "this page belongs to no step of the record", path.name, "remove it")


def _other_writer(index: Path) -> str:
    """What wrote this page, if not this version of the report; "" if it was this."""
    found = _GENERATOR.search(index.read_text(encoding="utf-8", errors="replace"))
    writer = found[1] if found else "something unknown"
    return "" if writer == render.generator() else writer


def _checksums(folder: Path, run: RunRecord) -> Iterator[Finding]:
    path = folder / report.SUMS
    if not path.is_file():
        yield _error("P-014", "the list of checksums is missing", report.SUMS, _REWRITE)
        return
    listed, present = (_sums(text) for text in (path.read_text(), report.sums(folder, run)))
    wrong = sorted(name for name in {*listed, *present} if listed.get(name) != present.get(name))
    if wrong:
        yield _error(
            "P-014",
            f"changed since the report was written: {', '.join(wrong)}",
            report.SUMS,
            "restore what was changed",
        )


def _sums(text: str) -> dict[str, str]:
    return {name: digest for digest, _, name in (line.partition("  ") for line in text.splitlines())}


@dataclass
class _Leaks:
    """What one file should not show: kinds of keys, and places of a machine."""

    keys: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)


def _secrets(folder: Path, run: RunRecord) -> Iterator[Finding]:
    names = [record.FILE, *(f"{s.name}{end}" for s in run.steps for end in (".ipynb", ".results.json"))]
    names += [name for step in run.steps for name in step.recordings]
    here = _pattern([place for place in places_here() if place != "/tmp"])  # said by many texts that tell no place
    for name in names:
        path = folder / name
        if not path.is_file():
            continue
        leaks = _leaks(path.read_text(encoding="utf-8", errors="replace"), here)
        if leaks.keys:
            yield _error(
                "P-015",
                f"holds text in the shape of a secret: {', '.join(sorted(leaks.keys))}",
                name,
                "revoke the key, find the cell that shows it, and run again",
            )
        if leaks.places:
            yield Finding(
                "P-016",
                Severity.WARNING,
                f"names places of the machine it was made on: {', '.join(sorted(leaks.places)[:3])}",
                "show paths relative to the checkout or the run",
                where=name,
            )
    named = sorted(_HOST_NAMES & {key.lower() for key in _keys(run.host)})
    if named:
        yield Finding(
            "P-016",
            Severity.WARNING,
            f"the host facts name the machine: {', '.join(named)}",
            "leave names and addresses out of host facts",
            where=record.FILE,
        )


def _leaks(text: str, here: re.Pattern[str]) -> _Leaks:
    return _Leaks(
        keys={kind for kind, _ in find_key_shapes(text)},
        places={match[0] for pattern in (_PERSONAL, here) for match in pattern.finditer(text)},
    )


def _pattern(places: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, places)) or '(?!)'})(?![\w-])")


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)
