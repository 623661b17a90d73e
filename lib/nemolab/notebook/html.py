"""Tables as HTML and as text. Everything from outside is escaped; styles are inline, for JupyterLab strips others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

MIME = "application/vnd.nemolab.table.v1+json"  # a report shows tables from this and never takes HTML from an output

_TABLE = "border-collapse:collapse;margin:0.4em 0"
_CELL = "padding:0.2em 0.8em 0.2em 0;vertical-align:top;white-space:pre-wrap;text-align:"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text that is ready to show.

    Attributes:
        header: column names, unit included.
        rows: cells as text, each row as long as the header.
        numeric: for each column whether its cells are numbers, which are set flush right.
        caption: one line above it.
        left_out: number of rows that were not taken in.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    caption: str = ""
    left_out: int = 0

    def as_output(self) -> dict[str, Any]:
        """The table as a notebook output: its data for reports, HTML for JupyterLab, text for everything else."""
        return {MIME: self.as_document(), "text/html": self.as_html(), "text/plain": self.as_text()}

    def as_document(self) -> dict[str, Any]:
        """The table as JSON values, from which a report makes its own HTML."""
        return {
            "columns": list(self.header),
            "rows": [list(row) for row in self.rows],
            "numeric": list(self.numeric),
            "caption": self.caption,
            "left_out": self.left_out,
        }

    @classmethod
    def of_document(cls, data: Mapping[str, Any]) -> Table:
        """The table that `as_document` gave."""
        return cls(
            header=tuple(map(str, data["columns"])),
            rows=tuple(tuple(map(str, row)) for row in data["rows"]),
            numeric=tuple(map(bool, data["numeric"])),
            caption=str(data["caption"]),
            left_out=int(data["left_out"]),
        )

    def as_html(self) -> str:
        """The table as HTML of class `nemolab-table`, so that a report can style it."""
        head = "".join(
            f'<th scope="col"{self._attributes(i)}>{escape(text)}</th>' for i, text in enumerate(self.header)
        )
        body = "\n".join(
            "<tr>" + "".join(f"<td{self._attributes(i)}>{escape(text)}</td>" for i, text in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        caption = (
            f'<caption style="text-align:left;white-space:nowrap">{escape(self.caption)}</caption>'
            if self.caption
            else ""
        )
        note = f"\n<p>{escape(self._left_out())}</p>" if self.left_out else ""
        return (
            f'<table class="nemolab-table" style="{_TABLE}">{caption}\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table>{note}"
        )

    def as_text(self) -> str:
        """The table as aligned text."""
        lines = [self.header, *(tuple(" ".join(text.split()) for text in row) for row in self.rows)]
        widths = [max((len(row[i]) for row in lines), default=0) for i in range(len(self.header))]
        text = [
            "  ".join(
                c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, self.numeric, strict=True)
            ).rstrip()
            for row in lines
        ]
        head = [self.caption] if self.caption else []
        return "\n".join([*head, *text, *([self._left_out()] if self.left_out else [])])

    def _attributes(self, column: int) -> str:
        if self.numeric[column]:
            return f' class="number" style="{_CELL}right"'
        return f' style="{_CELL}left"'

    def _left_out(self) -> str:
        one = self.left_out == 1
        return f"{self.left_out:,} more row{'' if one else 's'} {'is' if one else 'are'} not shown."
