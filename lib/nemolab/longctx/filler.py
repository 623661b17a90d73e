"""Filling the last tokens: a line of plain sentences for every size."""

from __future__ import annotations

from nemolab.core.errors import NemolabError
from nemolab.longctx.tokens import Counter

# Of several lengths, so that their sums reach every size; the first opens every line.
_SENTENCES = (
    "Here we go.",
    "The sky is blue.",
    "There and back again.",
    "The grass is green.",
    "The sun is yellow.",
    "It is so.",
    "The sun is yellow and the sky is blue.",
    "The grass is green, and here we go there and back again.",
    "There is the sun.",
    "Blue is the sky, and green is the grass.",
)
ANCHOR = "Here we go.\n"  # what stands before a line when it is measured: a line is not counted alone


class Filler:
    """Lines of an exact size in place, for one tokenizer.

    Attributes:
        low: smallest size from which on every size can be made.
    """

    def __init__(self, counter: Counter) -> None:
        """Measure the sentences.

        Raises:
            NemolabError: their sizes have a common divisor, so some remainders cannot be filled.
        """
        self._counter = counter
        opening = _SENTENCES[0]
        lines = [f"{opening}\n", *(f"{opening} {sentence}\n" for sentence in _SENTENCES)]
        anchor, base, *longer = counter.count_all([ANCHOR, *(ANCHOR + line for line in lines)])
        self._base = base - anchor
        sizes: dict[int, str] = {}
        for size, sentence in zip(longer, _SENTENCES, strict=True):
            sizes.setdefault(size - base, sentence)
        self._pieces = sorted(((size, text) for size, text in sizes.items() if size > 0), reverse=True)
        self._last: list[int] = [-1]  # for each size beyond the base: the piece that ends it, -2 if none does
        self._reach(4 * max(size for size, _ in self._pieces) ** 2)
        gap = max((size for size, piece in enumerate(self._last) if piece == -2), default=-1)
        if gap > len(self._last) // 2:
            raise NemolabError(
                "the filler's sentences cannot make every size in this tokenizer", where="longctx.filler"
            )
        self.low = self._base + gap + 1

    def line(self, size: int) -> str:
        """A line, its line break included, that takes `size` tokens in place.

        Raises:
            ValueError: `size` is below `low`.
        """
        if size < self.low:
            raise ValueError(f"no filler of {size} tokens, at least {self.low}")
        rest = size - self._base
        self._reach(rest)
        parts: list[str] = []
        while rest:
            piece, text = self._pieces[self._last[rest]]
            parts.append(text)
            rest -= piece
        parts.sort(key=lambda text: _mixed(text, size))
        return " ".join([_SENTENCES[0], *parts]) + "\n"

    def _reach(self, limit: int) -> None:
        for size in range(len(self._last), limit + 1):
            fits = [i for i, (piece, _) in enumerate(self._pieces) if piece <= size and self._last[size - piece] != -2]
            self._last.append(fits[size % len(fits)] if fits else -2)


def _mixed(text: str, size: int) -> tuple[int, str]:
    """A sort key that mixes the sentences without a random number: the same everywhere."""
    return (sum(text.encode()) * (size + 7)) % 11, text
