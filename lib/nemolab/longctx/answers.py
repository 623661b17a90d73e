"""Reading an answer: the ids it gives, whether it declines, whether it is text at all."""

from __future__ import annotations

import re

from nemolab.longctx.sample import Kind
from nemolab.longctx.tables import NAMES, PLACES

# What an id of each kind looks like, loosely enough to see a wrong one, strictly enough not to see English words.
_IDS: dict[Kind, re.Pattern[str]] = {
    "number": re.compile(r"(?<![\w-])\d[\d,]{3,}(?![\w-])"),
    "word": re.compile(r"\b[a-z]+(?:-[a-z]+)+\b", re.IGNORECASE),
    "uuid": re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4,12}){1,4}\b", re.IGNORECASE),
    "variable": re.compile(r"\b[A-Z]{5}\b"),
    "code": re.compile(r"\b[bcdfghjklmnpqrstvwxz]{6}\b"),
    "node": re.compile(r"\b[0-9a-f]{10}\b"),
    "integer": re.compile(r"\b\d+\b"),
    "name": re.compile(rf"\b(?:{'|'.join(NAMES)})\b", re.IGNORECASE),
    "place": re.compile(rf"\b(?:{'|'.join(PLACES)})\b", re.IGNORECASE),
}
_DECLINES = re.compile(
    r"does not (?:say|mention|give|contain|include|appear|provide|specify)|doesn't (?:say|mention|give|contain|provide)"
    r"|(?:is|are|was|were) not (?:mentioned|given|provided|specified|found|in the|present|listed)"
    r"|(?:no|not any) (?:information|mention|such|magic|special|value|record)|there (?:is|are) no\b|not found"
    r"|(?:can ?not|can't|could not|unable to) (?:find|determine|answer|locate|identify)|don't (?:know|see)|do not know",
    re.IGNORECASE,
)
_REPEATS = 8


def final(text: str) -> str:
    """`text` without its thinking: what follows the last `</think>`, nothing if the thinking never ended."""
    _, closed, after = text.rpartition("</think>")
    if closed:
        return after.strip()
    return text.split("<think>", 1)[0].strip()


def ids(text: str, kind: Kind) -> tuple[str, ...]:
    """Distinct ids of `kind` in `text`, in order, normalised: no thousands separators, one case."""
    found = (normal(match.group(), kind) for match in _IDS[kind].finditer(text))
    return tuple(dict.fromkeys(found))


def normal(value: str, kind: Kind) -> str:
    """One spelling of an id."""
    if kind == "number":
        return value.replace(",", "")
    return value if kind in ("variable", "code", "node", "integer") else value.lower()


def declines(text: str) -> bool:
    """Whether an answer says that the text does not give what was asked."""
    return bool(_DECLINES.search(text))


def garbage(text: str) -> bool:
    """Whether an answer is no text: one piece over and over, undecodable bytes, or nothing but marks.

    Broken states and NaN logits read so: token 0 for ever is `!!!!!!` in many vocabularies.
    """
    stripped = text.strip()
    if not stripped:
        return False
    if stripped.count("\ufffd") > 0.05 * len(stripped):
        return True
    if len(stripped) >= _REPEATS and not any(c.isalnum() for c in stripped):
        return True
    return bool(re.search(rf"(.{{1,24}}?)\1{{{_REPEATS},}}", stripped, re.DOTALL))
