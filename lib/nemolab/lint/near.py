"""The nearest right spelling of a word. difflib is loaded only when something is wrong."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that is most like `word`, None when none is like it."""
    import difflib

    found = difflib.get_close_matches(word, list(known), 1, cutoff)
    return found[0] if found else None
