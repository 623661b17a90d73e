"""What `nemolab run` costs on top of nbclient: one notebook of 100 trivial cells, whole processes, paired rounds.

    python tests/bench/bench_runner.py [ROUNDS]

Goal: the median ratio of `nemolab run` to nbclient is at most 1.3. papermill's command line is measured beside it.
A round runs the three one after the other, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tinylab import TinyLab, notebook, step

CELLS = 100
GOAL = 1.3
NBCLIENT = """
import sys, nbformat
from nbclient import NotebookClient
nb = nbformat.read(sys.argv[1], 4)
NotebookClient(nb, timeout=600, kernel_name="python3").execute()
nbformat.write(nb, sys.argv[2])
"""


def main(rounds: int) -> int:
    """Measure, print, and return 1 when the goal is missed."""
    with tempfile.TemporaryDirectory() as folder:
        lab = TinyLab(Path(folder) / "lab")
        path = lab.write("cells", notebook(*(f"x = {n}" for n in range(CELLS))))
        lab.book([step("cells", "cells")])
        out = str(Path(folder) / "out.ipynb")
        ways = {
            "nbclient": [sys.executable, "-c", NBCLIENT, str(path), out],
            "nemolab run": [sys.executable, "-m", "nemolab", "run", "book", "--fresh"],
            "papermill": [
                sys.executable,
                "-m",
                "papermill",
                "--no-progress-bar",
                "--log-level",
                "ERROR",
                str(path),
                out,
            ],
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, argv in ways.items():
                times[name].append(timed(argv, lab))
        inside = [s for run in lab.folders() for s in [lab.read(run).steps[0].seconds] if s]
    for name, values in times.items():
        ratios = [value / base for value, base in zip(values, times["nbclient"], strict=True)]
        print(f"{name:12} median {statistics.median(values):5.2f} s   ratio {statistics.median(ratios):4.2f}")
    print(f"{'the step':12} median {statistics.median(inside):5.2f} s   (as recorded in run.json)")
    ratio = statistics.median(a / b for a, b in zip(times["nemolab run"], times["nbclient"], strict=True))
    print(f"nemolab run / nbclient: {ratio:.2f}, goal {GOAL}")
    return 0 if ratio <= GOAL else 1


def timed(argv: list[str], lab: TinyLab) -> float:
    """Seconds that a whole process takes."""
    began = time.perf_counter()
    subprocess.run(argv, env=lab.env, cwd=lab.root, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
