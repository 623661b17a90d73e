"""What one server is asked for a price, and what comes of it: one point a length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nemolab.client.collect import Token
from nemolab.longctx.roofline_look import Bound

How = Literal["cold", "warm", "beside another"]
Clock = Literal["engine", "client", ""]
CACHED = 0.1  # of a prompt's tokens; a template's are fewer


@dataclass(frozen=True, slots=True)
class Questions:
    """What one server is asked.

    Attributes:
        lengths: in tokens, from the shortest.
        bounds: roofline of the lengths, which says how time grows; without it, between linear and square.
        context: tokens that a request may have; 0 where nobody says.
        max_s: for all of it; 0 for no limit.
        fresh: nobody asked this server before, so its cache is empty.
    """

    lengths: tuple[int, ...]
    bounds: tuple[Bound, ...] = ()
    context: int = 0
    decode_tokens: int = 64
    probe: bool = True
    seed: int = 0
    max_s: float = 0.0
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class Said:
    """First tokens of an answer, at temperature 0."""

    how: How
    text: str
    tokens: tuple[Token, ...]

    @property
    def broken(self) -> bool:
        """Whether the engine computed no numbers: it sends no logprob where there is NaN."""
        return any(token.logprob is None for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Point:
    """One length.

    Attributes:
        counted: prompt tokens by the server.
        cold_s, again_s, beside_s: seconds to the first token: computed, asked again, computed beside another request.
        engine_s: of `cold_s`, what the engine's own clock counts as prefill; None where it does not say. The rest is
            reading, cutting into tokens, and the way there and back.
        cached: tokens that the second request took from a cache; None where nobody says.
        decode_ms: a decode step; `decode_by` says whose clock.
        found: whether the answer holds the needle.
    """

    tokens: int
    counted: int | None = None
    cold_s: float | None = None
    engine_s: float | None = None
    again_s: float | None = None
    cached: int | None = None
    decode_ms: float | None = None
    decode_by: Clock = ""
    beside_s: float | None = None
    found: bool = False
    said: tuple[Said, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether any of its answers came without numbers."""
        return any(each.broken for each in self.said)

    @property
    def warm(self) -> bool:
        """Whether the second request came from a cache: the server says so, or it took less than half the time."""
        if self.cached is not None:
            return self.cached > CACHED * self.tokens
        return self.again_s is not None and self.cold_s is not None and self.again_s < self.cold_s / 2


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that one server was asked.

    Attributes:
        overhead: tokens that the server's template adds.
        notes: what was left out and why, in sentences.
        failure: what ended it early; "" when nothing did.
    """

    overhead: int = 0
    points: tuple[Point, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""

    def at(self, tokens: int) -> Point | None:
        """The measurement at a length."""
        return next((point for point in self.points if point.tokens == tokens), None)
