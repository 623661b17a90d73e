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

from nemolab.notebook import html, results, show
from nemolab.notebook.html import Table
from nemolab.runbook import figures
from nemolab.runbook.normalise import joined, strip_ansi

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
class TableBlock:
    """A table of at most `ROW_LIMIT` rows."""

    kind: ClassVar[str] = "table"
    table: Table


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


Block = Text | TableBlock | Figure | Results | Findings | Verdict | Image | Error


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
            if isinstance(block, TableBlock) and isinstance(last, Figure) and last.table is None:
                found[-1] = replace(last, table=block.table)
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
    """A table from the data it was shown with; None if that is damaged."""
    try:
        whole = Table.of_document(document)
    except (KeyError, TypeError, ValueError):
        return None
    if {len(row) for row in whole.rows} - {len(whole.header)} or len(whole.numeric) != len(whole.header):
        return None
    cut = max(0, len(whole.rows) - ROW_LIMIT)
    return replace(whole, rows=whole.rows[:ROW_LIMIT], left_out=whole.left_out + cut) if cut else whole


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
    if isinstance(figure := data.get(show.PLOTLY), dict):
        chart = figures.chart(figure)
        yield Figure("", chart, chart.alt or strip_ansi(plain))
    elif isinstance(document := data.get(results.MIME), dict):
        yield Results(document.get("values", {}), tuple(document.get("findings", ())))
    elif isinstance(document := data.get(show.FINDINGS), dict):
        yield Findings(tuple(document.get("findings", ())))
    elif isinstance(document := data.get(show.VERDICT), dict):
        yield Verdict(str(document.get("status", "")), str(document.get("sentence", "")))
    elif isinstance(document := data.get(html.MIME), dict) and (found := table(document)):
        yield TableBlock(found)
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
