"""Running a suite: texts one after another, every question of a text in a row, one request at a time unless told.

The order lets the server's prefix cache serve all questions after the first, and each row says whether it could. There
are no retries: a request that failed is a result.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args
from zlib import crc32

from nemolab.client.endpoint import Endpoint
from nemolab.client.session import open_session
from nemolab.core import aio
from nemolab.core.errors import UsageError
from nemolab.longctx import ids, stats, tasks
from nemolab.longctx.build import Builder, Prompt
from nemolab.longctx.calibrate import calibrate
from nemolab.longctx.failures import Outcome
from nemolab.longctx.journal import Journal
from nemolab.longctx.request import Ask, Asker
from nemolab.longctx.rows import Row, Send, Suite, SuiteResult
from nemolab.longctx.sample import Question, Sample
from nemolab.longctx.summary import by_text
from nemolab.longctx.tokens import Counter

Progress = Callable[[int, int, str], None]  # requests done, at most, what is running


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
        return aio.run(_Run(suite, builder, progress or (lambda *_: None), book).all(endpoint))


def check(suite: Suite) -> None:
    """Refuse a suite that cannot be asked.

    Raises:
        UsageError: an unknown task, no length, or not a positive number of texts and questions.
    """
    for name in suite.tasks:
        tasks.task(name)
    if not suite.tasks or not suite.lengths or min(suite.haystacks, suite.questions, suite.together) < 1:
        raise UsageError("a suite needs tasks, lengths, texts and questions", where="suite")
    if suite.send not in get_args(Send):
        raise UsageError(f"cannot send {suite.send!r}", where="send", fix=" or ".join(get_args(Send)))


def tokenizer_path(name: str) -> Path:
    """The tokenizer file that `name` means: a path, or the miniature's."""
    if name != "miniature":
        return Path(name).expanduser()
    from nemolab.miniature import checkpoint_folder

    return checkpoint_folder() / "tokenizer.json"


def text_seed(base: int, task: str, length: int, number: int) -> int:
    """One seed a text: the same for every server, so that two can be compared prompt by prompt."""
    return crc32(f"{base}/{task}/{length}/{number}".encode())


def texts(suite: Suite, task: str) -> int:
    """Texts of one length: a task that asks one question a text gets as many as others ask questions."""
    return suite.haystacks * (suite.questions if tasks.task(task).needles else 1)


def sample(suite: Suite, task: str, length: int, number: int) -> Sample:
    """Text number `number` of a suite: its needles spread over the depths, other depths in the next text."""
    seed = text_seed(suite.seed, task, length, number)
    count = tasks.task(task).needles or suite.questions
    depths = [(i + (number + 0.5) / texts(suite, task)) / count for i in range(count)]
    return tasks.make(task, seed, depths, suite.questions, tuple(map(Path, suite.documents)))


class _Run:
    def __init__(self, suite: Suite, builder: Builder, progress: Progress, journal: Journal) -> None:
        self._suite, self._builder, self._progress, self._journal = suite, builder, progress, journal
        self._rows: list[Row] = []
        self._notes: list[str] = []
        self._build_s = 0.0
        self._overhead = 0
        self._rechecks = 0
        self._total = len(suite.tasks) * len(suite.lengths) * suite.haystacks * suite.questions
        if suite.controls:
            self._total *= 2

    async def all(self, endpoint: Endpoint) -> SuiteResult:
        """Every length, from the shortest, until the server refuses or dies."""
        suite, counter = self._suite, self._builder.counter
        extra = dict(suite.extra_body)
        if suite.thinking is not None:
            extra["chat_template_kwargs"] = {"enable_thinking": suite.thinking}
        async with open_session(endpoint) as session:
            self._overhead = await calibrate(session, endpoint, counter, extra)
            sends_ids = suite.send == "ids"
            frame = await ids.learn(session, endpoint, counter, extra, self._overhead) if sends_ids else None
            asker = Asker(session, endpoint, suite, self._overhead, extra, frame)
            for length in sorted(suite.lengths):
                if not await self._length(asker, length):
                    break
        return SuiteResult(suite, self._overhead, counter.name, tuple(self._rows), self._build_s, tuple(self._notes))

    async def _length(self, asker: Asker, length: int) -> bool:
        """All texts of one length; false when nothing after it makes sense."""
        suite = self._suite
        started, last, self._rechecks = time.monotonic(), 0.0, suite.recheck
        rows: list[Row] = []
        for number, task in self._turns():
            begun = time.monotonic()
            if rows and suite.budget_s is not None and begun - started + last > suite.budget_s:
                self._notes.append(f"{length:,} tokens: its {suite.budget_s:g} s were used after {len(rows)} requests.")
                break
            async for row in self._text(asker, task, length, number):
                rows.append(row)
                self._rows.append(row)
                self._progress(len(self._rows), max(self._total, len(self._rows)), f"{task} {length:,}")
                if row.outcome is Outcome.ENGINE_DIED:
                    self._notes.append(f"The engine died at {length:,} tokens; nothing was asked after {row.id}.")
                    return False
            last = time.monotonic() - begun
            asked = [row for row in rows if not row.control]
            if asked and all(row.outcome is Outcome.REFUSED_LENGTH for row in asked):
                self._notes.append(f"The server refuses {length:,} tokens: {asked[0].why}")
                return False
            if suite.stop_at is not None and stats.settled(by_text(asked), suite.stop_at):
                self._notes.append(f"{length:,} tokens: settled after {len(asked)} answers.")
                break
        return True

    def _turns(self) -> Iterator[tuple[int, str]]:
        """Tasks in turn, so that a budget cuts none of them off."""
        counts = {task: texts(self._suite, task) for task in self._suite.tasks}
        return ((n, task) for n in range(max(counts.values())) for task, count in counts.items() if n < count)

    async def _text(self, asker: Asker, task: str, length: int, number: int) -> AsyncIterator[Row]:
        """Rows of one text: those in the journal as they are, the others asked."""
        text = sample(self._suite, task, length, number)
        wanted = list(self._wanted(f"{task}/{length}/{text.seed}", text.questions))
        known = {name: row for name, _, _ in wanted if (row := self._journal.row(name))}
        for row in known.values():
            yield row
        missing = [each for each in wanted if each[0] not in known]
        prompts = self._build(text, length) if missing else ()
        asks = []
        for place, (name, index, bare) in enumerate(missing):
            prompt = self._bare(prompts[index]) if bare else prompts[index]
            warm = place > 0 and not bare and not self._suite.cold
            asks.append(Ask(name, task, length, text.seed, index, prompt, prompt.question, warm))
        for at in range(0, len(asks), self._suite.together):
            batch = asks[at : at + self._suite.together]
            for row, again in await asyncio.gather(*(asker.row(ask, recheck=self._rechecks > 0) for ask in batch)):
                self._rechecks -= again
                self._journal.add(row)
                yield row

    def _wanted(self, stem: str, questions: tuple[Question, ...]) -> Iterator[tuple[str, int, bool]]:
        """Id, number, and whether without the text: all questions on the text first, then the controls without it."""
        for index, question in enumerate(questions):
            if self._suite.controls or not question.control:
                yield f"{stem}/{index}", index, False
        for index, question in enumerate(questions):
            if self._suite.controls and not question.control:
                yield f"{stem}/{index}/no context", index, True

    def _build(self, text: Sample, length: int) -> tuple[Prompt, ...]:
        cpu = time.process_time()
        prompts = self._builder.build(text, length, self._overhead)
        self._build_s += time.process_time() - cpu
        return prompts

    def _bare(self, prompt: Prompt) -> Prompt:
        """The question alone."""
        question = replace(prompt.question, control="no context", depth=None)
        digest = hashlib.sha256(question.text.encode()).hexdigest()
        return Prompt(question.text, self._builder.counter.count(question.text), (), question, 0, digest)
