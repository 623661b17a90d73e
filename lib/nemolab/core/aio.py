"""Running a coroutine from plain code, also where an event loop already runs (a notebook's kernel)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in an event loop of its own thread and return what it returns.

    An interrupt of the caller (Ctrl-C, a cell that is stopped) cancels the work and waits until it has cleaned up.
    """
    values: list[T] = []
    errors: list[BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[T]]] = []
    ended = threading.Event()

    async def main() -> None:
        task = asyncio.ensure_future(work)
        running.append((asyncio.get_running_loop(), task))
        values.append(await task)

    def body() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # handed to the caller below
            errors.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=body, name="nemolab-loop", daemon=True)
    thread.start()
    try:
        ended.wait()  # not join(): interrupted, Python 3.11 and 3.12 take the thread for ended
    except BaseException:
        while not ended.is_set():  # the interrupt may come before the loop runs
            if running:
                loop, task = running[0]
                loop.call_soon_threadsafe(task.cancel)
            ended.wait(0.1)
        raise
    if errors:
        raise errors[0]
    return values[0]
