"""An executed notebook made deterministic: two runs with equal outputs give equal bytes.

What differs between two identical runs is taken out: random ids, timings, papermill's metadata (whose statuses are
wrong after a time-out or a kill), paths of this machine, memory addresses, colour codes, widget state, and the chunks
in which a stream happened to arrive. What a cell printed or showed is otherwise left alone, so that nbval can still
compare it with a re-execution.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import re
import socket
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nemolab.core import paths
from nemolab.core.errors import UsageError
from nemolab.core.status import Status

Notebook = TypeVar("Notebook", bound=dict[str, Any])

INJECTED = "injected-parameters"  # tag of the cell that papermill adds, and its id here
PARAMETERS = "parameters"
RAN, NOT_RUN = "ran", Status.NOT_RUN.value

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,16}\b")
_KERNEL_FILE = re.compile(r"(?:/[\w.~+-]+)*/ipykernel_\d+/\d+\.py")
_BANNER_TAGS = {"papermill-error-cell-tag"}
_WIDGET = "application/vnd.jupyter.widget-view+json"


def strip_ansi(text: str) -> str:
    """`text` without terminal colour and cursor codes."""
    return _ANSI.sub("", text)


def joined(text: Any) -> str:
    """A notebook's multi-line string, which its file may hold as a list of lines."""
    return "".join(text) if isinstance(text, list) else str(text)


def tags(cell: Mapping[str, Any]) -> list[str]:
    """Tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def state(cell: Mapping[str, Any]) -> str:
    """What became of a code cell: "ran", "not run", or the status that ended the step in it."""
    return str(cell.get("metadata", {}).get("nemolab", {}).get("state", RAN))


def code_sha256(nb: Mapping[str, Any]) -> str:
    """Digest of the code as its author wrote it: ids and sources of all code cells but the injected one.

    The same for a source notebook and for its executed copy, so it tells whether a report still belongs to a notebook.
    """
    cells = [
        [cell.get("id", ""), joined(cell["source"])]
        for cell in nb["cells"]
        if cell["cell_type"] == "code" and INJECTED not in tags(cell)
    ]
    return hashlib.sha256(json.dumps(cells, ensure_ascii=False).encode()).hexdigest()


def places_here() -> dict[str, str]:
    """Paths and names of this machine and what stands for them: checkout, home, temporary folder, host name."""
    found: dict[str, str] = {}
    with contextlib.suppress(UsageError):  # outside a checkout there is no such path to hide
        found[str(paths.root())] = "."
    for folder, name in ((Path.home(), "~"), (Path(tempfile.gettempdir()), "<tmp>")):
        if folder != Path("/"):
            found.setdefault(str(folder), name)
    host = socket.gethostname()
    if len(host) >= 6 and re.search(r"[\d.-]", host):  # a plain word such as "server" would hit ordinary prose
        found[host] = "<host>"
    return found


def normalise(
    nb: Notebook,
    *,
    hide: Mapping[str, str] | None = None,
    failed_cell: str | None = None,
    ended: Status = Status.PASSED,
) -> Notebook:
    """A deterministic copy of the executed notebook `nb` (nbformat 4).

    Args:
        nb: the notebook as nbclient or papermill left it; not changed.
        hide: texts of outputs to replace, usually `{str(run_folder): "<run>"}`; `places_here()` is added.
        failed_cell: id of the cell that ended the step, from the record; None when the step passed.
        ended: how the step ended there. The cell is marked with it, and the ones that never started "not run",
            whatever papermill wrote.
    """
    out = copy.deepcopy(nb)
    texts = _Texts({**places_here(), **(hide or {})})
    out["nbformat"], out["nbformat_minor"] = 4, 5
    out["metadata"] = _notebook_metadata(nb.get("metadata", {}))
    out["cells"] = [cell for cell in out["cells"] if not _BANNER_TAGS.intersection(tags(cell))]
    seen: set[str] = set()
    for number, cell in enumerate(out["cells"], 1):
        injected = INJECTED in tags(cell)
        cell["id"] = _unique(INJECTED if injected else cell.get("id") or f"cell-{number:02d}", seen)
        cell["source"] = joined(cell["source"])
        metadata: dict[str, Any] = {"tags": sorted(tags(cell))} if tags(cell) else {}
        if cell["cell_type"] == "code":
            cell.setdefault("execution_count", None)
            cell["outputs"] = list(_outputs(cell.get("outputs", []), texts))
            became = _became(cell, failed_cell, ended)
            if became != RAN:
                metadata["nemolab"] = {"state": became}
        cell["metadata"] = metadata
    return out


def to_text(nb: Mapping[str, Any]) -> str:
    """The notebook file: sorted keys, long strings as lists of lines (readable in a diff), LF, one last newline."""

    def lines(text: str) -> list[str]:
        return text.splitlines(keepends=True)

    out: dict[str, Any] = json.loads(json.dumps(nb))
    for cell in out["cells"]:
        cell["source"] = lines(joined(cell["source"]))
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = lines(joined(output["text"]))
            for mime, value in output.get("data", {}).items():
                if isinstance(value, str) and (mime.startswith("text/") or mime == "image/svg+xml"):
                    output["data"][mime] = lines(value)
    return json.dumps(out, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _became(cell: Mapping[str, Any], failed_cell: str | None, ended: Status) -> str:
    if failed_cell is not None and cell["id"] == failed_cell:
        return ended.value
    started = cell.get("execution_count") is not None or cell["outputs"]
    return RAN if started or not cell["source"].strip() else NOT_RUN


def _unique(wanted: str, seen: set[str]) -> str:
    name, n = wanted, 1
    while name in seen:
        n += 1
        name = f"{wanted}-{n}"
    seen.add(name)
    return name


def _notebook_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},  # its version is in the record
    }
    if "nemolab" in metadata:
        kept["nemolab"] = copy.deepcopy(metadata["nemolab"])
    return kept


class _Texts:
    """Takes out of a text what belongs to this machine or this process."""

    def __init__(self, hide: Mapping[str, str]) -> None:
        self._hide = dict(hide)
        alternatives = "|".join(re.escape(text) for text in sorted(hide, key=len, reverse=True) if text)
        self._pattern = re.compile(rf"(?<![\w.])(?:{alternatives})(?![\w-])") if alternatives else None

    def clean(self, text: str) -> str:
        text = _KERNEL_FILE.sub("<cell>", text)
        if self._pattern:
            text = self._pattern.sub(lambda m: self._hide[m.group()], text)
        text = _ADDRESS.sub("at 0x…", text)
        return text.encode("utf-8", "replace").decode()  # half of a surrogate pair cannot be written to a file

    def clean_all(self, value: Any) -> Any:
        """`value` (JSON) with every string in it cleaned and keys sorted."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, list):
            return [self.clean_all(item) for item in value]
        if isinstance(value, dict):
            return {key: self.clean_all(value[key]) for key in sorted(value)}
        return value


def _outputs(outputs: Iterable[dict[str, Any]], texts: _Texts) -> Iterable[dict[str, Any]]:
    # A kernel flushes its streams before it displays anything, so their order against displays is fixed. How stdout
    # and stderr interleave and where they are cut is not: each is joined, stdout first.
    streams: dict[str, str] = {}
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + joined(output["text"])
            continue
        if kind in ("display_data", "execute_result") and _WIDGET in output["data"]:
            continue  # its state lives in a kernel that is gone
        yield from _flush(streams, texts)
        if kind == "error":
            trace = [texts.clean(strip_ansi(line)) for line in output["traceback"]]
            yield {**output, "evalue": texts.clean(strip_ansi(output["evalue"])), "traceback": trace}
        else:
            data = {m: joined(v) if m.startswith("text/") else v for m, v in sorted(output["data"].items())}
            yield {**output, "data": texts.clean_all(data), "metadata": {}}
    yield from _flush(streams, texts)


def _flush(streams: dict[str, str], texts: _Texts) -> Iterable[dict[str, Any]]:
    for name in ("stdout", "stderr", *sorted(set(streams) - {"stdout", "stderr"})):
        if text := streams.get(name):
            yield {"name": name, "output_type": "stream", "text": texts.clean(text)}
    streams.clear()
