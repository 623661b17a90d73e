"""From values to the HTML of one page: templates, their filters, style and script, and the policy that binds them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from nemolab import __version__
from nemolab.core.finding import Severity
from nemolab.core.status import Status
from nemolab.notebook.html import Table
from nemolab.notebook.values import cell
from nemolab.runbook import figures
from nemolab.runbook.outputs import Figure
from nemolab.runbook.views import result_rows

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
_MODULES = ("cells.py", "figures.py", "outputs.py", "pages.py", "render.py", "report.py", "views.py")
_SEVERITY = {
    Severity.ERROR: ("bad", "✗"),
    Severity.WARNING: ("wait", "!"),
    Severity.DISAGREE: ("wait", "≠"),
    Severity.UNKNOWN: ("idle", "?"),
    Severity.INFO: ("idle", "i"),
}
_OPERATOR = re.compile(r"\s*(?:[<>=!]|in\b|not in\b)")
_SENTENCE = 40  # characters, more than which a cell of a table is one to read, not to look up
_NAME = 20  # characters, more than which a name may be broken
_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class _Page:
    policy: str
    generator: str
    css: Markup
    script: Markup
    plotly: str = ""
    plotly_version: str = ""


def page(template: str, shown: Iterable[Figure], **values: Any) -> str:
    """The page that `template` makes of `values`; plotly.js is inside if a figure among `shown` is to be drawn."""
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
    shell = _Page(policy, generator(), Markup(_asset("report.css")), Markup(script), plotly, plotly_version)
    return _environment().get_template(template).render(page=shell, **values)


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
        when=when,
        tone=lambda status: _look(status)[0],
        sign=lambda status: _look(status)[1],
        severity_tone=lambda severity: _SEVERITY.get(severity, ("idle", "?"))[0],
        severity_sign=lambda severity: _SEVERITY.get(severity, ("idle", "?"))[1],
        result_rows=result_rows,
        spans=spans,
        limit=lambda written: written if _OPERATOR.match(written) else f"= {written}",
        long_columns=_long_columns,
        breakable=_breakable,
        capitalize_first=sentence,
    )
    return environment


def sentence(text: str) -> str:
    """`text` with a capital, unless it begins with a name such as `holds_to_tokens`, which has none."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]


def _breakable(text: str) -> Markup:
    """Text whose long names may be broken after an underscore, without one more character to copy."""
    return Markup(
        " ".join(
            str(escape(word)).replace("_", "_<wbr>") if len(word) > _NAME else str(escape(word))
            for word in text.split(" ")
        )
    )


def _long_columns(table: Table) -> set[int]:
    """Columns of sentences: they are kept wide enough to be read, for a browser would squeeze them first."""
    return {i for row in table.rows for i, text in enumerate(row) if len(text) > _SENTENCE}


def _look(status: str) -> tuple[str, str]:
    try:
        return _TONE[Status(status)]
    except ValueError:
        return "idle", "?"


@cache
def generator() -> str:
    """Version of the library and digest of all that decides how a page looks, as every page names it."""
    package = files("nemolab.runbook")
    parts = [package / name for name in _MODULES]
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
