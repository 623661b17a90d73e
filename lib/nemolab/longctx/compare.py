"""Two servers, precisions or cache modes on the same prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nemolab.core.errors import UsageError
from nemolab.longctx.rows import Row
from nemolab.longctx.stats import Paired, paired


@dataclass(frozen=True, slots=True)
class Pair:
    """One length, or all of them together (`tokens` None)."""

    tokens: int | None
    result: Paired


def pair_rows(first: Sequence[Row], second: Sequence[Row]) -> tuple[Pair, ...]:
    """McNemar's test for each length and for all, on questions that both were asked.

    A request without an answer is not right: for who chooses between two servers it is a loss like another.

    Raises:
        UsageError: no question in common, or the same id with another text.
    """
    other = {row.id: row for row in second if not row.control}
    both = [(row, other[row.id]) for row in first if not row.control and row.id in other]
    if not both:
        raise UsageError("no question in common", where="compare", fix="ask both servers with the same seed and tasks")
    for a, b in both:
        if a.sha256 != b.sha256:
            raise UsageError(
                "the same question has two texts", where=a.id, fix="the templates differ in length; pass the same"
            )
    lengths = sorted({a.length for a, _ in both})
    pairs = [Pair(n, _paired([(a, b) for a, b in both if a.length == n])) for n in lengths]
    return (*pairs, Pair(None, _paired(both))) if len(lengths) > 1 else tuple(pairs)


def sentence(pair: Pair, names: tuple[str, str] = ("first", "second")) -> str:
    """One pair in words; never a difference without its n and interval."""
    r = pair.result
    where = f"{pair.tokens:,} tokens" if pair.tokens is not None else "All lengths"
    gap = f"{100 * r.difference:+.1f} points [{100 * r.low:+.1f}, {100 * r.high:+.1f}]"
    verdict = "differ" if r.p < 0.05 else "no difference shown"
    return (
        f"{where}: {names[1]} {gap} against {names[0]}, {verdict} (p = {r.p:.3f}, n = {r.n}; only {names[0]} right "
        f"{r.only_first}, only {names[1]} right {r.only_second})."
    )


def _paired(pairs: Sequence[tuple[Row, Row]]) -> Paired:
    return paired([a.correct for a, _ in pairs], [b.correct for _, b in pairs])
