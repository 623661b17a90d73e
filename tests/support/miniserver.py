"""The real engine with the real miniature, started once for a module of tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nemolab.client import Endpoint
from nemolab.engines import llamacpp, process


@contextmanager
def miniature(state: Path, ctx: int) -> Iterator[Endpoint]:
    """Serve the miniature, with a state folder of its own, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEMOLAB_STATE", str(state))
        for name in ("NEMOLAB_RUN", "NEMOLAB_RUNNER_PID"):
            patch.delenv(name, raising=False)
        server = llamacpp.serve(llamacpp.Options(ctx=ctx, parallel=2))
        try:
            yield server.endpoint
        finally:
            for each in process.running():
                process.stop(each)
