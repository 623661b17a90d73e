"""Statistics of right and wrong: clusters, pairs, looking while it runs, and what a plan can prove."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nemolab.core.intervals import Share, percent, wilson

RHO = 0.1  # correlation of answers on one haystack where the data cannot tell; longctx planning value


@dataclass(frozen=True, slots=True)
class Clustered:
    """A share from several answers a haystack.

    Attributes:
        share: right answers in all, with an interval for the effective number.
        haystacks: number of clusters.
        effective: independent answers that these are worth.
        rho: correlation within a haystack that was used; estimated, or assumed where nothing varies.
        assumed: whether `rho` was assumed.
    """

    share: Share
    haystacks: int
    effective: float
    rho: float
    assumed: bool

    def __str__(self) -> str:
        text = str(self.share)
        texts = "1 text" if self.haystacks == 1 else f"{self.haystacks} texts"
        return f"{text} on {texts}" if self.share.n > self.haystacks else text


def clustered(groups: Sequence[Sequence[bool]]) -> Clustered:
    """Share of right answers over haystacks with several questions each.

    Answers on one haystack share its luck. Their correlation is estimated by analysis of variance (Donner 1986), never
    below zero; the Wilson interval is that of the effective number of answers. Where all answers are equal, or there is
    one haystack, nothing can be estimated and `RHO` is assumed.
    """
    groups = [group for group in groups if group]
    n, k = sum(map(len, groups)), len(groups)
    right = sum(map(sum, groups))
    if not n:
        return Clustered(wilson(0, 0), 0, 0.0, 0.0, False)
    single = all(len(group) == 1 for group in groups)
    rho = 0.0 if single else _icc(groups)
    assumed = rho is None
    rho = RHO if rho is None else rho
    # Unequal clusters: the design effect with the size that weights by answers (Kish).
    size = sum(len(group) ** 2 for group in groups) / n
    effective = n / (1 + (size - 1) * rho)
    bounds = _wilson_real(right / n, effective)
    return Clustered(Share(right, n, *bounds), k, effective, rho, assumed and not single)


def _icc(groups: Sequence[Sequence[bool]]) -> float | None:
    n, k = sum(map(len, groups)), len(groups)
    mean = sum(map(sum, groups)) / n
    if k < 2 or n == k or mean in (0.0, 1.0):
        return None
    between = sum(len(g) * (sum(g) / len(g) - mean) ** 2 for g in groups) / (k - 1)
    within = sum(sum((x - sum(g) / len(g)) ** 2 for x in g) for g in groups) / (n - k)
    size = (n - sum(len(g) ** 2 for g in groups) / n) / (k - 1)
    total = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / total)) if total else None


def _wilson_real(p: float, n: float) -> tuple[float, float]:
    """Wilson's interval for a share `p` of a number of trials that need not be whole."""
    z2 = 1.959963984540054**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return (0.0 if p == 0 else max(0.0, centre - half)), (1.0 if p == 1 else min(1.0, centre + half))


@dataclass(frozen=True, slots=True)
class Paired:
    """Two servers, precisions or cache modes on the same prompts (McNemar, exact).

    Attributes:
        both, only_first, only_second, neither: counts of right answers.
        p: two-sided probability of a split at least as uneven if the two were equal.
        difference: share right of the second minus the first, with its 95 % interval (`low`, `high`; Bonett and
            Price 2012, which stays honest where no pair differs).
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float
    difference: float
    low: float
    high: float

    @property
    def n(self) -> int:
        """Pairs."""
        return self.both + self.only_first + self.only_second + self.neither


def paired(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Compare two rows of answers to the same questions.

    Raises:
        ValueError: they are not equally long, or empty.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} answers are no pairs")
    n = len(first)
    both = sum(a and b for a, b in zip(first, second, strict=True))
    b = sum(a and not c for a, c in zip(first, second, strict=True))
    c = sum(d and not a for a, d in zip(first, second, strict=True))
    discordant = b + c
    tail = sum(math.comb(discordant, i) for i in range(min(b, c) + 1)) / 2**discordant
    difference = (c - b) / n
    p, q = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = 1.959963984540054 * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return Paired(both, b, c, n - both - discordant, min(1.0, 2 * tail), difference, q - p - half, q - p + half)


def sequence(right: int, n: int, confidence: float = 0.95) -> Share:
    """An interval that may be looked at after every answer: it covers the truth at all times together.

    The confidence sequence of the uniform mixture (Robbins 1970): all shares p whose likelihood is at least
    `1 - confidence` of the mean likelihood. Wilson's interval, looked at again and again, would be left by the truth
    in far more than 5 % of runs.
    """
    if not n:
        return Share(0, 0, 0.0, 1.0)
    mean = math.lgamma(right + 1) + math.lgamma(n - right + 1) - math.lgamma(n + 2)
    floor = mean + math.log(1 - confidence)

    def inside(p: float) -> bool:
        if p in (0.0, 1.0):
            return right == (n if p else 0)
        return right * math.log(p) + (n - right) * math.log(1 - p) >= floor

    best = right / n
    return Share(right, n, _edge(inside, best, 0.0), _edge(inside, best, 1.0))


def _edge(inside: Callable[[float], bool], at: float, end: float) -> float:
    if inside(end):
        return end
    good, bad = at, end
    for _ in range(50):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if inside(middle) else (good, middle)
    return bad


def decided(right: int, n: int, threshold: float) -> bool | None:
    """Whether the share is above (True) or below (False) `threshold` for sure; None while it is open."""
    seen = sequence(right, n)
    if seen.low >= threshold:
        return True
    return False if seen.high < threshold else None


def settled(tasks: Mapping[str, Sequence[Sequence[bool]]], threshold: float) -> bool:
    """Whether more answers would change nothing: all together are above or below `threshold`, or a task is below it.

    Args:
        tasks: answers of each task, grouped by the text that they are about.
    """
    every = [group for groups in tasks.values() for group in groups]
    return _sure(every, threshold) is not None or any(_sure(g, threshold) is False for g in tasks.values())


def _sure(groups: Sequence[Sequence[bool]], threshold: float) -> bool | None:
    """`decided`, if the interval for the effective number says the same: answers that go by texts, or by tasks, are
    worth less than their number."""
    answers = [answer for group in groups for answer in group]
    said, share = decided(sum(answers), len(answers), threshold), clustered(groups).share
    if said is None or not (share.low >= threshold if said else share.high < threshold):
        return None
    return said


def pairs_needed(difference: float, discordant: float, power: float = 0.8) -> int:
    """Pairs that show a `difference` of shares with `power`, when a share `discordant` of pairs differ (Connor 1987).

    Raises:
        ValueError: a difference larger than the discordance.
    """
    from statistics import NormalDist

    if not 0 < abs(difference) <= discordant <= 1:
        raise ValueError(f"a difference of {difference} cannot come from {discordant} discordant pairs")
    a, b = NormalDist().inv_cdf(0.975), NormalDist().inv_cdf(power)
    spread = math.sqrt(discordant - difference**2)
    return math.ceil(((a * math.sqrt(discordant) + b * spread) / difference) ** 2)


def claim(length: int, found: Clustered, wanted: float) -> str:
    """One length in words: `holds to 8,192 at 100 % [83.9, 100], n = 20`, or unproven, or fails."""
    if found.share.n and found.share.low >= wanted:
        return f"holds at {length:,}: {found}"
    if found.share.n and found.share.high < wanted:
        return f"fails at {length:,}: {found}"
    why = f"{found} does not settle {percent(wanted)}" if found.share.n else "no answer that counts"
    return f"at {length:,} unproven: {why}"
