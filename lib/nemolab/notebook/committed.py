"""A committed run shown again inside a notebook: its figures, verdicts and results, in no time and measured by nobody.

`run.json` is read as plain data: the record's model belongs to the runner, above this package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nemolab.core import paths
from nemolab.core.errors import UsageError
from nemolab.notebook import html, results, show, source
from nemolab.notebook.frontend import emit

Kind = Literal["figure", "table", "findings", "verdict", "results", "text"]

_KINDS: dict[str, Kind] = {
    show.PLOTLY: "figure",
    html.MIME: "table",
    show.FINDINGS: "findings",
    show.VERDICT: "verdict",
    results.MIME: "results",
}


@dataclass(frozen=True)
class CommittedRun:
    """A run in reports/, opened to be looked at.

    Attributes:
        folder: where it lies.
        record: its `run.json`.
    """

    folder: Path
    record: dict[str, Any]

    def banner(self) -> None:
        """Say what this is: a replay, of which run, from when and where."""
        show.note(self.origin())

    def origin(self) -> str:
        """The banner's sentence."""
        day = str(self.record.get("started", ""))[:10]
        return f"Replay of run {self.record['run_id']} from {day} on {_machine(self.record)}. Nothing is measured here."

    def summary(self) -> None:
        """Show the run's verdict and a table of its steps."""
        emit(show.verdict_output(str(self.record["status"]), f"{self.record['title']}, run {self.record['run_id']}"))
        rows = [
            {"step": s["id"], "what": s["title"], "status": s["status"], "time": s.get("seconds"), "why": s["reason"]}
            for s in self._steps()
        ]
        show.table(rows, units={"time": "s"} if rows else None)

    def show_step(self, step: str, only: Sequence[Kind] = ("figure", "verdict")) -> None:
        """Show a step's outputs of these kinds again, under the banner.

        Args:
            step: id of the step in the runbook, such as "load".

        Raises:
            UsageError: the run has no such step, or it left none of these.
        """
        self.banner()
        found = 0
        for data in self.outputs(step):
            if (kind := _kind(data)) in only:
                emit(_rendered(kind, data))
                found += 1
        if not found:
            raise UsageError(f"step {step} left no {' or '.join(only)}", where=self.folder.name)

    def values(self, step: str) -> dict[str, Any]:
        """The step's results: name -> value."""
        return {name: entry["value"] for name, entry in self._step(step)["results"].items()}

    def outputs(self, step: str) -> Iterator[dict[str, Any]]:
        """The step's displayed outputs, MIME type -> value, in order."""
        document = source.read(self.folder / f"{self._step(step)['name']}.ipynb")
        for cell in source.cells(document):
            for output in cell.raw.get("outputs", ()):
                if output.get("output_type") in ("display_data", "execute_result"):
                    yield {mime: "".join(v) if isinstance(v, list) else v for mime, v in output["data"].items()}

    def _steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self.record["steps"]
        return steps

    def _step(self, name: str) -> dict[str, Any]:
        for step in self._steps():
            if step["id"] == name:
                return step
        known = ", ".join(step["id"] for step in self._steps())
        raise UsageError(f"no step {name!r}", where=self.folder.name, fix=f"one of {known}")


def open_run(run: str | Path) -> CommittedRun:
    """A run by the path of its folder, or by its name under reports/ (the newest that begins so, examples first).

    Raises:
        UsageError: there is none.
    """
    folder = _find(str(run))
    try:
        record = json.loads((folder / "run.json").read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"no run here: {error}", where=str(folder), fix="`nemolab list` shows the runs") from None
    return CommittedRun(folder, record)


def _find(name: str) -> Path:
    if (Path(name) / "run.json").is_file():
        return Path(name)
    for pattern in (f"examples/{name}*/run.json", f"{name}/*/run.json", f"*/{name}*/run.json"):
        found = [path.parent for path in sorted(paths.reports().glob(pattern))]
        if whole := [folder for folder in found if not folder.name.endswith("-replay")]:
            return whole[-1]
    raise UsageError(f"no run {name!r} under reports/", fix="`nemolab list` shows the runs; `make report` makes one")


def _kind(data: dict[str, Any]) -> Kind:
    return next((kind for mime, kind in _KINDS.items() if mime in data), "text")


def _rendered(kind: Kind, data: dict[str, Any]) -> dict[str, Any]:
    """The output, its HTML made anew from its data: HTML out of a file is not trusted."""
    plain = {"text/plain": str(data.get("text/plain", ""))}
    if kind == "figure":
        return {show.PLOTLY: data[show.PLOTLY], **plain}
    if kind == "table":
        return html.Table.of_document(data[html.MIME]).as_output()
    if kind == "findings":
        return show.findings_output(data[show.FINDINGS]["findings"])
    if kind == "verdict":
        return show.verdict_output(data[show.VERDICT]["status"], data[show.VERDICT]["sentence"])
    return plain  # results too: a second results output would pass for this notebook's own


def _machine(record: dict[str, Any]) -> str:
    """The machine class as the record has it: processor and GPUs. A run names no machine."""
    host = record.get("host") or {}
    if not host:
        return "an unnamed machine"
    cores = host.get("cpus usable") or host.get("cpus")
    processor = f"{host.get('cpu') or 'an unknown processor'}" + (f" ({cores:g} cores)" if cores else "")
    if (gpus := host.get("gpus")) is None:
        return f"{processor}, GPUs unknown"
    names = [str(gpu.get("name")) for gpu in gpus]
    kinds = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    return ", ".join([processor, *(kinds or ["no GPU"])])
