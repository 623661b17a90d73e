"""Whether the same prompt gets the same answer: under other settings, from a cache, and beside another request.

Kernels that overflow do so in silence: the answer is fluent and wrong. It shows where nothing but the way of computing
differs. Three comparisons at each length, each of the first tokens of greedy answers:

- settings: an arm's cold answer against that of the arm that most others agree with; of equals, the first.
- cache: an arm's warm answer against its own cold one.
- batch: its answer beside another request against its own cold one.

Rounding is no fault. BF16 has 8 bits of mantissa, so logits between 16 and 32 stand 0.125 apart; a difference of two
is off by up to that, on each side of a comparison, and FP8 doubles it. So `TOLERANCE` is 0.5: a first token's logprob
may move by it, and where tokens differ, each side must hold the other's token for likelier than its own by no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nemolab.client.collect import Token
from nemolab.longctx.arms import Measured
from nemolab.longctx.arms_rows import How, Said

Relation = Literal["settings", "cache", "batch"]
Verdict = Literal["same", "near tie", "moved", "differs"]
Shape = Literal["agrees", "cliff", "slope", "everywhere", "unsteady"]

TOLERANCE = 0.5  # of logprobs
_QUIET = TOLERANCE / 4  # below it, nothing announces a step
_OWN: dict[Relation, How] = {"cache": "warm", "batch": "beside another"}


@dataclass(frozen=True, slots=True)
class Compared:
    """Two answers to one prompt.

    Attributes:
        arm, against: what is compared, and with what.
        moved: difference of the first tokens' logprobs; None where it cannot be said.
        at: number of the first token that differs, from 1; None when none does.
        note: what decided it.
    """

    tokens: int
    arm: str
    relation: Relation
    against: str
    verdict: Verdict
    moved: float | None
    at: int | None
    note: str

    @property
    def serious(self) -> bool:
        """Whether rounding does not explain it."""
        return self.verdict in ("moved", "differs")


@dataclass(frozen=True, slots=True)
class Course:
    """One comparison over all lengths.

    Attributes:
        shape: a cliff is quiet up to `good` and wrong from `bad` on; a slope announces itself.
        good, bad: last length that agrees below all that do not, and first that does not.
    """

    arm: str
    relation: Relation
    against: str
    shape: Shape
    good: int | None = None
    bad: int | None = None


def compare(arms: Sequence[Measured]) -> tuple[Compared, ...]:
    """Every comparison that the answers allow, by length. Two answers without numbers say nothing of each other."""
    lengths = sorted({point.tokens for arm in arms for point in arm.asked.points})
    first = reference(arms)
    ordered = [arm for arm in arms if arm.arm == first] + [arm for arm in arms if arm.arm != first]
    return tuple(row for tokens in lengths for row in _at(ordered, tokens) if row is not None)


def reference(arms: Sequence[Measured]) -> str:
    """The arm that the others are held against: a single odd one is then the suspect, wherever it stands."""

    def agreements(arm: Measured) -> int:
        return sum(
            judge(mine, theirs)[0] in ("same", "near tie")
            for point in arm.asked.points
            for other in arms
            if (mine := _cold(arm, point.tokens)) and (theirs := _cold(other, point.tokens))
        )

    return max(arms, key=agreements).arm if arms else ""


def courses(rows: Sequence[Compared]) -> tuple[Course, ...]:
    """How each comparison goes with length."""
    keys = dict.fromkeys((row.arm, row.relation) for row in rows)
    return tuple(_course([row for row in rows if (row.arm, row.relation) == key]) for key in keys)


def agreed_to(rows: Sequence[Compared]) -> int | None:
    """Longest length up to which all agree; 0 when the shortest does not, None when nothing was compared."""
    held = 0 if rows else None
    for tokens in sorted({row.tokens for row in rows}):
        if any(row.serious for row in rows if row.tokens == tokens):
            break
        held = tokens
    return held


def offsets(pitches: Mapping[str, int], good: int, bad: int) -> list[str]:
    """Tensors whose elements or bytes pass 2^31 or 2^32 between two lengths: where a 32-bit offset would overflow.

    Args:
        pitches: name -> elements for each token; two bytes each.
    """
    found = []
    for name, pitch in pitches.items():
        for bits in (31, 32):
            for unit, size in (("elements", pitch), ("bytes", 2 * pitch)):
                at = 2**bits // size
                if good < at <= bad:
                    found.append((bits, f"2^{bits} {unit} of {name} at {at:,}"))
    return [text for _, text in sorted(found)]


def _at(arms: Sequence[Measured], tokens: int) -> Iterator[Compared | None]:
    first: tuple[str, Said] | None = None
    for arm in arms:
        cold = _cold(arm, tokens)
        if cold is None:
            continue
        if first is None:
            first = arm.arm, cold
        else:
            yield _pair(tokens, arm.arm, "settings", first[0], first[1], cold)
        for relation, how in _OWN.items():
            if other := _said(arm, tokens, how):
                yield _pair(tokens, arm.arm, relation, "its cold answer", cold, other)


def _said(arm: Measured, tokens: int, how: How) -> Said | None:
    point = arm.asked.at(tokens)
    return next((each for each in point.said if each.how == how), None) if point else None


def _cold(arm: Measured, tokens: int) -> Said | None:
    return _said(arm, tokens, "cold")


def _pair(tokens: int, arm: str, relation: Relation, against: str, first: Said, second: Said) -> Compared | None:
    if first.broken and second.broken:
        return None
    verdict, moved, at, note = judge(first, second)
    return Compared(tokens, arm, relation, against, verdict, moved, at, note)


def judge(first: Said, second: Said) -> tuple[Verdict, float | None, int | None, str]:
    """Verdict on two answers, how far the first token's logprob moved, where they part, and why."""
    a, b = first.tokens, second.tokens
    if not (a and b):
        same = first.text == second.text
        return ("same" if same else "differs"), None, None, "no logprobs: the texts were compared"
    if first.broken or second.broken:
        return "differs", None, 1, "a logprob is no number, as where NaN was computed"
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x.text != y.text), None)
    if at is None and len(a) != len(b):
        return "differs", _moved(a[0], b[0]), min(len(a), len(b)) + 1, "one answer ends where the other goes on"
    moved = _moved(a[0], b[0])
    if at is not None:
        gap = max(_gap(a[at], b[at].text), _gap(b[at], a[at].text))
        if gap > TOLERANCE:
            apart = f"{gap:.2g} apart" if gap < float("inf") else f"not among the likeliest {len(a[at].top)}"
            return "differs", moved, at + 1, f"{a[at].text!r} against {b[at].text!r}, {apart}"
        return "near tie", moved, at + 1, f"{a[at].text!r} or {b[at].text!r}, {gap:.2g} apart"
    if moved is not None and moved > TOLERANCE:
        return "moved", moved, None, "the same tokens, held for much more or less likely"
    return "same", moved, None, ""


def _moved(first: Token, second: Token) -> float | None:
    if first.text != second.text or first.logprob is None or second.logprob is None:
        return None
    return abs(first.logprob - second.logprob)


def _gap(token: Token, other: str) -> float:
    """How much likelier a place's own token is than another one; infinite where that is not among the likeliest."""
    known = dict(token.top).get(other)
    if known is None or token.logprob is None:
        return float("inf")
    return max(0.0, token.logprob - known)


def _course(rows: Sequence[Compared]) -> Course:
    rows = sorted(rows, key=lambda row: row.tokens)
    first = rows[0]
    bad = [row for row in rows if row.serious]
    good = [row for row in rows if not row.serious]
    if not bad:
        return Course(first.arm, first.relation, first.against, "agrees")
    if not good:
        return Course(first.arm, first.relation, first.against, "everywhere", None, bad[0].tokens)
    if good[-1].tokens > bad[0].tokens:
        below = [row.tokens for row in good if row.tokens < bad[0].tokens]
        return Course(first.arm, first.relation, first.against, "unsteady", max(below, default=None), bad[0].tokens)
    announced = any((row.moved or 0.0) > _QUIET or row.verdict == "near tie" for row in good[-1:])
    shape: Shape = "slope" if announced else "cliff"
    return Course(first.arm, first.relation, first.against, shape, good[-1].tokens, bad[0].tokens)
