"""Prompts of a wanted length that no prefix cache has seen before."""

from __future__ import annotations

import random
from dataclasses import dataclass

# Plain words, one or two tokens each in any vocabulary: nothing here depends on a model.
_TEXT = """
river stone garden window paper market winter summer silver copper yellow simple narrow gentle quiet steady bridge
forest letter engine harbor island kitchen ladder mirror orange pocket rabbit season tunnel valley wagon carry follow
gather listen notice observe prepare return wander answer bright common distant early formal golden honest inner joint
keen large mild near open plain rapid sharp tall useful warm young above before during
"""
_WORDS = tuple(_TEXT.split())


@dataclass(frozen=True, slots=True)
class Ruler:
    """Words to tokens for one server: `tokens = fixed + per_word * words`, from two answered requests."""

    fixed: float
    per_word: float

    def words(self, tokens: int) -> int:
        """Words whose prompt has about `tokens` tokens, template included."""
        return max(1, round((tokens - self.fixed) / self.per_word))


def ruler(words: tuple[int, int], tokens: tuple[int | None, int | None]) -> Ruler:
    """The ruler through two measured prompts; a guess of 1.3 tokens a word where a server reports no usage."""
    if tokens[0] is None or tokens[1] is None or tokens[1] <= tokens[0]:
        return Ruler(10.0, 1.3)
    per_word = (tokens[1] - tokens[0]) / (words[1] - words[0])
    return Ruler(tokens[0] - per_word * words[0], per_word)


def prompt(words: int, seed: str, shared: int = 0) -> str:
    """`words` words in short sentences: the first `shared` the same for every seed, the rest drawn from `seed`.

    What is not shared starts with seed-drawn words, so that two prompts part at once and share no cache block.
    """
    shared = min(shared, words)
    return _sentences(_draw("shared", shared) + _draw(seed, words - shared))


def _draw(seed: str, count: int) -> list[str]:
    return random.Random(seed).choices(_WORDS, k=count)


def _sentences(words: list[str]) -> str:
    lines = (words[at : at + 12] for at in range(0, len(words), 12))
    return "\n".join(" ".join(line).capitalize() + "." for line in lines)
