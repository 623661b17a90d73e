"""What a notebook shows: figures with their table, tables, model text, findings and a verdict.

Every output carries a text alternative and is the same for the same values: no ids, times or paths. What a model
wrote is shown as plain text and can never become HTML in a reader's file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from nemolab.core.errors import NemolabError
from nemolab.core.finding import Finding, Severity
from nemolab.core.status import Status
from nemolab.notebook import look, values
from nemolab.notebook.frontend import emit
from nemolab.notebook.html import Table

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

PLOTLY = "application/vnd.plotly.v1+json"
VERDICT = "application/vnd.nemolab.verdict.v1+json"
FINDINGS = "application/vnd.nemolab.findings.v1+json"

Rows = Iterable[Mapping[str, Any]]
_ORDER = list(Severity)
_COLOUR = {"passed": "#009E73", "skipped": "#777777", "waiting for sign-off": "#E69F00", "failed": "#D55E00"}
_BOX = "border-left:0.4em solid {};padding:0.4em 0.8em;margin:0.4em 0"


def figure(
    fig: go.Figure,
    *,
    title: str,
    alt: str,
    table: pd.DataFrame | Rows | None = None,
    units: Mapping[str, str] | None = None,
    height: int = look.HEIGHT,
) -> None:
    """Show a plotly figure in the house's look, then the table behind it.

    Args:
        fig: built with graph_objects or plotly express; it is not changed.
        title: what the reader sees, in a sentence, not what the axes are.
        alt: what a reader who cannot see it must know: the finding, with its numbers.
        table: the data behind it, shown below with `units` (column -> unit).
        height: in pixels; the width is the house's.

    Raises:
        NemolabError: a trace type that the reports' plotly.js cannot draw, frames, or no text alternative.
    """
    if not title.strip() or not alt.strip():
        raise NemolabError("a figure needs a title and a text alternative", where="show.figure", fix='pass alt="..."')
    document = _figure_document(fig, title, alt, height)
    emit({PLOTLY: document, "text/plain": f"Figure: {title}\n{alt}"})
    if table is not None:
        emit(table_of(table, units=units).as_output())


def table(
    data: pd.DataFrame | Rows, *, units: Mapping[str, str] | None = None, caption: str = "", limit: int = 50
) -> None:
    """Show a table: numbers flush right, units in the header, at most `limit` rows with the rest counted.

    Args:
        data: a DataFrame (a named index becomes columns), or rows as dicts of the same keys.
        units: column -> unit.
    """
    emit(table_of(data, units=units, caption=caption, limit=limit).as_output())


def text(content: str, *, label: str = "", limit: int = 4000) -> None:
    """Show what a model wrote, as plain text, escape codes written out, cut after `limit` characters."""
    cut = len(content) - limit
    shown = values.printable(content[:limit]) + (f"\n[{cut:,} more characters]" if cut > 0 else "")
    emit({"text/plain": f"{label}:\n{shown}" if label else shown})


def findings(items: Sequence[Finding]) -> None:
    """Show findings, gravest first, each with its fix and source."""
    emit(findings_output([item.as_dict() for item in sorted(items, key=lambda item: _ORDER.index(item.severity))]))


def findings_output(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Findings, as `Finding.as_dict` gives them, as a notebook output."""
    rows = [{**item, "about": item.get("where") or item.get("flag")} for item in items]
    columns = ("severity", "code", "about", "message", "fix", "source")
    names = tuple(name for name in columns if any(row.get(name) for row in rows))
    made = Table(
        header=names,
        rows=tuple(tuple(str(row.get(name) or "") for name in names) for row in rows),
        numeric=(False,) * len(names),
    )
    none = "No findings."
    return {
        FINDINGS: {"findings": [dict(item) for item in items]},
        "text/html": made.as_html() if rows else f"<p>{none}</p>",
        "text/plain": made.as_text() if rows else none,
    }


def verdict(status: Status | str | bool, sentence: str) -> None:
    """Show how it ended, as a word as well as a colour, and why in one sentence.

    Args:
        status: a `Status`, its text, or whether it passed.
    """
    status = (Status.PASSED if status else Status.FAILED) if isinstance(status, bool) else Status(status)
    emit(verdict_output(str(status), sentence))


def verdict_output(status: str, sentence: str) -> dict[str, Any]:
    """A verdict as a notebook output."""
    return {
        VERDICT: {"status": status, "sentence": sentence},
        "text/html": f'<div class="nemolab-verdict" style="{_BOX.format(_COLOUR.get(status, _COLOUR["failed"]))}">'
        f"<strong>{escape(status.upper())}</strong> {escape(sentence)}</div>",
        "text/plain": f"{status.upper()}: {sentence}",
    }


def note(sentence: str) -> None:
    """Show a sentence of the lab's own, such as why something was left out."""
    emit({"text/html": f'<p class="nemolab-note">{escape(sentence)}</p>', "text/plain": sentence})


def table_of(
    data: pd.DataFrame | Rows, *, units: Mapping[str, str] | None = None, caption: str = "", limit: int = 50
) -> Table:
    """`data` as a table of text; arguments as for `table`."""
    names, columns = _columns(data)
    units = units or {}
    if unknown := [name for name in units if name not in names]:
        raise NemolabError(f"units name columns that are not there: {', '.join(unknown)}", where="show.table")
    count = len(columns[0]) if columns else 0
    kept = [column[:limit] for column in columns]
    return Table(
        header=tuple(f"{name} ({units[name]})" if units.get(name) else name for name in names),
        rows=tuple(zip(*([values.cell(v) for v in column] for column in kept), strict=True)),
        numeric=tuple(_numeric(column) for column in columns),
        caption=caption,
        left_out=max(0, count - limit),
    )


def _columns(data: Any) -> tuple[list[str], list[list[Any]]]:
    if hasattr(data, "columns") and hasattr(data, "index"):
        frame = data.reset_index() if any(name is not None for name in data.index.names) else data
        names = [" ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in frame.columns]
        return names, [[values.plain(v) for v in frame.iloc[:, i]] for i in range(len(names))]
    rows = list(data)
    names = list(dict.fromkeys(str(key) for row in rows for key in row))
    return names, [[values.plain(row.get(name)) for row in rows] for name in names]


def _numeric(column: Sequence[Any]) -> bool:
    present = [v for v in column if v is not None]
    return bool(present) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in present)


def _figure_document(fig: Any, title: str, alt: str, height: int) -> dict[str, Any]:
    import plotly.graph_objects as go
    from plotly.utils import PlotlyJSONEncoder

    if not isinstance(fig, go.Figure):
        raise NemolabError(f"not a plotly figure but a {type(fig).__name__}", where="show.figure")
    if wrong := sorted({trace.type for trace in fig.data} - look.TRACES):
        raise NemolabError(
            f"the reports cannot draw {', '.join(wrong)}",
            where="show.figure",
            fix=f"use one of {', '.join(sorted(look.TRACES))}; scatter instead of scattergl",
        )
    if fig.frames:
        raise NemolabError("a figure with frames cannot be printed", where="show.figure", fix="show one figure a state")
    made = go.Figure(fig)
    made.layout.template = look.template_for({trace.type for trace in fig.data})  # in place of plotly's, not on top
    made.update_layout(title_text=title, width=look.WIDTH, height=height, meta={"alt": alt})
    # Trace by trace, because Figure.to_dict packs numbers into base64, which nobody can read in a diff.
    document = {
        "data": [trace.to_plotly_json() for trace in made.data],
        "layout": made.layout.to_plotly_json(),
        "config": {"displaylogo": False, "responsive": False},
    }
    return json.loads(json.dumps(document, cls=PlotlyJSONEncoder, sort_keys=True))  # type: ignore[no-any-return]
