"""Launch the miniature from notebook 25_serve_llamacpp and stop it, many times, and look whether anything is left.

    python tests/bench/serve_notebook.py [ROUNDS]

Each round is what a person does without the runner: `papermill 25_serve_llamacpp.ipynb out.ipynb`, a kernel and a
server of its own, every round on the same port. Afterwards no process that the round started lives (all of them carry
the round's state folder in their environment, however deep and in whichever group they are), nobody listens on the
port, and no state file is there. Times are of one sitting, for comparison.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from engines import closed, leftovers
from nemolab.core import paths

NAME = "25_serve_llamacpp"


@dataclass(frozen=True)
class Round:
    """What one launch from the notebook was, and what it left.

    Attributes:
        seconds: of the whole notebook, kernel included.
        ready_s, first_answer_s: as the notebook publishes them.
        base_url: where the server answered.
        left: everything that should not be there any more, in words.
    """

    seconds: float
    ready_s: float
    first_answer_s: float
    base_url: str
    left: tuple[str, ...]


def run(folder: Path, port: int, **parameters: object) -> Round:
    """Run the notebook once with these parameters, its state and results in `folder`, and look.

    Raises:
        AssertionError: the notebook failed, or no server answered.
    """
    environment = os.environ | {
        "NEMOLAB_ROOT": str(paths.root()),
        "NEMOLAB_STATE": str(folder / "state"),
        "NEMOLAB_STEP_FOLDER": str(folder),
        "NEMOLAB_STEP": NAME,
    }
    for name in ("NEMOLAB_RUN", "NEMOLAB_RUNNER_PID", "NEMOLAB_REPLAY"):
        environment.pop(name, None)
    source = str(paths.notebooks() / f"{NAME}.ipynb")
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "--log-level", "ERROR", "-k", "python3"]
    for name, value in {"port": port, "ctx": 4096, **parameters}.items():
        command += ["-p", name, str(value)]
    command += [source, str(folder / "out.ipynb")]
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)
    seconds = time.perf_counter() - began
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((folder / f"{NAME}.results.json").read_text())["values"]
    values = {name: entry["value"] for name, entry in document.items()}
    assert values["ready"], "the server gave no answer"
    assert values["base_url"] == f"http://127.0.0.1:{port}/v1"
    return Round(seconds, values["ready_s"], values["first_answer_s"], values["base_url"], left(folder, port))


def left(folder: Path, port: int) -> tuple[str, ...]:
    """Processes, listeners and state files of a round that are still there."""
    listens = () if closed(port) else (f"a listener on port {port}",)
    return (*leftovers(folder / "state"), *listens)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(rounds: int) -> int:
    """Run the rounds; 1 when one of them left anything."""
    port, done = free_port(), []
    for number in range(1, rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            done.append(run(Path(folder), port))
        for thing in done[-1].left:
            print(f"round {number} left {thing}")
    bad = sum(bool(each.left) for each in done)
    nothing = "no process, no port, no state file left"
    print(f"{rounds} launches from {NAME} on port {port}: {f'{bad} left something' if bad else nothing}")
    for name in ("seconds", "ready_s", "first_answer_s"):
        values = [getattr(each, name) for each in done]
        print(f"{name}: median {statistics.median(values):.2f}, slowest {max(values):.2f}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
