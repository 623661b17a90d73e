"""From a log to its causes: `diagnose(text)` ranks them, each with its line, what to do and who says so.

Three kinds of evidence, in this order: a line that states a failure, what follows from several lines together, a line
that warns. A line that only says that something else failed before comes last among the failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.engines import state
from nemolab.engines.logs import LogReport, Seen, read_log
from nemolab.engines.registry import explain, log_rules

_LONG_BLOCK = 4096  # tokens; Nemotron 3 has blocks of 272 to 2,096 with 16-bit states


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that the log points to.

    Attributes:
        evidence: `stated` by a line, `derived` from several, a `warning`, or `aftermath` of another failure.
        line: as printed, without secrets; "" where it follows from several.
        number: of that line, from 1; 0 where it follows from several.
    """

    code: str
    evidence: str
    cause: str
    fix: str
    source: str
    line: str = ""
    number: int = 0
    times: int = 1

    def as_finding(self) -> Finding:
        """The cause as a finding."""
        grave = {"stated": Severity.ERROR, "aftermath": Severity.ERROR}.get(self.evidence, Severity.WARNING)
        where = f"log line {self.number}" if self.number else "the log as a whole"
        message = f"{self.cause}: {self.line}" if self.line else self.cause
        return Finding(self.code, grave, message, self.fix, self.source, where=where)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a log says, causes first.

    Attributes:
        causes: likeliest first.
        stopped_at: phase that had begun and not ended; "" when the server became ready.
    """

    report: LogReport
    causes: tuple[Cause, ...]
    stopped_at: str

    @property
    def failed(self) -> bool:
        """Whether the log shows a server that cannot be used."""
        return any(cause.evidence == "stated" for cause in self.causes) or not self.report.ready

    @property
    def sentence(self) -> str:
        """The likeliest cause, or that there is none."""
        if self.causes and self.causes[0].evidence in ("stated", "derived"):
            return f"{self.causes[0].cause[0].upper()}{self.causes[0].cause[1:]}."
        if self.report.ready:
            return "The server became ready, and nothing in the log says why it would fail."
        if self.stopped_at:
            return f"No cause is known for what the log shows; it ends in the phase {self.stopped_at!r}."
        return "No cause is known for what the log shows."


def diagnose(text: str, engine: str = "") -> Diagnosis:
    """The causes that a log points to.

    Args:
        engine: whose log it is; "" to find out.

    Raises:
        UsageError: no such engine, or no text.
    """
    if not text.strip():
        raise UsageError("the log is empty", fix="paste its lines, or name its file")
    report = read_log(text, log_rules(engine)) if engine else explain(text)
    stated = [_cause(seen, "aftermath" if seen.symptom.aftermath else "stated") for seen in report.failures]
    derived = [cause for rule in _DERIVED for cause in rule(report)]
    warned = [_cause(seen, "warning") for seen in report.warnings]
    rank = ["stated", "derived", "aftermath", "warning"]
    causes = sorted([*stated, *derived, *warned], key=lambda cause: rank.index(cause.evidence))
    open_phase = report.phases[-1].name if report.phases and report.phases[-1].seconds is None else ""
    return Diagnosis(report, tuple(causes), open_phase)


def read(log: str = "", path: str = "", engine: str = "") -> Diagnosis:
    """The causes in pasted text, in a file, or else in the newest log of the lab's own servers.

    Raises:
        UsageError: both text and file, no such file, or no log at all.
    """
    if log and path:
        raise UsageError("a pasted log and a file: which one?", fix="leave one of log and path empty")
    if log:
        return diagnose(log, engine)
    file = Path(path).expanduser() if path else newest()
    try:
        return diagnose(file.read_text(errors="replace"), engine)
    except OSError as error:
        raise UsageError(f"cannot read the log: {error.strerror}", where=str(file)) from None


def newest() -> Path:
    """The newest log of the servers that the lab started.

    Raises:
        UsageError: it started none.
    """
    logs = sorted((state.folder() / "logs").glob("*.log"))
    if not logs:
        raise UsageError("no log: nothing is pasted, no file is named, and the lab started no server", fix="set path")
    return logs[-1]


def rows(diagnosis: Diagnosis) -> list[dict[str, object]]:
    """One row a cause, likeliest first."""
    return [
        {
            "rank": rank,
            "cause": cause.cause,
            "evidence": cause.evidence + (f", {cause.times} lines" if cause.times > 1 else ""),
            "line": cause.number or None,
            "do": cause.fix,
            "source": cause.source,
        }
        for rank, cause in enumerate(diagnosis.causes, 1)
    ]


def _cause(seen: Seen, evidence: str) -> Cause:
    return Cause(
        seen.symptom.code, evidence, seen.cause, seen.fix, seen.symptom.source, seen.line, seen.number, seen.times
    )


def _memory_while_serving(report: LogReport) -> Iterator[Cause]:
    if report.ready and any(seen.symptom.code == "L-003" for seen in report.failures):
        yield Cause(
            "L-901",
            "derived",
            "the GPU ran out of memory after the start: the peak of a long prompt's activations was not planned for",
            "a smaller --max-num-batched-tokens, or a lower memory share",
            "vllm#40420",
        )


def _memory_while_profiling(report: LogReport) -> Iterator[Cause]:
    profiling = bool(report.phases) and "profiling" in report.phases[-1].name and not report.ready
    if profiling and any(seen.symptom.code == "L-003" for seen in report.failures):
        yield Cause(
            "L-902",
            "derived",
            "the GPU ran out of memory in the profiling run, whose size is the largest prefill step",
            "leave chunked prefill on (no --no-enable-chunked-prefill), or lower --max-num-batched-tokens",
            "noonghunna/club-3090#708",
        )


def _long_block(report: LogReport) -> Iterator[Cause]:
    block = report.capacity.get("attention_block")
    if block and block.value > _LONG_BLOCK:
        yield Cause(
            "L-903",
            "derived",
            f"a cache block has {block.value:,} tokens, so short requests waste most of theirs",
            "a 16-bit SSM state (--mamba-ssm-cache-dtype float16), or more tensor parallel",
            "vllm#54458",
        )


def _old_token_count(report: LogReport) -> Iterator[Cause]:
    tokens, times, length = (report.capacity.get(n) for n in ("kv_tokens", "max_concurrency", "max_model_len"))
    if report.engine == "vllm" and tokens and times and length:
        wanted = times.value * length.value
        if tokens.value < 0.7 * wanted:
            yield Cause(
                "L-904",
                "derived",
                f"the printed cache size ({tokens.value:,} tokens) is divided by the number of cache groups: "
                f"{wanted:,.0f} tokens fit",
                "read the line on concurrency instead; versions before 0.22 print the smaller number",
                "vllm#40691",
            )


def _silence(report: LogReport) -> Iterator[Cause]:
    if report.ready or report.failures or len(report.phases) < 2:  # an excerpt shows no phases
        return
    phase = report.phases[-1]
    yield Cause(
        "L-905",
        "derived",
        f"nothing failed by the end of the log: it ends in the phase {phase.name!r}",
        f"wait, if it still runs{f' ({phase.saves})' if phase.saves else ''}; if it was ended from outside, allow the "
        "start more time (probes, time-outs): the phases before took what the table says",
        "modal-examples#1613, NVIDIA/NemoClaw#10940",
    )


_DERIVED: tuple[Callable[[LogReport], Iterator[Cause]], ...] = (
    _memory_while_serving,
    _memory_while_profiling,
    _silence,
    _long_block,
    _old_token_count,
)
