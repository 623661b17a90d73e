"""What a suite will prove and what it will cost, before it is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nemolab.core.errors import UsageError
from nemolab.core.intervals import proven, settles
from nemolab.longctx.stats import RHO, pairs_needed

Seconds = Callable[[int], float]  # prefill time of a prompt of so many tokens
_DISCORDANT = 0.10  # share of pairs that differ between two good servers; longctx planning value


@dataclass(frozen=True, slots=True)
class Price:
    """One length of a plan.

    Attributes:
        answers: asked in all; `worth` independent ones, at the correlation `RHO` within a text.
        proves: share that they prove, one-sided at 95 %, if all are right.
        detects: smallest difference between two servers on the same prompts that shows with 80 % power, when 10 % of
            pairs differ; None when even that share would not.
        needed: independent right answers that would prove the threshold.
        prefill_s: of one prompt.
        seconds: of all prompts, where the prefix cache serves every question but a text's first; `seconds_uncached`
            where it serves none, as with hybrids whose cache is off.
        gpu_hours, money: of `seconds` and `seconds_uncached`; None without GPUs or rate.
    """

    tokens: int
    texts: int
    answers: int
    worth: float
    proves: float
    detects: float | None
    needed: int
    prefill_s: float | None
    seconds: float | None
    seconds_uncached: float | None
    gpu_hours: tuple[float, float] | None
    money: tuple[float, float] | None


def plan(
    lengths: Sequence[int],
    texts: int,
    questions: int,
    threshold: float,
    seconds: Seconds | None = None,
    gpus: int = 0,
    rate: float | None = None,
) -> tuple[Price, ...]:
    """A price for each length.

    Args:
        texts: of each length, all tasks together.
        threshold: share of right answers to prove.
        seconds: prefill time by length.
        gpus: that the server holds meanwhile.
        rate: money for one GPU and hour.
    """
    return tuple(_price(tokens, texts, questions, threshold, seconds, gpus, rate) for tokens in lengths)


def from_measured(tokens: int, took_s: float, attention_share: float = 0.0) -> Seconds:
    """Prefill time from one measured prompt.

    Args:
        attention_share: share of its time that grows with the square of the length; at 0 the estimate is linear.

    Raises:
        UsageError: not a positive time.
    """
    if tokens < 1 or not 0 < took_s < math.inf or not 0 <= attention_share <= 1:
        raise UsageError(f"not a measured prefill: {tokens} tokens in {took_s} s", where="prefill")

    def seconds(length: int) -> float:
        ratio = length / tokens
        return took_s * ((1 - attention_share) * ratio + attention_share * ratio * ratio)

    return seconds


def _price(
    tokens: int,
    texts: int,
    questions: int,
    threshold: float,
    seconds: Seconds | None,
    gpus: int,
    rate: float | None,
) -> Price:
    answers = texts * questions
    worth = texts * questions / (1 + (questions - 1) * RHO)
    one = seconds(tokens) if seconds else None
    times = (one * texts, one * answers) if one is not None else None
    hours = (times[0] * gpus / 3600, times[1] * gpus / 3600) if times and gpus else None
    return Price(
        tokens=tokens,
        texts=texts,
        answers=answers,
        worth=worth,
        proves=proven(max(1, int(worth))),
        detects=_detectable(worth),
        needed=settles(threshold),
        prefill_s=one,
        seconds=times[0] if times else None,
        seconds_uncached=times[1] if times else None,
        gpu_hours=hours,
        money=(hours[0] * rate, hours[1] * rate) if hours and rate is not None else None,
    )


def _detectable(pairs: float) -> float | None:
    """Smallest difference that so many pairs show, to a tenth of a point."""
    steps = (step / 1000 for step in range(1, int(_DISCORDANT * 1000) + 1))
    return next((step for step in steps if pairs_needed(step, _DISCORDANT) <= pairs), None)
