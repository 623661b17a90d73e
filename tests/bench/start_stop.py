"""Start and stop the miniature on llama.cpp many times, and look whether anything is left.

    python tests/bench/start_stop.py [CYCLES]

Prints times as comparisons of one sitting; fails when a process, a port or a state file is left.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time

import psutil

from nemolab.engines import llamacpp, process, state
from nemolab.engines.ports import require_free


def main(cycles: int) -> None:
    """Run the cycles in a state folder of their own."""
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    ready, stopping, port = [], [], 0
    for _ in range(cycles):
        server = llamacpp.serve(llamacpp.Options(ctx=4096, port=port))
        port = server.port
        began = time.perf_counter()
        process.stop(server)
        stopping.append(time.perf_counter() - began)
        ready.append(server.ready_s)
        require_free("127.0.0.1", port)
        engines = [p.pid for p in psutil.process_iter(["cmdline"]) if f"--port {port} " in _line(p)]
        left = {p.pid for p in psutil.Process().children(recursive=True)} - before
        assert not engines, f"engines left: {engines}"
        assert not left, f"children left: {left}"
        assert not state.every(), "a state file is left"
    print(f"{cycles} cycles on port {port}: no process, no port, no state file left")
    for name, values in (("ready", ready), ("stop", stopping)):
        print(f"{name}: median {statistics.median(values):.3f} s, slowest {max(values):.3f} s")


def _line(found: psutil.Process) -> str:
    return " ".join(found.info.get("cmdline") or []) + " "


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEMOLAB_STATE"] = folder
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
