"""Several settings of one launch, priced: each arm is a start of its own, asked the same prompts, then stopped.

for one in spec.each():
    result = measure(one)       # starts the arm's server, asks, stops it; what fails is part of the result
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from nemolab.client.attach import attach
from nemolab.client.endpoint import Endpoint
from nemolab.core import aio
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.engines import gpu_memory, process, smoke_launch, trouble
from nemolab.engines.command import served_name
from nemolab.engines.logs import Phase, Quantity
from nemolab.engines.process import Server, StartError
from nemolab.longctx.arms_ask import ask
from nemolab.longctx.arms_plan import plan_arm
from nemolab.longctx.arms_rows import Asked, Questions
from nemolab.longctx.arms_spec import PriceSpec, load, smoke_spec
from nemolab.longctx.build import Builder
from nemolab.longctx.suite import tokenizer_path
from nemolab.longctx.tokens import Counter

Progress = Callable[[float, float | None, str | None], None]
State = Literal["planned", "started", "attached", "failed"]
_CAUSES = 3
_SETTLE_S = 30.0  # the next arm's start looks at free memory


@dataclass(frozen=True, slots=True)
class Measured:
    """One arm after it was tried.

    Attributes:
        state: "failed" where it did not start; a start that died later keeps its measurements, and says `failure`.
        ready_s: from the start until it answered; None for a server that ran before.
        phases, capacity: what its log said by then.
        asked: what was measured.
        failure: why it did not start or ended early, one sentence; "" when it did not.
        causes: what the log says of that, likeliest first.
    """

    arm: str
    state: State
    engine: str = ""
    engine_version: str = ""
    ready_s: float | None = None
    phases: tuple[Phase, ...] = ()
    capacity: dict[str, Quantity] = field(default_factory=dict)
    asked: Asked = field(default_factory=Asked)
    failure: str = ""
    causes: tuple[Finding, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it did not start, or ended early."""
        return self.state == "failed" or bool(self.failure)


def measure(spec: PriceSpec, progress: Progress | None = None) -> Measured:
    """Start the only arm of `spec`, ask it, stop it; for `plan` nothing is started.

    Args:
        progress: called as `progress(done, total, what)`.

    Raises:
        UsageError: nothing could be tried: no environment, no tokenizer, a length too short for a needle.
    """
    (arm,) = spec.arms
    if spec.target == "plan":
        return Measured(arm.name, "planned")
    planned = plan_arm(spec, arm)
    builder = Builder(Counter(tokenizer_path(spec.tokenizer_name)))
    questions = Questions(
        planned.lengths, planned.bounds, planned.context, spec.decode_tokens, spec.probe, spec.seed, spec.max_s,
        fresh=spec.target == "process",
    )  # fmt: skip

    def tell(done: float, what: str) -> None:
        if progress:
            progress(done, len(planned.lengths), f"{arm.name}: {what}")

    if spec.target == "attach":
        endpoint = _attached(spec)
        asked, failure = _ask(endpoint, builder, questions, tell)
        return Measured(arm.name, "attached", endpoint.engine, endpoint.engine_version, asked=asked, failure=failure)
    with _server(spec, tell) as server:
        if isinstance(server, StartError):
            return Measured(
                arm.name, "failed", planned.engine, server.report.version, phases=server.report.phases,
                capacity=server.report.capacity, failure=server.cause.cause if server.cause else _first(server.what),
                causes=tuple(server.report.findings()[:_CAUSES]),
            )  # fmt: skip
        asked, failure = _ask(server.endpoint, builder, questions, tell)
        return Measured(
            arm.name, "started", server.engine, server.report.version, server.ready_s, server.report.phases,
            server.report.capacity, asked, failure, _causes(server.log) if failure else (),
        )  # fmt: skip


def _attached(spec: PriceSpec) -> Endpoint:
    """The server that runs; of several models the one that the profile names."""
    key = spec.api_key_env or None
    try:
        return attach(spec.base_url, api_key_env=key)
    except UsageError:
        return attach(spec.base_url, served_name(load(spec, spec.arms[0])), api_key_env=key)


@contextmanager
def _server(spec: PriceSpec, tell: Callable[[float, str], None]) -> Iterator[Server | StartError]:
    """The arm's server, stopped at the end, and the GPUs' memory given back."""
    free = gpu_memory.free()
    with tempfile.TemporaryDirectory(prefix="nemolab-") as folder:
        made = smoke_launch.launch(smoke_spec(spec, spec.arms[0]), Path(folder))
        try:
            server = process.start(made, progress=lambda at: tell(0, f"start, {at.phase}, {at.elapsed_s:.0f} s"))
        except StartError as error:
            gpu_memory.settle(free, _SETTLE_S)
            yield error
            return
        try:
            yield server
        finally:
            process.stop(server)
            gpu_memory.settle(free, _SETTLE_S)


def _ask(
    endpoint: Endpoint, builder: Builder, questions: Questions, tell: Callable[[float, str], None]
) -> tuple[Asked, str]:
    try:
        asked = aio.run(ask(endpoint, builder, questions, tell))
    except UsageError:
        raise
    except NemolabError as error:  # the server does not answer, or counts other tokens
        return Asked(), error.what
    return asked, asked.failure


def _causes(log: Path) -> tuple[Finding, ...]:
    """What the server's log says of an early end."""
    try:
        found = trouble.read(path=str(log))
    except NemolabError:
        return ()
    stated = [cause for cause in found.causes if cause.evidence in ("stated", "derived")]
    return tuple(cause.as_finding() for cause in stated[:_CAUSES])


def _first(text: str) -> str:
    return text.split("\n", 1)[0]


def failures(found: Measured) -> list[Finding]:
    """Why an arm failed, as findings: one of its own, then the log's."""
    if not found.failed:
        return []
    how = "did not start" if found.state == "failed" else "ended early"
    own = Finding(
        "X-ARM", Severity.ERROR, f"{found.arm} {how}: {found.failure}",
        "read its log: 90_troubleshoot; the other arms were measured without it", where=found.arm,
    )  # fmt: skip
    return [own, *(replace(cause, where=f"{found.arm}, {cause.where or 'its log'}") for cause in found.causes)]
