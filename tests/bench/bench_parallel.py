"""Six notebooks side by side on two cores, against papermill's command line one after the other. Paired rounds.

    python tests/bench/bench_parallel.py [ROUNDS]

Goal: the median ratio is at most 0.5. Each notebook waits 2 s in all, as one does that asks a server.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from bench_runner import timed
from tinylab import TinyLab, notebook, step

NOTEBOOKS = 6
GOAL = 0.5
BODY = "import time\nfor _ in range(20):\n    time.sleep(0.1)"


def main(rounds: int) -> int:
    """Measure, print, and return 1 when the goal is missed."""
    names = [f"n{i}" for i in range(NOTEBOOKS)]
    serial: list[float] = []
    parallel: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        lab = TinyLab(Path(folder) / "lab")
        paths = [lab.write(name, notebook(BODY)) for name in names]
        lab.book([step(name, name, needs=[]) for name in names])
        for _ in range(rounds):
            parallel.append(timed([sys.executable, "-m", "nemolab", "run", "book", "--fresh"], lab)[0])
            began = time.perf_counter()
            for path in paths:
                out = str(Path(folder) / "out.ipynb")
                timed(
                    [sys.executable, "-m", "papermill", "--no-progress-bar", "--log-level", "ERROR", str(path), out],
                    lab,
                )
            serial.append(time.perf_counter() - began)
    ratio = statistics.median(a / b for a, b in zip(parallel, serial, strict=True))
    print(f"papermill, one by one      median {statistics.median(serial):6.2f} s")
    print(f"nemolab run, default jobs  median {statistics.median(parallel):6.2f} s, with its report")
    print(f"ratio {ratio:.2f}, goal {GOAL}")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
