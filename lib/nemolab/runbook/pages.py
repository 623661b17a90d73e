"""The pages of a report: pure functions from a record and its cells to HTML."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

import jinja2
from markupsafe import Markup, escape

from nemolab import __version__
from nemolab.core.finding import Severity
from nemolab.core.status import Status
from nemolab.notebook.values import cell
from nemolab.runbook import figures
from nemolab.runbook.cells import Cell
from nemolab.runbook.outputs import Figure
from nemolab.runbook.record import Expectation, RunRecord, StepRecord

_TONE = {
    Status.PASSED: ("good", "✓"),
    Status.FAILED: ("bad", "✗"),
    Status.ERROR: ("bad", "!"),
    Status.TIMED_OUT: ("bad", "◷"),
    Status.KILLED: ("bad", "■"),
    Status.INTERRUPTED: ("bad", "‖"),
    Status.SKIPPED: ("idle", "–"),
    Status.NOT_RUN: ("idle", "○"),
    Status.WAITING: ("wait", "…"),
    Status.RUNNING: ("wait", "▸"),
}
_SEVERITY = {
    Severity.ERROR: ("bad", "✗"),
    Severity.WARNING: ("wait", "!"),
    Severity.DISAGREE: ("wait", "≠"),
    Severity.UNKNOWN: ("idle", "?"),
    Severity.INFO: ("idle", "i"),
}
_OPERATOR = re.compile(r"\s*(?:[<>=!]|in\b|not in\b)")
_SPAN = re.compile(r"`([^`\n]+)`")
_GRAVITY = [str(severity) for severity in _SEVERITY]


@dataclass(frozen=True, slots=True)
class StepView:
    """A step with what its notebook shows.

    Attributes:
        page: file name of its page, None if there is none.
        cells: of its executed notebook.
        problem: why the executed notebook cannot be shown, "" if it can.
    """

    step: StepRecord
    page: str | None
    cells: tuple[Cell, ...] = ()
    problem: str = ""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures of the notebook."""
        return tuple(block for cell in self.cells for block in cell.blocks if isinstance(block, Figure))

    @property
    def rows(self) -> list[ResultRow]:
        """The results of the record, each with what was required of it."""
        return result_rows(self.step.results, self.step.expectations, self.step.id)

    def without(self, dropped: Mapping[str, str]) -> StepView:
        """The same with some figures (id -> why) left out as charts."""

        def drop(block: Any) -> Any:
            return replace(block, dropped=dropped[block.id]) if getattr(block, "id", None) in dropped else block

        return replace(self, cells=tuple(replace(c, blocks=tuple(map(drop, c.blocks))) for c in self.cells))


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result as a page shows it; `number` tells how it is aligned."""

    step: str
    name: str
    value: str
    number: bool
    unit: str
    help: str
    expectation: Expectation | None


def index(run: RunRecord, steps: Sequence[StepView]) -> str:
    """The page of the run, complete in itself."""
    requirements = [row for view in steps for row in view.rows if row.expectation]
    findings = [{**finding, "step": view.step.id} for view in steps for finding in view.step.findings]
    return _render(
        "index.html.j2",
        [figure for view in steps for figure in view.figures],
        run=run,
        steps=steps,
        requirements=requirements,
        met_count=sum(row.expectation.met for row in requirements if row.expectation),
        findings=sorted(findings, key=lambda f: _GRAVITY.index(f["severity"]) if f["severity"] in _GRAVITY else 99),
        summary=_summary(run),
        facts=list(_run_facts(run)),
        sign_offs=list(_sign_offs(run.steps)),
        host=list(_flat(run.host)),
        command=shlex.join(run.command),
    )


def step(run: RunRecord, steps: Sequence[StepView], number: int) -> str:
    """The page of step `number` (from 1): the executed notebook."""
    view = steps[number - 1]
    return _render(
        "step.html.j2",
        view.figures,
        run=run,
        steps=steps,
        step=view.step,
        cells=view.cells,
        number=number,
        facts=list(_step_facts(run, view.step)),
    )


def result_rows(
    document: Mapping[str, Any], expectations: Iterable[Expectation] = (), step: str = ""
) -> list[ResultRow]:
    """Rows for `Results.as_document()`; expectations of results that were never published come last."""
    wanted = {expectation.name: expectation for expectation in expectations}
    rows = []
    for name, entry in document.items():
        value = entry.get("value")
        number = isinstance(value, int | float) or value is None
        unit, text = entry.get("unit") or "", entry.get("help") or ""
        rows.append(ResultRow(step, name, cell(value), number, unit, text, wanted.pop(name, None)))
    return rows + [ResultRow(step, name, e.actual or "not published", False, "", "", e) for name, e in wanted.items()]


def sign_off_state(step: StepRecord, role: str) -> str:
    """`valid`, `no longer valid` or `missing`: what the newest sign-off of a role is worth."""
    given = [sign_off for sign_off in step.sign_offs if sign_off.role == role]
    if any(sign_off.key == step.key for sign_off in given):
        return "valid"
    return "no longer valid" if given else "missing"


@cache
def generator() -> str:
    """Version of the library and digest of all that decides how a page looks, as every page names it."""
    package = files("nemolab.runbook")
    parts = [package / name for name in ("cells.py", "figures.py", "outputs.py", "pages.py", "report.py")]
    parts += sorted((package / "templates").iterdir(), key=lambda part: part.name)
    parts += [package / "assets" / "plotly-cartesian.json", files("nemolab.notebook") / "values.py"]
    digest = hashlib.sha256(b"\0".join(part.read_bytes() for part in parts if part.is_file()))
    for name in ("jinja2", "markdown-it-py", "pygments"):
        digest.update(f"{name} {version(name)}".encode())
    return f"nemolab {__version__} ({digest.hexdigest()[:12]})"


def spans(text: str) -> Markup:
    """Plain text with `code` between backticks set as code, and nothing else."""
    return Markup(_SPAN.sub(r"<code>\1</code>", str(escape(text))))


def when(moment: datetime | None) -> str:
    """A moment in UTC, to the minute."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if moment else ""


def duration(seconds: float | None) -> str:
    """A duration, in the unit that fits it."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


@dataclass(frozen=True, slots=True)
class _Page:
    policy: str
    generator: str
    css: Markup
    script: Markup
    plotly: str = ""
    plotly_version: str = ""


def _render(template: str, shown: Iterable[Figure], **values: Any) -> str:
    script = _asset("report.js")
    allowed = figures.csp_hash(script)
    plotly = plotly_version = ""
    if any(figure.chart.payload and not figure.dropped for figure in shown):
        plotly, plotly_hash, plotly_version = figures.plotly_js()
        allowed += " " + plotly_hash
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _Page(policy, generator(), Markup(_asset("report.css")), Markup(script), plotly, plotly_version)
    return _environment().get_template(template).render(page=page, **values)


@cache
def _asset(name: str) -> str:
    return (files("nemolab.runbook") / "templates" / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nemolab.runbook"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        cell=cell,
        duration=duration,
        tone=lambda status: _look(status)[0],
        sign=lambda status: _look(status)[1],
        severity_tone=lambda severity: _SEVERITY.get(severity, ("idle", "?"))[0],
        severity_sign=lambda severity: _SEVERITY.get(severity, ("idle", "?"))[1],
        result_rows=result_rows,
        spans=spans,
        limit=lambda written: written if _OPERATOR.match(written) else f"= {written}",
        capitalize_first=lambda text: text[:1].upper() + text[1:],
    )
    return environment


def _look(status: str) -> tuple[str, str]:
    try:
        return _TONE[Status(status)]
    except ValueError:
        return "idle", "?"


def _summary(run: RunRecord) -> str:
    passed = sum(step.status == Status.PASSED for step in run.steps)
    expectations = [e for step in run.steps for e in step.expectations]
    text = f"{passed} of {len(run.steps)} steps passed"
    if expectations:
        text += f"; {sum(e.met for e in expectations)} of {len(expectations)} requirements met"
    return text + "."


def _run_facts(run: RunRecord) -> Iterator[tuple[str, str]]:
    # A replay names the run that measured and no times of its own, so two replays of a run are the same file.
    yield "Replay of" if run.replay_of else "Run", run.replay_of or run.run_id
    if not run.replay_of:
        yield "Started", when(run.started)
        if run.ended:
            yield "Took", duration((run.ended - run.started).total_seconds())
    if run.audience:
        yield "For", run.audience
    if "nemolab" in run.versions:
        yield "nemolab", run.versions["nemolab"]


def _step_facts(run: RunRecord, step: StepRecord) -> Iterator[tuple[str, str]]:
    yield "Replay of" if run.replay_of else "Run", run.replay_of or run.run_id
    if not run.replay_of:
        if step.started:
            yield "Started", when(step.started)
        if step.seconds is not None:
            yield "Took", duration(step.seconds)
    yield "Notebook", PurePosixPath(step.notebook).stem
    for role in step.sign_off_roles:
        yield f"Sign-off of {role}", sign_off_state(step, role)


def _sign_offs(steps: Iterable[StepRecord]) -> Iterator[dict[str, str]]:
    look = {"valid": ("good", "✓"), "no longer valid": ("bad", "✗"), "missing": ("wait", "…")}
    for step in steps:
        for given in step.sign_offs:
            state = "valid" if given.key == step.key else "no longer valid"
            tone, sign = look[state]
            yield {
                "step": step.id, "role": given.role, "state": state, "tone": tone, "sign": sign,
                "by": given.by, "at": when(given.at), "note": given.note,
            }  # fmt: skip
        for role in step.sign_off_roles:
            if all(given.role != role for given in step.sign_offs):
                tone, sign = look["missing"]
                yield {
                    "step": step.id, "role": role, "state": "missing", "tone": tone, "sign": sign,
                    "by": "", "at": "", "note": "",
                }  # fmt: skip


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Nested host facts as rows: `gpus.0.name`."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, f"{name}.{number}")
    else:
        yield name, value if value or not isinstance(value, list | Mapping) else "none"
