"""What needles hide in: endless lines, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, repeat
from pathlib import Path
from random import Random

from nemolab.core.errors import UsageError
from nemolab.longctx.sample import Sample
from nemolab.miniature import wording
from nemolab.miniature.wording import Kind

Source = Callable[[], Iterator[str]]
Make = Callable[[int, Sequence[float], int], Sample]  # seed, depths, questions
Draw = Callable[[], str]
_BULK = 1024
_POOL = 2048  # distinct lines of prose a haystack is drawn from: distinct enough, and counted once each


def noise() -> Iterator[str]:
    """RULER's repeated line."""
    return repeat(" ".join(wording.NOISE))


def prose(seed: int) -> Source:
    """Varied plain sentences of no meaning, three a line."""

    def lines() -> Iterator[str]:
        rng = Random(f"{seed} prose")
        pool = [" ".join(wording.prose(rng) for _ in range(3)) for _ in range(_POOL)]
        while True:
            yield from rng.choices(pool, k=_POOL)

    return lines


def needles(kind: Kind, seed: int, taken: frozenset[str]) -> Source:
    """Nothing but needles of `kind`, with keys that are not in `taken`: RULER's hardest haystack."""

    # Tens of thousands of lines make a long prompt: values are drawn in bulk, the sentence is taken apart once.
    before, between, after = wording.needle(kind, "\0", "\1").replace("\1", "\0").split("\0")

    def lines() -> Iterator[str]:
        rng = Random(f"{seed} needles")
        number = 0
        while True:
            keys = _uuids(rng) if kind == "uuid" else _pairs(rng)
            values = _uuids(rng) if kind == "uuid" else _pairs(rng) if kind == "word" else _numbers(rng)
            for key, value in zip(keys, values, strict=True):
                if kind != "uuid":  # a number makes the key unique; there are only some 20,000 pairs of words
                    number += 1
                    key = f"{key}-{number}"
                if key not in taken:
                    yield f"{before}{key}{between}{value}{after}"

    return lines


def _pairs(rng: Random) -> list[str]:
    adjectives, nouns = rng.choices(wording.ADJECTIVES, k=_BULK), rng.choices(wording.NOUNS, k=_BULK)
    return [f"{a}-{b}" for a, b in zip(adjectives, nouns, strict=True)]


def _numbers(rng: Random) -> list[str]:
    draw = rng.random
    return [str(1_000_000 + int(draw() * 9_000_000)) for _ in range(_BULK)]


def _uuids(rng: Random) -> list[str]:
    """Version-4 UUIDs, spelled as `uuid.UUID` spells them."""
    bits = rng.getrandbits
    digits = [f"{bits(128):032x}" for _ in range(_BULK)]
    return [f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{'89ab'[int(h[16], 16) & 3]}{h[17:20]}-{h[20:]}" for h in digits]


def document(paths: tuple[Path, ...]) -> Source:
    """The user's own text, sentence by sentence, from .txt, .md and .pdf, read again from the start when it ends.

    Raises:
        UsageError: a file that cannot be read as text, or nothing in them.
    """
    lines = [line for path in paths for line in _sentences(_text(path))]
    if not lines:
        raise UsageError("no text in them", where=", ".join(map(str, paths)), fix="a scan has no text: run OCR on it")
    return lambda: cycle(lines)


def _text(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in (".txt", ".md", ".pdf"):
        raise UsageError("not a .txt, .md or .pdf file", where=str(path), fix="convert it to text first")
    try:
        if kind != ".pdf":
            return path.read_text(encoding="utf-8")
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError

        try:
            return "\n".join(page.extract_text() for page in PdfReader(path).pages)
        except PyPdfError as error:
            raise UsageError(f"not a PDF that can be read: {error}", where=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read: {error}", where=str(path), fix="give a text file in UTF-8, or a PDF") from None


def _sentences(text: str) -> list[str]:
    """One sentence or line each, at most about 400 characters, without empty lines."""
    import re

    out: list[str] = []
    for paragraph in text.splitlines():
        rest = " ".join(paragraph.split())
        for sentence in re.split(r"(?<=[.!?])\s+", rest) if rest else ():
            while len(sentence) > 400 and (cut := sentence.rfind(" ", 0, 400)) > 0:
                out.append(sentence[:cut])
                sentence = sentence[cut + 1 :]
            out.append(sentence)
    return out
