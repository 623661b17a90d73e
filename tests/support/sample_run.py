"""Run folders for tests of reports: a record and executed notebooks, made without a kernel but with the real `show`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import plotly.graph_objects as go
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pydantic import Field

from nemolab.core.contract import Results, Unit
from nemolab.core.finding import Finding, Severity
from nemolab.core.status import Status
from nemolab.notebook import results as published
from nemolab.notebook import show
from nemolab.runbook import expect
from nemolab.runbook.normalise import code_sha256, normalise, to_text
from nemolab.runbook.record import Failure, RunRecord, SignOff, StepRecord

START = datetime(2026, 11, 30, 9, 15, tzinfo=UTC)
Shown = list[dict[str, Any]]


class LadderResults(Results):
    """Results as a load notebook publishes them."""

    throughput: Annotated[float, Unit("tokens/s", "higher", noise=0.1)] = Field(
        description="Output tokens a second at the best stage that met every limit"
    )
    ttft_p95: Annotated[float, Unit("ms", "lower", noise=0.15)] = Field(
        description="Time to first token, 95th percentile at that stage"
    )
    max_concurrency: Annotated[int, Unit("", "higher")] = Field(description="Largest number of requests at once")
    errors: Annotated[int, Unit("", "lower")] = Field(description="Requests that failed at any stage")
    model: str = Field(description="Model that answered")


LADDER = LadderResults(
    throughput=1184.2, ttft_p95=86.4, max_concurrency=8, errors=0, model="miniature-nemotron-h-5m-q8_0"
)


def captured(make: Callable[[], None]) -> Shown:
    """Outputs that `make` shows, as a kernel would have sent them."""
    shown: Shown = []
    take = lambda data: shown.append(new_output("display_data", data=data))  # noqa: E731
    with mock.patch.object(show, "emit", take), mock.patch("nemolab.notebook.frontend.emit", take):
        make()
    return shown


def ladder_figures() -> None:
    """One figure of each kind that notebooks use: lines with markers, histogram, box, heatmap, bars."""
    rows = [
        {"concurrency": c, "throughput": t, "ttft_p95": ms, "limit": 200}
        for c, t, ms in [(1, 402.0, 41.2), (2, 731.5, 48.9), (4, 1010.7, 61.0), (8, 1184.2, 86.4), (16, 1190.8, 243.9)]
    ]
    x = [row["concurrency"] for row in rows]
    lines = go.Figure(
        [
            go.Scatter(x=x, y=[r["ttft_p95"] for r in rows], name="p95", mode="lines+markers"),
            go.Scatter(x=x, y=[r["limit"] for r in rows], name="limit", mode="lines"),
        ],
        layout={
            "xaxis": {"title": {"text": "Requests at once"}},
            "yaxis": {"title": {"text": "Time to first token (ms)"}},
        },
    )
    show.figure(
        lines,
        title="Up to 8 requests at once the first token comes in time",
        alt="Time to first token (p95) rises from 41 ms at 1 request to 86 ms at 8 and 244 ms at 16; limit 200 ms.",
        table=rows,
        units={"throughput": "tokens/s", "ttft_p95": "ms", "limit": "ms"},
    )
    dice = random.Random(1)
    samples = [round(dice.gauss(60, 12), 2) for _ in range(400)]
    show.figure(
        go.Figure(
            go.Histogram(x=samples, nbinsx=24), layout={"xaxis": {"title": {"text": "Time to first token (ms)"}}}
        ),
        title="First tokens cluster around 60 ms",
        alt="Histogram of 400 requests at 8 at once: most lie between 40 and 80 ms, none over 110 ms.",
        table=[{"percentile": p, "ms": sorted(samples)[int(p / 100 * 399)]} for p in (5, 50, 95)],
    )
    show.figure(
        go.Figure([go.Box(y=samples[i::3], name=name) for i, name in enumerate(("short", "medium", "long"))]),
        title="Prompt length hardly matters",
        alt="Box plots of time to first token for short, medium and long prompts: medians within 3 ms.",
    )
    depths, lengths = [0, 25, 50, 75, 100], ["512", "2k", "8k", "32k"]
    show.figure(
        go.Figure(go.Heatmap(z=[[1.0 if n < 3 else 0.9 for n in range(4)] for _ in depths], x=lengths, y=depths)),
        title="Needles are found at every depth",
        alt="Exact match is 1.0 at all depths up to 8k tokens and 0.9 at 32k.",
        table=[{"length": n, "exact match": 1.0 if n != "32k" else 0.9} for n in lengths],
    )
    show.figure(
        go.Figure(
            [go.Bar(x=lengths, y=[3, 5, 9, 20], name="prefill"), go.Bar(x=lengths, y=[7, 7, 8, 8], name="decode")]
        ),
        title="Prefill grows with length",
        alt="Bars of seconds by length: prefill 3, 5, 9, 20 and decode 7, 7, 8, 8.",
    )


def findings(grave: bool = False) -> list[Finding]:
    """One finding of each severity; an error only if `grave`, for it fails a step."""
    every = [
        Finding("L-012", Severity.INFO, "The client was not the limit: its event loop lagged 2 ms at most."),
        Finding(
            "L-007",
            Severity.WARNING,
            "16 requests at once exceed the 200 ms limit of the first token (243.9 ms).",
            fix="Cap concurrency at 8, or raise the limit.",
            source="measured in this run",
            where="stage 5",
        ),
        Finding(
            "R-031",
            Severity.ERROR,
            "max_num_seqs 512 needs 41 GiB of Mamba state, and 22 GiB are free.",
            fix="Set --max-num-seqs 256.",
            source="vllm 0.33.0, mamba cache arithmetic",
            flag="--max-num-seqs",
        ),
        Finding(
            "H-003",
            Severity.UNKNOWN,
            "NVLink state is not readable.",
            fix="Run as a user that may query it.",
            source="NVML",
        ),
        Finding(
            "R-044",
            Severity.DISAGREE,
            "Two documents give different sampling temperatures: 0.6 and 1.0.",
            fix="Use 1.0.",
            source="model card; cookbook",
        ),
    ]
    return [finding for finding in every if grave or finding.severity is not Severity.ERROR]


def ladder_notebook(extra: Sequence[Any] = (), parameters: str = 'base_url = "http://127.0.0.1:8080/v1"\n') -> Any:
    """The executed notebook of a load step; `extra` cells come before the last."""
    code = [
        new_code_cell(
            '# Defaults\nbase_url = ""  # str: where the server answers', id="params", metadata={"tags": ["parameters"]}
        ),
        new_code_cell(f"# Parameters\n{parameters}", id="x1", metadata={"tags": ["injected-parameters"]}),
        new_code_cell("from nemolab.load import ladder\n\nstages = ladder.run(p)  # about 40 s", id="do"),
        new_code_cell("show.figure(figure, title=..., alt=..., table=rows)", id="look"),
        *extra,
        new_code_cell(
            "results.publish(LadderResults(**best), findings=found)", id="results", metadata={"tags": ["results"]}
        ),
    ]
    code[2].outputs = [
        new_output("stream", name="stdout", text="\x1b[32mstage 1 of 5\x1b[0m done\nstage 2 of 5 done\n")
    ]
    code[3].outputs = captured(ladder_figures)
    code[-1].outputs = [new_output("display_data", data=published.output(document("04_load")))]
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
    text = [
        new_markdown_cell(
            "# Load the server in stages\nFinds the largest load that still answers in time.\n\n"
            "| | |\n|-|-|\n| Needs | a server, see [serve](25_serve_llamacpp.ipynb) |\n| Takes | 40 s |\n"
            "| Risk | none |\n",
            id="title",
        ),
        new_markdown_cell("## Do\nEach stage sends **8 requests** per slot. Expect one line a stage.", id="m1"),
        new_markdown_cell("## Look\nThe line must stay under the limit.", id="m2"),
        new_markdown_cell("## Decide\nThe best stage that met every limit counts.", id="m3"),
    ]
    return new_notebook(
        cells=[text[0], code[0], code[1], text[1], code[2], text[2], *code[3:-1], text[3], code[-1]],
        metadata={"nemolab": {"params": "nemolab.load.params:LadderParams"}, "papermill": {"duration": 41.2}},
    )


def document(name: str, grave: bool = False) -> dict[str, Any]:
    """The results document that `publish` shows and writes."""
    return {
        "schema": 1,
        "notebook": name,
        "values": LADDER.as_document(),
        "findings": [finding.as_dict() for finding in findings(grave)],
    }


def small_notebook(title: str, output: str = "ok\n") -> Any:
    """A notebook with one code cell that printed `output`."""
    cell = new_code_cell(
        "print(check())", id="c1", execution_count=1, outputs=[new_output("stream", name="stdout", text=output)]
    )
    return new_notebook(cells=[new_markdown_cell(f"# {title}\nWhat it is for.", id="t"), cell])


class Run:
    """A run folder being made: add steps, then `finish`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[StepRecord] = []
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, id: str, title: str, nb: Any = None, **values: Any) -> StepRecord:
        """One step with its executed notebook; `values` are fields of the record."""
        name = f"{len(self.steps) + 1:02d}_{id}"
        values = {"status": Status.PASSED, "seconds": 1.25, "key": f"key-{id}", "started": START, **values}
        failure = values.get("failure")
        if nb is not None:
            values.setdefault("code_sha256", code_sha256(nb))
            made = normalise(nb, failed_cell=failure.cell_id if failure else None, ended=values["status"])
            raw = to_text(made).encode()
            (self.folder / f"{name}.ipynb").write_bytes(raw)
            values.setdefault("notebook_sha256", hashlib.sha256(raw).hexdigest())
        values.setdefault("notebook", f"notebooks/{id}.ipynb")
        self.steps.append(StepRecord(id=id, name=name, title=title, **values))
        return self.steps[-1]

    def finish(self, status: Status = Status.PASSED, **values: Any) -> RunRecord:
        """Write the record."""
        given: dict[str, Any] = {
            "run_id": "20261130-091500-7c1e",
            "runbook": "quickstart",
            "runbook_path": "runbooks/quickstart.yaml",
            "runbook_sha256": hashlib.sha256(b"runbook").hexdigest(),
            "title": "Quickstart: a real serving stack, checked end to end",
            "purpose": "Shows that a Nemotron-H server starts, answers, holds its load and finds needles.",
            "audience": "serving engineers and their stakeholders",
            "status": status,
            "started": START,
            "ended": START + timedelta(seconds=52.4),
            "command": ("nemolab", "run", "runbooks/quickstart.yaml", "--set", "engine=llamacpp"),
            "parameters": {"engine": "llamacpp", "threads": 1, "thinking": True, "lengths": [512, 2048, 8192]},
            "parameter_help": {
                "engine": "Which engine serves the model",
                "lengths": "Prompt lengths to validate, in tokens",
            },
            "host": {
                "cpu": "x86-64",
                "cpus usable": 2.0,
                "memory GiB": 7.8,
                "gpus": [{"name": "NVIDIA H200"}],
                "os": "Debian 13",
            },
            "versions": {"nemolab": "0.1.0", "llama.cpp": "b9912", "python": "3.13.5", "xllamacpp": "2026.10.1"},
            "symptoms": (
                {"symptom": "The server never becomes ready", "cause": "The port is taken", "fix": "Set port=0"},
            ),
        }
        run = RunRecord(**{**given, "steps": tuple(self.steps), **values})
        run.write(self.folder)
        return run


def judged(name: str, expected: Any, values: dict[str, Any]) -> Any:
    """The expectation as the runner would judge it."""
    return expect.judge(name, expect.parse(expected), values)


def add_ladder(run: Run, nb: Any = None, grave: bool = False, **values: Any) -> StepRecord:
    """A load step that passed, with its results file and a recording."""
    name = f"{len(run.steps) + 1:02d}_load"
    (run.folder / f"{name}.results.json").write_text(
        json.dumps(document(name, grave), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )
    recording = run.folder / "recordings" / name / "ladder.run-0a1b.json"
    recording.parent.mkdir(parents=True, exist_ok=True)
    recording.write_text('{"value": [1, 2, 3]}\n')
    made = ladder_notebook() if nb is None else nb
    for cell in made.cells:
        for output in cell.get("outputs", []):
            if published.MIME in output.get("data", {}):
                output["data"][published.MIME] = document(name, grave)
    dumped = LADDER.model_dump(mode="json")
    given: dict[str, Any] = {
        "notebook": "notebooks/40_load_ladder.ipynb",
        "seconds": 41.2,
        "parameters": {"base_url": "http://127.0.0.1:8080/v1"},
        "results": LADDER.as_document(),
        "expectations": (
            judged("throughput", ">= 100", dumped),
            judged("ttft_p95", "<= 200", dumped),
            judged("errors", 0, dumped),
        ),
        "findings": tuple(finding.as_dict() for finding in findings(grave)),
        "recordings": {str(recording.relative_to(run.folder)): hashlib.sha256(recording.read_bytes()).hexdigest()},
        "sign_off_roles": ("oncall", "owner"),
        "sign_offs": tuple(
            SignOff(role=role, by=by, at=START, key="key-load", note="looks right")
            for role, by in (("oncall", "Kim"), ("owner", "Sam"))
        ),
    }
    return run.add("load", "Load the server in stages", made, **{**given, **values})


def passed(folder: Path) -> RunRecord:
    """A run in which everything passed."""
    run = Run(folder)
    run.add("host", "Check the host", small_notebook("Check the host"), notebook="notebooks/10_check_host.ipynb")
    run.add("serve", "Serve the miniature", small_notebook("Serve"), notebook="notebooks/25_serve_llamacpp.ipynb")
    run.add("probe", "Probe the API", small_notebook("Probe"), kept_from="20261129-080000-aaaa")
    add_ladder(run)
    return run.finish()


def mixed(folder: Path) -> RunRecord:
    """A run with a step of every status."""
    run = Run(folder)
    run.add("host", "Check the host", small_notebook("Check the host"))
    values = LADDER.model_dump(mode="json")
    add_ladder(
        run,
        grave=True,
        status=Status.FAILED,
        reason="throughput is 1184.2, and >= 2000 was required",
        expectations=(judged("throughput", ">= 2000", values), judged("ttft_p95", "<= 200", values)),
        hint="90_troubleshoot",
        sign_offs=(SignOff(role="oncall", by="Kim", at=START, key="an older key"),),
    )
    broken = small_notebook("Broken")
    broken.cells[1].outputs.append(
        new_output(
            "error",
            ename="ConnectionError",
            evalue="refused",
            traceback=["Traceback", "\x1b[31mConnectionError\x1b[0m"],
        )
    )
    run.add(
        "broken",
        "Ask the wrong port",
        broken,
        status=Status.ERROR,
        reason="ConnectionError in cell 1: refused",
        failure=Failure(
            kind="ConnectionError",
            message="refused",
            cell=1,
            cell_id="c1",
            traceback="Traceback\nConnectionError: refused",
            fix="start the server first",
        ),
    )
    slow = new_notebook(
        cells=[new_code_cell(f"step({i})", id=f"s{i}", execution_count=i if i < 3 else None) for i in range(1, 5)]
    )
    run.add(
        "slow",
        "Wait for an answer",
        slow,
        status=Status.TIMED_OUT,
        reason="cell 2 took longer than 60 s",
        failure=Failure(kind="timed out", message="cell 2 took longer than 60 s", cell=2, cell_id="s2"),
    )
    for id, status, reason in [
        ("killed", Status.KILLED, "the kernel was killed (out of memory?)"),
        ("stopped", Status.INTERRUPTED, "interrupted by Ctrl-C"),
        ("skipped", Status.SKIPPED, "`when` is false"),
        ("never", Status.NOT_RUN, "step load failed"),
    ]:
        run.add(id, f"A step that was {status}", status=status, reason=reason, seconds=None, started=None)
    run.add("wait", "Hand over", small_notebook("Hand over"), status=Status.WAITING, sign_off_roles=("owner",))
    return run.finish(
        Status.FAILED,
        reasons=("load: throughput is 1184.2, and >= 2000 was required", "broken: ConnectionError in cell 1: refused"),
    )


@contextlib.contextmanager
def edited(path: Path) -> Iterator[dict[str, Any]]:
    """A JSON file to change in place."""
    value = json.loads(path.read_text())
    yield value
    path.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
