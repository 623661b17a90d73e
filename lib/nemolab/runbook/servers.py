"""The servers of a run, as the engines package keeps them."""

from __future__ import annotations

import time

_LOOK_EVERY = 1.0  # seconds
_PATIENCE = 15.0  # seconds that a step has to notice by itself that its server died


class Servers:
    """Which server died under a step, and an end to all."""

    def __init__(self, run_id: str) -> None:
        self._run, self._looked = run_id, 0.0
        self._used: dict[str, set[str]] = {}  # step -> servers that ran when it began
        self._died: dict[str, tuple[str, float]] = {}  # step -> sentence, noticed when

    def begin(self, step_id: str) -> None:
        """The step begins, and may use what runs now. A server that it starts itself is its own affair."""
        from nemolab.engines import state

        self._died.pop(step_id, None)
        self._used[step_id] = {server.id for server in state.every() if server.run == self._run and server.running}

    def watch(self, steps: list[str]) -> list[str]:
        """Look now and then; sentences on servers that died under one of the running `steps` since the last look."""
        if time.monotonic() - self._looked < _LOOK_EVERY:
            return []
        self._looked = time.monotonic()
        before = set(self._died)
        return list(dict.fromkeys(said for step in steps if (said := self.died_under(step)) and step not in before))

    def died_under(self, step_id: str) -> str:
        """Why a server that the step may have used has died, "" if none has."""
        from nemolab.engines import state

        if step_id not in self._died and self._used.get(step_id):
            for server in state.every():
                if server.id in self._used[step_id] and server.run == self._run and server.ended:
                    said = f"server {server.id} (pid {server.pid}) died: {server.ended.reason}"
                    self._died[step_id] = (said, time.monotonic())
        return self._died.get(step_id, ("", 0.0))[0]

    def overdue(self) -> list[str]:
        """Steps that go on although their server died a while ago."""
        now = time.monotonic()
        return [step for step, (_, since) in self._died.items() if now - since > _PATIENCE]

    def stop(self) -> None:
        """Stop every server of the run."""
        from nemolab.engines import process

        process.stop_owned(self._run)
