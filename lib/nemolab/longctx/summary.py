"""What a suite's rows say: by length, by depth, by class, with n and intervals everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nemolab.core.intervals import Quantile, Share, quantile, wilson
from nemolab.longctx.failures import SUSPECT, TRANSPORT, Outcome
from nemolab.longctx.rows import Row
from nemolab.longctx.stats import Clustered, clustered

BINS = 5
_WARM = 0.1  # of the prompt's tokens from the cache; a template's are fewer


@dataclass(frozen=True, slots=True)
class Length:
    """One length.

    Attributes:
        right: answers to real questions, right or not. Requests without an answer, or to another prompt than the one
            built, say nothing about the model: they are in `outcomes` and in the verdict, not here.
        ruler: mean of RULER's string match, from 0 to 1; None without answers.
        cold, warm: TTFT in seconds where the prompt was computed, and where its text came from the cache.
        cached: share of prompt tokens that warm questions took from the cache; None where the server does not say.
        outcomes: real questions by class.
        controls: passed controls of each kind, among those that were answered.
        tasks: what `right` is made of.
    """

    tokens: int
    right: Clustered
    ruler: float | None
    cold: Quantile
    warm: Quantile
    cached: float | None
    outcomes: tuple[tuple[Outcome, int], ...]
    controls: tuple[tuple[str, Share], ...]
    tasks: tuple[tuple[str, Clustered], ...] = ()

    def failing(self, wanted: float) -> list[tuple[str, Clustered]]:
        """Tasks that are shown to fail, whatever all together say."""
        return [(task, right) for task, right in self.tasks if right.share.n and right.share.high < wanted]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the depth by length map: needles between two depths."""

    tokens: int
    low: float
    high: float
    share: Share


def by_length(rows: Sequence[Row]) -> tuple[Length, ...]:
    """Every length that was asked, from the shortest."""
    lengths = sorted({row.length for row in rows})
    return tuple(_length(tokens, [row for row in rows if row.length == tokens]) for tokens in lengths)


def by_depth(asked: Sequence[Row], bins: int = BINS) -> tuple[Cell, ...]:
    """The map: every length and depth, empty cells included."""
    rows = [row for row in asked if _judged(row) and row.depth is not None]
    return tuple(
        Cell(
            tokens,
            i / bins,
            (i + 1) / bins,
            _share([row for row in rows if row.length == tokens and min(int((row.depth or 0) * bins), bins - 1) == i]),
        )
        for tokens in sorted({row.length for row in rows})
        for i in range(bins)
    )


def holds_to(lengths: Sequence[Length], wanted: float) -> int:
    """Longest length up to which every one proves the `wanted` share, and no task fails it; 0 for none."""
    held = 0
    for length in lengths:
        if not length.right.share.n or length.right.share.low < wanted or length.failing(wanted):
            break
        held = length.tokens
    return held


def by_text(rows: Sequence[Row]) -> dict[str, list[list[bool]]]:
    """Right or not, of each task, grouped by text."""
    texts: dict[str, dict[int, list[bool]]] = {}
    for row in rows:
        texts.setdefault(row.task, {}).setdefault(row.seed, []).append(row.correct)
    return {task: list(groups.values()) for task, groups in texts.items()}


def was_warm(row: Row) -> bool:
    """Whether a text came from the cache: the server says so, or, where it does not, it was asked before."""
    if row.cached is None or not row.counted:
        return row.warm
    return row.cached > _WARM * row.counted


def tells(row: Row) -> bool:
    """Whether a row says something about the model: an answer to the prompt that was built."""
    return row.outcome not in TRANSPORT | SUSPECT


def unanswered(rows: Sequence[Row]) -> int:
    """Requests without an answer."""
    return sum(row.outcome in TRANSPORT for row in rows)


def suspect(rows: Sequence[Row]) -> int:
    """Answers to another prompt than the one built, or changed by a cache."""
    return sum(row.outcome in SUSPECT for row in rows)


def _length(tokens: int, rows: list[Row]) -> Length:
    real = [row for row in rows if not row.control]
    judged = [row for row in real if _judged(row)]
    tasks = by_text(judged)
    cold = [row for row in real if not was_warm(row)]
    warm = [row for row in rows if row.control != "no context" and was_warm(row)]
    known = [row for row in warm if row.cached is not None and row.counted]
    counts = Counter(row.outcome for row in real)
    kinds = sorted({row.control for row in rows if row.control})
    return Length(
        tokens,
        clustered([group for groups in tasks.values() for group in groups]),
        sum(row.ruler for row in judged) / len(judged) if judged else None,
        quantile([row.ttft_s for row in cold if row.ttft_s is not None], 0.5),
        quantile([row.ttft_s for row in warm if row.ttft_s is not None], 0.5),
        sum(r.cached or 0 for r in known) / sum(r.counted or 0 for r in known) if known else None,
        tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        tuple((kind, _share([row for row in rows if row.control == kind and tells(row)])) for kind in kinds),
        tuple((task, clustered(groups)) for task, groups in tasks.items()),
    )


def _judged(row: Row) -> bool:
    """Whether a row says something about the model, and is no control."""
    return not row.control and tells(row)


def _share(rows: Sequence[Row]) -> Share:
    return wilson(sum(row.correct for row in rows), len(rows))
