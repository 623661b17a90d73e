"""What `nemolab run` costs on top of nbclient: one notebook of 100 trivial cells, paired rounds.

    python tests/bench/bench_runner.py [ROUNDS]

Goal: `nemolab run` takes at most 1.3 times what nbclient takes, as whole processes. Two more ratios are printed: of
the step alone (`seconds` in run.json) to `NotebookClient.execute()` alone, and of papermill's command line to nbclient.
A round runs the three one after the other, so that a busy machine slows all of them alike; but `nemolab run` uses the
second core (it imports papermill while it reads the runbook), so measure on a machine that has one free.
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
import sys, time, nbformat
from nbclient import NotebookClient
nb = nbformat.read(sys.argv[1], 4)
began = time.perf_counter()
NotebookClient(nb, timeout=600, kernel_name="python3").execute()
print(time.perf_counter() - began)
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
        inside: list[tuple[float, float]] = []
        for _ in range(rounds):
            execute = 0.0
            for name, argv in ways.items():
                seconds, printed = timed(argv, lab)
                times[name].append(seconds)
                execute = float(printed) if name == "nbclient" else execute
            inside.append((lab.last().steps[0].seconds or 0.0, execute))
    for name, values in times.items():
        ratios = [value / base for value, base in zip(values, times["nbclient"], strict=True)]
        print(f"{name:12} median {statistics.median(values):5.2f} s   ratio {statistics.median(ratios):4.2f}")
    step_s, execute_s = (statistics.median(values) for values in zip(*inside, strict=True))
    alone = statistics.median(a / b for a, b in inside)
    print(f"the step {step_s:.2f} s, NotebookClient.execute() {execute_s:.2f} s   ratio {alone:4.2f}")
    ratio = statistics.median(a / b for a, b in zip(times["nemolab run"], times["nbclient"], strict=True))
    print(f"nemolab run / nbclient: {ratio:.2f}, goal {GOAL}")
    return 0 if ratio <= GOAL else 1


def timed(argv: list[str], lab: TinyLab) -> tuple[float, str]:
    """Seconds that a whole process takes, and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(argv, env=lab.env, cwd=lab.root, check=True, capture_output=True, text=True)
    return time.perf_counter() - began, done.stdout


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
