"""What a cell showed, as blocks that a report may show: an allow-list of MIME types, each rendered by us.

`text/html`, `text/markdown`, SVG and JavaScript are never taken from an output: any notebook could fill them with what
a model wrote. A table comes from its own structured type; everything else is plain text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from nemolab.notebook.values import cell
from nemolab.runbook import figures
from nemolab.runbook.normalise import joined, strip_ansi

RESULTS = "application/vnd.nemolab.results.v1+json"
TABLE = "application/vnd.nemolab.table.v1+json"
FINDINGS = "application/vnd.nemolab.findings.v1+json"
VERDICT = "application/vnd.nemolab.verdict.v1+json"

TEXT_LIMIT = 12_000  # characters of one output; the notebook has them all
ROW_LIMIT = 200  # rows of one table
IMAGE_LIMIT = 200_000  # bytes


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text. `stream` is "stdout", "stderr" or "" for a value; `omitted` counts characters left out."""

    kind: ClassVar[str] = "text"
    text: str
    stream: str = ""
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `numeric` tells which columns are numbers, `omitted` counts rows left out."""

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    caption: str = ""
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its text alternative and its table. `dropped` says why the file does not hold the chart."""

    kind: ClassVar[str] = "figure"
    id: str
    chart: figures.Chart
    alt: str
    table: Table | None = None
    dropped: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """The results that the notebook published: `Results.as_document()` and findings."""

    kind: ClassVar[str] = "results"
    values: Mapping[str, Any]
    findings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings that the notebook showed."""

    kind: ClassVar[str] = "findings"
    findings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the notebook says it ended; `status` is the text of a `Status`."""

    kind: ClassVar[str] = "verdict"
    status: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Image:
    """A PNG or JPEG as a data URI."""

    kind: ClassVar[str] = "image"
    uri: str
    alt: str


@dataclass(frozen=True, slots=True)
class Error:
    """An exception."""

    kind: ClassVar[str] = "error"
    name: str
    message: str
    traceback: str


Block = Text | Table | Figure | Results | Findings | Verdict | Image | Error


def blocks(outputs: Iterable[Mapping[str, Any]], prefix: str) -> list[Block]:
    """The blocks of one cell's outputs. Figures get the ids `<prefix>-1`, ... and the table that follows them."""
    found: list[Block] = []
    count = 0
    for output in outputs:
        for block in _blocks(output):
            if isinstance(block, Figure):
                count += 1
                block = replace(block, id=f"{prefix}-{count}")
            last = found[-1] if found else None
            if isinstance(block, Table) and isinstance(last, Figure) and last.table is None:
                found[-1] = replace(last, table=block)
            else:
                found.append(block)
    return found


def shorten(text: str, limit: int = TEXT_LIMIT) -> tuple[str, int]:
    """Head and tail of a long text, and the number of characters left out between them."""
    if len(text) <= limit:
        return text, 0
    head, tail = limit * 2 // 3, limit // 3
    omitted = len(text) - head - tail
    note = f"\n[… {omitted:,} characters left out here; the notebook file has them …]\n"
    return text[:head] + note + text[-tail:], omitted


def table(document: Mapping[str, Any]) -> Table | None:
    """A table from its structured form `{columns, rows, numeric, caption, left_out}`; None if it is not one."""
    columns, rows = document.get("columns"), document.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return None
    width = len(columns)
    if any(not isinstance(row, list) or len(row) != width for row in rows):
        return None
    numeric = document.get("numeric")
    flags = tuple(map(bool, numeric)) if isinstance(numeric, list) and len(numeric) == width else (False,) * width
    left_out = document.get("left_out")
    return Table(
        tuple(map(cell, columns)),
        tuple(tuple(map(cell, row)) for row in rows[:ROW_LIMIT]),
        flags,
        str(document.get("caption") or ""),
        (left_out if isinstance(left_out, int) else 0) + max(0, len(rows) - ROW_LIMIT),
    )


def _blocks(output: Mapping[str, Any]) -> Iterator[Block]:
    kind = output["output_type"]
    if kind == "stream":
        yield Text(*_text(output["text"], str(output["name"])))
    elif kind == "error":
        trace, _ = shorten(strip_ansi("\n".join(output.get("traceback", []))))
        yield Error(str(output["ename"]), strip_ansi(str(output["evalue"])), trace)
    elif kind in ("display_data", "execute_result"):
        yield from _display(output["data"])


def _text(text: Any, stream: str = "") -> tuple[str, str, int]:
    short, omitted = shorten(strip_ansi(joined(text)).rstrip("\n"))
    return short, stream, omitted


def _display(data: Mapping[str, Any]) -> Iterator[Block]:
    plain = joined(data.get("text/plain", ""))
    if isinstance(figure := data.get(figures.MIME), dict):
        chart = figures.chart(figure)
        yield Figure("", chart, chart.alt or strip_ansi(plain))
    elif isinstance(document := data.get(RESULTS), dict):
        yield Results(document.get("values", {}), tuple(document.get("findings", ())))
    elif isinstance(document := data.get(FINDINGS), dict):
        yield Findings(tuple(document.get("findings", ())))
    elif isinstance(document := data.get(VERDICT), dict):
        yield Verdict(str(document.get("status", "")), str(document.get("sentence", "")))
    elif isinstance(document := data.get(TABLE), dict) and (found := table(document)):
        yield found
    elif image := _image(data):
        yield Image(image, strip_ansi(plain))
    elif plain:
        yield Text(*_text(plain))
    elif data:
        yield Text(f"[output of type {', '.join(sorted(data))}: not shown in a report]")


def _image(data: Mapping[str, Any]) -> str | None:
    for mime in ("image/png", "image/jpeg"):
        if isinstance(data.get(mime), str):
            try:
                raw = base64.b64decode("".join(data[mime].split()), validate=True)
            except (binascii.Error, ValueError):
                return None
            if len(raw) <= IMAGE_LIMIT:
                return f"data:{mime};base64,{base64.b64encode(raw).decode()}"
    return None
