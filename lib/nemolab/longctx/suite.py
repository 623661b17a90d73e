"""Running a suite: texts one after another, every question of a text in a row, one request at a time.

The order lets the server's prefix cache serve all questions after the first, and each row says whether it could. There
are no retries: a request that failed is a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nemolab.client.endpoint import Endpoint
from nemolab.client.session import open_session
from nemolab.client.stream import StreamResult, stream_chat
from nemolab.core import aio
from nemolab.core.errors import UsageError
from nemolab.longctx import stats, tasks
from nemolab.longctx.build import Builder, Prompt
from nemolab.longctx.calibrate import calibrate
from nemolab.longctx.failures import SUSPECT, TRANSPORT, Outcome, Seen, classify
from nemolab.longctx.journal import Journal
from nemolab.longctx.rows import Row, Suite, SuiteResult
from nemolab.longctx.sample import Question
from nemolab.longctx.scoring import score
from nemolab.longctx.timeouts import Prefill
from nemolab.longctx.tokens import Counter

if TYPE_CHECKING:
    import aiohttp

Progress = Callable[[int, int, str], None]  # requests done, at most, what is running
_COLD = {"cache_prompt": False}  # llama.cpp; vLLM and SGLang take a salt, set below


def run_suite(
    endpoint: Endpoint,
    suite: Suite,
    tokenizer: str,
    *,
    progress: Progress | None = None,
    journal: Path | None = None,
) -> SuiteResult:
    """Ask everything the suite asks.

    Args:
        tokenizer: path of the served model's `tokenizer.json`, or `miniature`.
        progress: called after every request, from the suite's own thread.
        journal: file that takes each row as it comes; rows already in it are not asked again.

    Raises:
        UsageError: an unknown task, a length too short for it, or a journal of another suite.
        NemolabError: the server does not answer, or counts other tokens than the tokenizer.
    """
    check(suite)
    builder = Builder(Counter(tokenizer_path(tokenizer)))
    with Journal.open(journal, endpoint, suite, builder.counter.sha256) as book:
        return aio.run(_Run(endpoint, suite, builder, progress or (lambda *_: None), book).all())


@dataclass(frozen=True, slots=True)
class _Ask:
    """One prompt to send."""

    id: str
    task: str
    length: int
    seed: int
    number: int
    prompt: Prompt
    question: Question
    warm: bool

    @property
    def context(self) -> str:
        return "" if self.question.control == "no context" else self.prompt.text


class _Run:
    def __init__(
        self, endpoint: Endpoint, suite: Suite, builder: Builder, progress: Progress, journal: Journal
    ) -> None:
        self._endpoint, self._suite, self._builder = endpoint, suite, builder
        self._progress, self._journal = progress, journal
        self._rows: list[Row] = []
        self._notes: list[str] = []
        self._prefill = Prefill()
        self._build_s = 0.0
        self._overhead = 0
        self._total = len(suite.tasks) * len(suite.lengths) * suite.haystacks * suite.questions
        self._extra: dict[str, Any] = dict(suite.extra_body)
        if suite.thinking is not None:
            self._extra["chat_template_kwargs"] = {"enable_thinking": suite.thinking}

    async def all(self) -> SuiteResult:
        """Every length, from the shortest, until the server dies."""
        async with open_session(self._endpoint) as session:
            self._overhead = (await calibrate(session, self._endpoint, self._builder.counter, self._extra)).overhead
            for length in sorted(self._suite.lengths):
                if not await self._length(session, length):
                    break
        notes = tuple(self._notes)
        return SuiteResult(
            self._suite, self._overhead, self._builder.counter.name, tuple(self._rows), self._build_s, notes
        )

    async def _length(self, session: aiohttp.ClientSession, length: int) -> bool:
        """All texts of one length; false when nothing after it makes sense."""
        started, rechecks = time.monotonic(), self._suite.recheck
        rows: list[Row] = []
        for number, name in self._texts():
            if self._spent(length, started, rows):
                self._notes.append(
                    f"{length:,} tokens: its {self._suite.budget_s:g} s were used after {len(rows)} answers."
                )
                break
            for ask in self._asks(name, length, number):
                row = self._journal.row(ask.id)
                if row is None:
                    row = await self._ask(session, ask, recheck=rechecks > 0)
                    rechecks -= bool(row.why) and not row.correct and row.outcome not in TRANSPORT
                    self._journal.add(row)
                rows.append(row)
                self._rows.append(row)
                self._progress(len(self._rows), max(self._total, len(self._rows)), f"{name} {length:,}")
                if row.outcome is Outcome.ENGINE_DIED:
                    self._notes.append(f"The engine died at {length:,} tokens; nothing was asked after {row.id}.")
                    return False
            asked = [row for row in rows if not row.control]
            if asked and all(row.outcome is Outcome.REFUSED_LENGTH for row in asked):
                self._notes.append(f"The server refuses {length:,} tokens: {asked[0].why}")
                return False
            if self._decided(asked):
                self._notes.append(f"{length:,} tokens: settled after {len(asked)} answers.")
                break
        return True

    def _texts(self) -> Iterator[tuple[int, str]]:
        """Tasks in turn, so that a budget cuts none of them off."""
        return ((number, name) for number in range(self._suite.haystacks) for name in self._suite.tasks)

    def _spent(self, length: int, started: float, rows: list[Row]) -> bool:
        if self._suite.budget_s is None or not rows:
            return False
        # The next text costs about what the last one did.
        used = time.monotonic() - started
        last = sum(row.total_s for row in rows if row.seed == rows[-1].seed and row.task == rows[-1].task)
        return used + last > self._suite.budget_s

    def _decided(self, rows: list[Row]) -> bool:
        if self._suite.stop_at is None:
            return False
        right = sum(row.correct for row in rows)
        return stats.decided(right, len(rows), self._suite.stop_at) is not None

    def _asks(self, name: str, length: int, number: int) -> Iterator[_Ask]:
        """Every prompt on one text: its questions, then each of them without the text."""
        suite = self._suite
        seed = _seed(suite.seed, name, length, number)
        depths = [((i + (number + 0.5) / suite.haystacks) / suite.questions) for i in range(suite.questions)]
        cpu = time.process_time()
        sample = tasks.make(name, seed, depths, suite.questions, tuple(map(Path, suite.documents)))
        prompts = self._builder.build(sample, length - self._overhead)
        self._build_s += time.process_time() - cpu
        warm = False
        for index, prompt in enumerate(prompts):
            question = prompt.question
            if question.control and not suite.controls:
                continue
            stem = f"{name}/{length}/{seed}/{index}"
            yield _Ask(stem, name, length, seed, index, prompt, question, warm)
            warm = True
        if suite.controls:
            for index, prompt in enumerate(prompts):
                if not prompt.question.control:
                    bare = replace(prompt.question, control="no context", depth=None)
                    stem = f"{name}/{length}/{seed}/{index}/no context"
                    yield _Ask(stem, name, length, seed, index, self._bare(prompt), bare, False)

    def _bare(self, prompt: Prompt) -> Prompt:
        """The question alone."""
        import hashlib

        text = prompt.question.text
        digest = hashlib.sha256(text.encode()).hexdigest()
        return Prompt(text, self._builder.counter.count(text), (), prompt.question, 0, digest)

    async def _ask(self, session: aiohttp.ClientSession, ask: _Ask, recheck: bool) -> Row:
        got = await self._send(session, ask, {})
        if got.ok and got.ttft_s and not ask.warm:
            self._prefill.saw(ask.prompt.tokens, got.ttft_s)
        seen = Seen(
            got,
            ask.question,
            score(ask.question, got.content) if got.ok else None,
            ask.prompt.tokens + self._overhead,
            ask.context,
        )
        if not got.ok:
            seen = replace(seen, alive=await _alive(session, self._endpoint))
        verdict = classify(seen)
        doubtful = not ask.question.control and verdict.outcome not in TRANSPORT | SUSPECT | {Outcome.CORRECT}
        if recheck and doubtful:
            again = await self._send(session, ask, _COLD | {"cache_salt": ask.id})
            cold = again.ok and score(ask.question, again.content).correct
            verdict = classify(replace(seen, cold=cold))
        return _row(ask, seen, verdict.outcome, verdict.why)

    async def _send(self, session: aiohttp.ClientSession, ask: _Ask, extra: dict[str, Any]) -> StreamResult:
        body = {
            "messages": [{"role": "user", "content": ask.prompt.text}],
            "max_tokens": ask.question.max_tokens + self._suite.thinking_tokens,
            "temperature": 0,
        }
        limit = self._prefill.limit_s(ask.prompt.tokens)
        return await stream_chat(
            session, self._endpoint, body | self._extra | extra, stall_s=self._suite.stall_s, total_s=limit
        )


def _seed(base: int, task: str, length: int, number: int) -> int:
    """One seed a text: the same for every server, so that two can be compared prompt by prompt."""
    from zlib import crc32

    return crc32(f"{base}/{task}/{length}/{number}".encode())


async def _alive(session: aiohttp.ClientSession, endpoint: Endpoint) -> bool:
    """Whether anything answers at the server's address."""
    import aiohttp

    try:
        timeout = aiohttp.ClientTimeout(total=10)
        async with session.get(endpoint.root + "/health", headers=endpoint.headers(), timeout=timeout) as response:
            return response.status < 500 or response.status == 503
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def _row(ask: _Ask, seen: Seen, outcome: Outcome, why: str) -> Row:
    got, found = seen.result, seen.score
    place = _place(ask)
    return Row(
        id=ask.id,
        task=ask.task,
        length=ask.length,
        seed=ask.seed,
        question=ask.number,
        control=ask.question.control,
        built=seen.built,
        counted=got.prompt_tokens,
        cached=got.cached_tokens,
        warm=ask.warm,
        depth=place[0],
        offset=place[1],
        sha256=ask.prompt.sha256,
        expected=ask.question.expected,
        given=found.given if found else (),
        answer=got.content[:500],
        outcome=outcome,
        why=why[:300],
        correct=outcome is Outcome.CORRECT,
        precision=found.precision if found else 0.0,
        recall=found.recall if found else 0.0,
        ruler=found.ruler if found else 0.0,
        finish_reason=got.finish_reason,
        ttft_s=got.ttft_s,
        total_s=got.total_s,
        thought_chars=len(got.reasoning),
        completion_tokens=got.completion_tokens,
        lag_s=got.lag_s,
    )


def _place(ask: _Ask) -> tuple[float | None, int | None]:
    """Depth and offset of the needle that the question asks for."""
    if ask.question.depth is None:
        return None, None
    near = min(ask.prompt.needles, key=lambda needle: abs(needle.wanted - (ask.question.depth or 0.0)))
    return near.depth, near.offset


def tokenizer_path(name: str) -> Path:
    """The tokenizer file that `name` means: a path, or the miniature's."""
    if name != "miniature":
        return Path(name).expanduser()
    from nemolab.miniature import checkpoint_folder

    return checkpoint_folder() / "tokenizer.json"


def check(suite: Suite) -> None:
    """Refuse a suite that cannot be asked.

    Raises:
        UsageError: an unknown task, no length, or not a positive number of texts and questions.
    """
    for name in suite.tasks:
        tasks.task(name)
    if not suite.tasks or not suite.lengths or suite.haystacks < 1 or suite.questions < 1:
        raise UsageError("a suite needs tasks, lengths, texts and questions", where="suite")
