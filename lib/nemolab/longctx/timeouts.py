"""How long a prompt may take: from what shorter ones took."""

from __future__ import annotations

_FACTOR = 4.0  # of the estimate
_FLOOR_S = 60.0
_SLOWEST = 50.0  # tokens a second, where nothing is known yet


def limit(estimate_s: float) -> float:
    """When to give up a prompt whose first token is expected after `estimate_s`."""
    return _FLOOR_S + _FACTOR * estimate_s


class Prefill:
    """Learns a server's prefill time from cold requests and limits the next one.

    The estimate grows with the square of the length, which is attention alone and so never too short for a model that
    also has linear layers.
    """

    def __init__(self) -> None:
        self._seen: tuple[int, float] | None = None

    def saw(self, tokens: int, ttft_s: float) -> None:
        """A cold prompt of `tokens` had its first token after `ttft_s`."""
        if self._seen is None or tokens >= self._seen[0]:
            self._seen = (tokens, ttft_s)

    def estimate_s(self, tokens: int) -> float | None:
        """Longest plausible time to the first token; None where nothing is known."""
        if self._seen is None:
            return None
        known, seconds = self._seen
        return seconds * max(tokens / known, (tokens / known) ** 2)

    def limit_s(self, tokens: int) -> float:
        """When to give a request up."""
        estimate = self.estimate_s(tokens)
        return limit(estimate) if estimate is not None else _FLOOR_S + tokens / _SLOWEST
