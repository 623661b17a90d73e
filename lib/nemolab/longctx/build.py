"""Building a prompt that has exactly as many tokens as asked for, with every needle at its depth.

Every line is measured once and in place (behind another line, with its own line break), because a piece counted alone
can differ from the same piece in a text. Integers then decide how many lines there are and where needles go; a filler
line takes what is left; one count of the whole text proves it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from nemolab.core.errors import NemolabError, UsageError
from nemolab.longctx.filler import ANCHOR, Filler
from nemolab.longctx.sample import Question, Sample
from nemolab.longctx.tokens import Counter

_PASSES = 4
_SLACK = 8  # tokens kept free for a correction, should the parts not quite add up


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a needle is: `depth` is the token depth it got, `offset` its first token, from the start of the text."""

    line: str
    wanted: float
    depth: float
    offset: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of exact length.

    Attributes:
        text: all of it.
        tokens: of the text; the server's template comes on top.
        needles: where they are, in the order of the text.
        question: what it asks, its answer settled.
        lines: of haystack.
        sha256: of the text.
    """

    text: str
    tokens: int
    needles: tuple[Placed, ...]
    question: Question
    lines: int
    sha256: str


class Builder:
    """Builds prompts with one tokenizer; what it has measured it keeps."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.filler = Filler(counter)
        self._anchor = counter.count(ANCHOR)

    def build(self, sample: Sample, tokens: int, overhead: int = 0) -> tuple[Prompt, ...]:
        """One prompt for each of the sample's questions, each of exactly `tokens` tokens with a template of `overhead`.

        They share everything up to the last lines, so that a prefix cache can serve all after the first. The whole
        text of the first is counted; in the others only the last lines differ, and those are measured in place.

        Raises:
            UsageError: the needles and questions alone need more.
            NemolabError: the tokenizer does not count in any way that adds up.
        """
        whole, tokens = tokens, tokens - overhead
        self.counter.expect(tokens)
        tails = [question.text for question in sample.questions]
        tail_sizes = self._sizes(tails, end="")
        needle_sizes = self._sizes([needle.line for needle in sample.needles])
        head = f"{sample.head}\n" if sample.head else ""
        head_size = self.counter.count(head)
        room = tokens - head_size - sum(needle_sizes) - max(tail_sizes) - self.filler.low - _SLACK
        if room < 0:
            raise UsageError(
                f"{whole} tokens are too few for {sample.task}" + (f" in a template of {overhead}" if overhead else ""),
                where="tokens",
                fix=f"at least {whole - room}",
            )
        body = self._fill(sample.haystack(), room)
        common, placed = self._place(sample, body, head, head_size, needle_sizes)
        left = tokens - head_size - sum(needle_sizes) - body.used
        for _ in range(_PASSES):
            texts = [
                common + self.filler.line(left - size) + tail for tail, size in zip(tails, tail_sizes, strict=True)
            ]
            off = self.counter.count(texts[0]) - tokens
            if not off:
                return self._prompts(sample, tokens, texts, placed, body.lines)
            left -= off
            if left - max(tail_sizes) < self.filler.low:
                break
        raise NemolabError(
            f"the parts of a text of {tokens} tokens do not add up: off by {off}",
            where=sample.task,
            fix="the tokenizer joins tokens across lines; report its pre-tokenizer",
        )

    def _prompts(
        self, sample: Sample, tokens: int, texts: Sequence[str], placed: tuple[Placed, ...], lines: Sequence[str]
    ) -> tuple[Prompt, ...]:
        if not self.counter.agrees(texts[0][-20_000:]):
            raise NemolabError(
                f"{self.counter.name} counts this text other than tokenizers", where=sample.task, fix="--fast off"
            )
        questions = sample.settle(lines) if sample.settle else sample.questions
        return tuple(
            Prompt(text, tokens, placed, question, len(lines), hashlib.sha256(text.encode()).hexdigest())
            for text, question in zip(texts, questions, strict=True)
        )

    def _sizes(self, lines: Sequence[str], end: str = "\n") -> list[int]:
        """Tokens of each line in place; equal lines are counted once."""
        distinct = list(dict.fromkeys(lines))
        counts = self.counter.count_all([f"{ANCHOR}{line}{end}" for line in distinct])
        size = dict(zip(distinct, counts, strict=True))
        return [size[line] - self._anchor for line in lines]

    def _fill(self, source: Iterator[str], room: int) -> _Body:
        """As many lines as fit into `room` tokens."""
        lines: list[str] = []
        sizes: list[int] = []
        used = 0
        while used <= room:
            mean = used / len(lines) if lines else 0
            more = list(islice(source, int((room - used) / mean * 1.02) + 8 if mean else 64))
            if not more:
                raise UsageError(f"the haystack ends after {used} of {room} tokens", where="haystack", fix="add text")
            new = self._sizes(more)
            lines += more
            sizes += new
            used += sum(new)
        ends = list(accumulate(sizes))
        keep = bisect_left(ends, room + 1)
        return _Body(lines[:keep], [0, *ends[:keep]])

    def _place(
        self, sample: Sample, body: _Body, head: str, head_size: int, sizes: Sequence[int]
    ) -> tuple[str, tuple[Placed, ...]]:
        """The text up to the filler, and where the needles are in it."""
        whole = body.used + sum(sizes)
        parts, placed = [head], list[Placed]()
        before, at = 0, 0
        for index in sorted(range(len(sizes)), key=lambda i: sample.needles[i].depth):
            needle = sample.needles[index]
            line = max(at, body.nearest(needle.depth * whole - before))
            parts += (f"{text}\n" for text in body.lines[at:line])
            parts.append(f"{needle.line}\n")
            start = body.ends[line] + before
            placed.append(Placed(needle.line, needle.depth, start / whole if whole else 0.0, head_size + start))
            before, at = before + sizes[index], line
        parts += (f"{text}\n" for text in body.lines[at:])
        return "".join(parts), tuple(placed)


@dataclass(frozen=True, slots=True)
class _Body:
    """Lines of haystack and the number of tokens before each of them and after the last."""

    lines: list[str]
    ends: list[int]

    @property
    def used(self) -> int:
        return self.ends[-1]

    def nearest(self, tokens: float) -> int:
        """The line whose start lies nearest to `tokens`."""
        at = min(bisect_left(self.ends, tokens), len(self.ends) - 1)
        return at - 1 if at and tokens - self.ends[at - 1] < self.ends[at] - tokens else at
