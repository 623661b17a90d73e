"""How late the client's own event loop was: the error bar of everything that it times."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from weakref import WeakKeyDictionary

TICK_S = 0.01


class Lag:
    """Largest lateness of the event loop, in seconds, seen while this was watched."""

    __slots__ = ("max_s",)

    def __init__(self) -> None:
        self.max_s = 0.0


class _Ticker:
    """One timer a loop, shared by all who watch it; runs only while someone does."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watchers: set[Lag] = set()
        self._handle: asyncio.TimerHandle | None = None
        self._due = 0.0

    def add(self, lag: Lag) -> None:
        self._watchers.add(lag)
        if self._handle is None:
            self._arm()

    def remove(self, lag: Lag) -> None:
        if self._due and self._handle is not None:
            lag.max_s = max(lag.max_s, time.perf_counter() - self._due)  # a tick that is overdue right now
        self._watchers.discard(lag)
        if not self._watchers and self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        self._due = time.perf_counter() + TICK_S
        self._handle = self._loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        late = time.perf_counter() - self._due
        for lag in self._watchers:
            if late > lag.max_s:
                lag.max_s = late
        self._arm()


_TICKERS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ticker] = WeakKeyDictionary()


@contextlib.contextmanager
def watch() -> Iterator[Lag]:
    """Watch the running loop; the `Lag` holds the largest lateness when the block ends."""
    loop = asyncio.get_running_loop()
    ticker = _TICKERS.get(loop)
    if ticker is None:
        ticker = _TICKERS[loop] = _Ticker(loop)
    lag = Lag()
    ticker.add(lag)
    try:
        yield lag
    finally:
        ticker.remove(lag)
