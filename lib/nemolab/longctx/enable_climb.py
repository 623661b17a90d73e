"""The climb: one needle at each length, exact to the token, from the shortest up; it ends at the first failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nemolab.client.attach import attach
from nemolab.client.endpoint import Endpoint
from nemolab.client.session import open_session
from nemolab.core import aio
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.engines import state, trouble
from nemolab.longctx.build import Builder
from nemolab.longctx.calibrate import calibrate
from nemolab.longctx.enable_explain import explain
from nemolab.longctx.failures import Outcome
from nemolab.longctx.request import Ask, Asker
from nemolab.longctx.rows import Row, Suite
from nemolab.longctx.suite import sample, tokenizer_path
from nemolab.longctx.tokens import Counter

Progress = Callable[[float, float | None, str | None], None]
TASK = "niah_single_2"  # one number in prose
ROOM = 512  # tokens left for the answer, enough for every task with needles
_CAUSES = 2  # of the log, that are told


@dataclass(frozen=True, slots=True)
class ClimbSpec:
    """What to climb.

    Attributes:
        base_url, model, api_key_env: the server; "" for base_url: there is none.
        tokenizer: path of its model's tokenizer.json, or `miniature`.
        rungs: prompt lengths in tokens, from the shortest.
        context: tokens that the server gives a request; prompts leave room for an answer below it.
        log: path of the server's log; "" finds it for a server of this lab.
    """

    base_url: str = ""
    model: str = ""
    api_key_env: str = ""
    tokenizer: str = "miniature"
    rungs: tuple[int, ...] = ()
    context: int = 0
    log: str = ""

    @property
    def asked(self) -> tuple[int, ...]:
        """Lengths that are asked: each rung, or as much of it as leaves room for an answer."""
        most = self.context - ROOM if self.context else max(self.rungs, default=0)
        return tuple(sorted({min(rung, most) for rung in self.rungs}))


@dataclass(frozen=True, slots=True)
class Climb:
    """How far it went.

    Attributes:
        endpoint: the server as it was recognised; None where there was none.
        rows: one request a rung, in order; the last may have failed.
        left: lengths that were not asked.
        causes: what the server's log says of a failure, likeliest first.
        log: whether a log was read.
    """

    endpoint: Endpoint | None = None
    rows: tuple[Row, ...] = ()
    left: tuple[int, ...] = ()
    causes: tuple[Finding, ...] = ()
    log: bool = False

    @property
    def failed(self) -> Row | None:
        """The rung that ended it."""
        return self.rows[-1] if self.rows and not self.rows[-1].correct else None

    @property
    def reached(self) -> tuple[int, ...]:
        """Lengths whose needle was found."""
        return tuple(row.length for row in self.rows if row.correct)

    @property
    def sentence(self) -> str:
        """The climb in words."""
        if self.endpoint is None:
            return "No server was given: nothing was asked."
        top = max(self.reached, default=0)
        if self.failed is None:
            return f"The needle was found at every length up to {top:,} tokens."
        held = f"found up to {top:,} tokens, then" if top else "never found:"
        return f"The needle was {held} {self.failed.outcome} at {self.failed.length:,}: {self.failed.why}."

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why it ended, by the request's class, then by the server's log."""
        if self.failed is None:
            return ()
        told = explain(self.failed)
        if not self.log:
            hint = "the server's log was not read: give its path in log, or run 90_troubleshoot on its machine"
            return (told, Finding("X-LOG", Severity.INFO, hint))
        nothing = Finding("X-LOG", Severity.INFO, "the server's log names no cause")
        return (told, *(self.causes or (nothing,)))


def climb(spec: ClimbSpec, progress: Progress | None = None) -> Climb:
    """Ask one needle at each length.

    Args:
        progress: called as `progress(done, total, what)`.

    Raises:
        UsageError: a length too short for a needle, no room for an answer, or a log that is not there.
        NemolabError: the server does not answer, or counts other tokens than the tokenizer.
    """
    if not spec.base_url:
        return Climb(left=spec.asked)
    if not spec.asked or spec.asked[0] < 1:
        raise UsageError(f"{spec.context:,} tokens leave no room for an answer", where="context", fix="a larger one")
    if spec.log and not Path(spec.log).expanduser().is_file():
        raise UsageError("no such log", where=spec.log, fix="the path of the server's log, or nothing")
    endpoint = attach(spec.base_url, spec.model, api_key_env=spec.api_key_env or None)
    rows = aio.run(_climb(endpoint, spec, progress or (lambda *_: None)))
    left = spec.asked[len(rows) :]
    if rows[-1].correct:
        return Climb(endpoint, tuple(rows), left)
    causes, read = _causes(endpoint, spec.log)
    return Climb(endpoint, tuple(rows), left, causes, read)


async def _climb(endpoint: Endpoint, spec: ClimbSpec, progress: Progress) -> list[Row]:
    builder = Builder(Counter(tokenizer_path(spec.tokenizer)))
    suite = Suite((TASK,), spec.asked, haystacks=1, questions=1, controls=False, cold=True)
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    rows: list[Row] = []
    async with open_session(endpoint) as session:
        overhead = await calibrate(session, endpoint, builder.counter, extra)
        asker = Asker(session, endpoint, suite, overhead, extra)
        for number, tokens in enumerate(spec.asked):
            progress(number, len(spec.asked), f"{tokens:,} tokens")
            text = sample(suite, TASK, tokens, 0)
            prompt = builder.build(text, tokens - overhead)[0]
            ask = Ask(f"climb/{tokens}", TASK, tokens, text.seed, 0, prompt, prompt.question, warm=False)
            row, _ = await asker.row(ask, recheck=True)
            rows.append(row)
            if not row.correct:
                break
    progress(len(rows), len(spec.asked), None)
    return rows


def _causes(endpoint: Endpoint, path: str) -> tuple[tuple[Finding, ...], bool]:
    """What the server's log says, and whether there is one."""
    own = next((server.log for server in state.every() if server.base_url == endpoint.base_url), "")
    if not (path or own):
        return (), False
    try:
        found = trouble.read(path=path or own)
    except NemolabError:
        return (), False
    stated = [cause for cause in found.causes if cause.evidence in ("stated", "derived")]
    return tuple(cause.as_finding() for cause in stated[:_CAUSES]), True


def rows(found: Climb, rungs: Sequence[int]) -> list[dict[str, object]]:
    """One row a rung: what was asked, what came of it."""
    table: list[dict[str, object]] = [
        {
            "length": row.length,
            "counted by the server": row.counted,
            "first token": row.ttft_s,
            "tokens/s": round(row.length / row.ttft_s) if row.ttft_s else None,
            "class": str(row.outcome),
            "why": row.why or "-",
        }
        for row in found.rows
    ]
    reason = "after a failure" if found.failed else "no server"
    return table + [_unasked(tokens, reason) for tokens in found.left or (() if table else rungs)]


def _unasked(tokens: int, why: str) -> dict[str, object]:
    nothing = dict.fromkeys(("counted by the server", "first token", "tokens/s"))
    return {"length": tokens, **nothing, "class": "not asked", "why": why}


def passed(found: Climb) -> bool:
    """Whether no rung failed; a climb without a server has none."""
    return found.failed is None and all(row.outcome is Outcome.CORRECT for row in found.rows)
