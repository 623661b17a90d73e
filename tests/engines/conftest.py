"""A state folder of its own for every test, and the certainty that nothing was left running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nemolab.engines import process, state


@pytest.fixture(autouse=True)
def lab_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The state folder of this test; servers that the test forgot are stopped and make it fail."""
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    for name in ("NEMOLAB_RUN", "NEMOLAB_RUNNER_PID"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path / "state"
    left = process.running()
    for server in state.every():
        process.stop(server)
    assert not left, f"left running: {[server.describe() for server in left]}"
