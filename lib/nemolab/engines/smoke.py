"""The stack check of `29_engine_smoke`: the miniature through an engine, from its flags to a clean stop.

What a stack can get wrong shows with 5M parameters as well as with 550 billion: a flag that this version does not
know, a parser that swallows the answer, a stream that differs from the whole answer, counts that do not add up, a
process that does not end. It is proven in a minute, before hundreds of gigabytes are moved.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from nemolab.client.attach import attach
from nemolab.client.endpoint import Endpoint
from nemolab.client.outcome import ProbeReport
from nemolab.client.probe import probe
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.core.intervals import Share, wilson
from nemolab.engines import process, state
from nemolab.engines.gpu_memory import RETURNED_MIB, settle
from nemolab.engines.gpu_memory import free as _gpu_free  # the name that `run` has in committed recordings
from nemolab.engines.identity import marked
from nemolab.engines.logs import LogReport
from nemolab.engines.ports import require_free
from nemolab.engines.process import Server, StartError
from nemolab.engines.smoke_launch import SmokeSpec, launch

Progress = Callable[[float, float | None, str | None], None]
_STAGES = ("start", "probe", "needles", "stop")
_REQUEST_S = 180.0  # the first requests of a GPU engine wait for kernels to be compiled
_ENDING_S = 10.0


@dataclass(frozen=True, slots=True)
class Needle:
    """One question for a hidden value."""

    length: int
    prompt_tokens: int
    thinking: bool
    found: bool
    said: str


@dataclass(frozen=True, slots=True)
class Stop:
    """How it ended.

    Attributes:
        process_gone, port_closed: whether nothing is left.
        gpu_mib_missing: GPU memory that is not free again, MiB; None without a GPU that can be asked.
        left: processes that the server started and that still run, wherever they went.
    """

    seconds: float
    process_gone: bool
    port_closed: bool
    gpu_mib_missing: int | None = None
    left: int = 0

    @property
    def clean(self) -> bool:
        """Nothing is left."""
        return self.process_gone and self.port_closed and not self.left


@dataclass(frozen=True, slots=True)
class SmokeReport:
    """What came of it. What was not reached is None or empty.

    Attributes:
        failure: why it did not start, as findings; empty when it did.
        log: what the log said when it was ready, or by the end.
        problem: why asking ended early, "" if it did not.
    """

    engine: str
    version: str = ""
    started: bool = False
    attached: bool = False
    ready_s: float | None = None
    failure: tuple[Finding, ...] = ()
    log: LogReport | None = None
    probe: ProbeReport | None = None
    needles: tuple[Needle, ...] = ()
    problem: str = ""
    stop: Stop | None = None

    @property
    def found(self) -> Share:
        """Needles found, with their interval."""
        return wilson(sum(needle.found for needle in self.needles), len(self.needles))

    @property
    def passed(self) -> bool:
        """Everything that was to be shown was shown."""
        return (
            self.started
            and not self.problem
            and self.probe is not None
            and self.probe.passed
            and bool(self.needles)
            and all(needle.found for needle in self.needles)
            and (self.attached or (self.stop is not None and self.stop.clean))
        )

    def findings(self) -> list[Finding]:
        """What failed and what warns, gravest first by stage."""
        found = list(self.failure)
        if self.problem:
            found.append(Finding("S-101", Severity.ERROR, self.problem, "read the server's log: 90_troubleshoot"))
        found += self.probe.findings() if self.probe else []
        if missed := [needle for needle in self.needles if not needle.found]:
            found.append(
                Finding(
                    "S-102",
                    Severity.ERROR,
                    f"{len(missed)} of {len(self.needles)} needles were not found, the first at "
                    f"{missed[0].prompt_tokens:,} tokens: {missed[0].said[:120]!r}",
                    "the miniature finds them all in llama.cpp: look at kernels, cache modes and types of this engine",
                    "vllm#52308, vllm#34865",
                )
            )
        found += _left(self.stop) if self.stop else []
        return found + (self.log.findings() if self.log and self.started else [])


def run(spec: SmokeSpec, progress: Progress | None = None) -> SmokeReport:
    """Start, probe, ask for needles, stop. Whatever fails, the server is stopped and the report says why.

    Raises:
        UsageError: nothing could be tried: no profile, no environment, a port that is taken.
    """

    def tell(stage: str, note: str = "") -> None:
        if progress:
            progress(_STAGES.index(stage), len(_STAGES), f"{stage}: {note}" if note else stage)

    if spec.base_url:
        endpoint = attach(spec.base_url, spec.served_model)
        return _asked(spec, endpoint, SmokeReport(endpoint.engine or spec.engine, started=True, attached=True), tell)
    free = _gpu_free()
    with tempfile.TemporaryDirectory() as folder, _server(spec, Path(folder), tell) as server:
        if isinstance(server, StartError):
            return SmokeReport(spec.engine, server.report.version, failure=_failure(server), log=server.report)
        begun = SmokeReport(spec.engine, server.report.version, started=True, ready_s=server.ready_s, log=server.report)
        report = _asked(spec, server.endpoint, begun, tell)
        tell("stop")
        return _with_stop(report, server, free)


@contextmanager
def _server(spec: SmokeSpec, folder: Path, tell: Callable[[str, str], None]) -> Iterator[Server | StartError]:
    try:
        server = process.start(launch(spec, folder), progress=lambda at: tell("start", at.phase))
    except StartError as error:
        yield error
        return
    try:
        yield server
    finally:
        process.stop(server)


def _asked(spec: SmokeSpec, endpoint: Endpoint, report: SmokeReport, tell: Callable[[str, str], None]) -> SmokeReport:
    probed: ProbeReport | None = None
    needles: tuple[Needle, ...] = ()
    problem = ""
    try:
        tell("probe", "")
        probed = probe(endpoint, timeout_s=_REQUEST_S, progress=lambda done, total, title: tell("probe", title or ""))
        tell("needles", "")
        needles = tuple(_needles(spec, endpoint, tell))
    except NemolabError as error:
        problem = error.what
    version = report.version or (probed.endpoint.engine_version if probed else "")
    return replace(report, version=version, probe=probed, needles=needles, problem=problem)


def _needles(spec: SmokeSpec, endpoint: Endpoint, tell: Callable[[str, str], None]) -> Iterator[Needle]:
    from nemolab.miniature.evaluate import Examination, examine

    for length in spec.lengths:
        asked = Examination((length,), (1,), present=spec.needles, absent=0, short=0, seed=29)
        tell("needles", f"{length:,} tokens")
        for outcome in examine(endpoint.base_url, endpoint.model, asked, timeout_s=_REQUEST_S):
            yield Needle(length, outcome.prompt_tokens, outcome.thinking, outcome.right, outcome.answer)


def _with_stop(report: SmokeReport, server: Server, free: dict[int, int]) -> SmokeReport:
    began = time.monotonic()
    process.stop(server)
    seconds = round(time.monotonic() - began, 3)
    still = any(known.id == server.id and known.running for known in state.every())
    left = _left_running(server.id)
    return replace(report, stop=Stop(seconds, not still, _closed(server.port), settle(free, _ENDING_S), left))


def _left_running(server_id: str) -> int:
    """Processes that the server left; on a busy machine those that were ended take a moment to go."""
    deadline = time.monotonic() + _ENDING_S
    while (found := len(marked(state.mark(server_id)))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _closed(port: int) -> bool:
    try:
        require_free("127.0.0.1", port)
    except UsageError:
        return False
    return True


def _failure(error: StartError) -> tuple[Finding, ...]:
    if error.cause:
        return tuple(error.report.findings())
    return (Finding("S-100", Severity.ERROR, error.what, error.fix or "read the whole log", where=error.kind),)


def _left(stop: Stop) -> list[Finding]:
    missing = stop.gpu_mib_missing or 0
    short = [f"{missing:,} MiB of a GPU are not free again"] if missing >= RETURNED_MIB else []
    parts = [
        *(["its process still runs"] if not stop.process_gone else []),
        *(["its port is still open"] if not stop.port_closed else []),
        *([f"{stop.left} of its processes still run"] if stop.left else []),
    ]
    if not parts:  # memory belongs to processes: without one of ours it is another's
        return [
            Finding(
                "S-104",
                Severity.WARNING,
                f"{each}, though nothing of this server runs: another process took them meanwhile",
                "nvidia-smi names it; measure memory on a GPU that nobody else uses",
            )
            for each in short
        ]
    parts += short
    return [
        Finding(
            "S-103",
            Severity.ERROR,
            f"something is left after the stop: {', '.join(parts)}",
            "`nemolab servers` and nvidia-smi name what holds it",
            "measured: a leftover vLLM process kept 62 GiB of an H200",
        )
    ]
