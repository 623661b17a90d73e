"""Starts that fail, of every kind: the right cause with its fix, and nothing left running.

The real llama.cpp where it can be made to fail so; otherwise the fake engine, printing lines of real vLLM logs.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.engines import closed, fake, gone, leftovers, until
from tests.support.memory_limit import shared_limit

from nemolab.core.errors import ExitCode, NemolabError, UsageError
from nemolab.engines import llamacpp, process, state, trouble
from nemolab.engines.llamacpp import Options
from nemolab.engines.process import StartError
from nemolab.engines.registry import log_rules
from nemolab.miniature import checkpoint_folder, gguf_path

FIXTURES = Path(__file__).parents[1] / "engines" / "fixtures"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A state folder of this test's own; afterwards no process, however far it went, and no state file."""
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    for name in ("NEMOLAB_RUN", "NEMOLAB_RUNNER_PID"):
        monkeypatch.delenv(name, raising=False)
    yield
    until(lambda: not leftovers(tmp_path / "state"), 2.0)
    left = leftovers(tmp_path / "state")
    for server in state.every():
        process.stop(server)
    assert not left, f"left: {left}"


def failing(call: Callable[[], object]) -> StartError:
    with pytest.raises(StartError) as caught:
        call()
    return caught.value


def vllm_log(name: str) -> list[str]:
    """Arguments that make the fake engine print a real log."""
    lines = (FIXTURES / f"vllm-0.22.0-{name}.log").read_text().splitlines()
    return [item for line in lines for item in ("--line", line.replace("{", "{{").replace("}", "}}"))]


# --- missing weights -------------------------------------------------------------------------------------------------


@pytest.mark.live
def test_missing_weights() -> None:
    """A checkpoint folder in the GGUF file's place, and a file that is not there."""
    with pytest.raises(UsageError, match="no model there"):
        llamacpp.serve(Options(model=str(checkpoint_folder())))
    with pytest.raises(UsageError, match="no model there"):
        llamacpp.serve(Options(model="/nonexistent/m.gguf"))


@pytest.mark.live
def test_weights_that_went_away_between_the_look_and_the_load(tmp_path: Path) -> None:
    """The engine's own words for it."""
    model = tmp_path / "gone.gguf"
    model.write_bytes(gguf_path().read_bytes())
    launch = llamacpp.launch(Options(model=str(model), ctx=512))
    model.unlink()
    error = failing(lambda: process.start(launch, timeout_s=60))
    assert (error.kind, error.cause and error.cause.symptom.code) == ("exited", "L-205")
    assert any("No such file" in line for line in error.tail)


def test_missing_weights_of_a_checkpoint_folder() -> None:
    line = (
        "(EngineCore pid=9) ERROR 11-30 11:18:25 [core.py:1165] RuntimeError: Cannot find any model weights with `/m`"
    )
    launch = replace(fake("--line", line, "--exit", "1"), log=log_rules("vllm"))
    error = failing(lambda: process.start(launch))
    assert error.cause is not None
    assert error.cause.symptom.code == "L-114"
    assert "model.safetensors.index.json" in (error.fix or "")


# --- port ------------------------------------------------------------------------------------------------------------


@pytest.mark.live
def test_port_of_another_program_names_its_holder() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} is held by pid {os.getpid()}"):
            llamacpp.serve(Options(port=port))


@pytest.mark.live
def test_port_lost_between_the_look_and_the_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real engine finds it taken, and the holder keeps it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        monkeypatch.setattr(process, "require_free", lambda host, port: None)
        error = failing(lambda: process.start(llamacpp.launch(Options(ctx=512, port=port)), timeout_s=60))
        assert not closed(port)
    assert error.kind == "exited"
    assert error.cause is not None
    assert (error.cause.symptom.code, error.cause.cause) == ("L-001", "another process listens on the port")
    assert closed(port)


# --- memory held by another process ----------------------------------------------------------------------------------


def test_gpu_memory_held_by_another_process() -> None:
    launch = replace(fake(*vllm_log("leftover-process"), "--exit", "1"), log=log_rules("vllm"))
    error = failing(lambda: process.start(launch, timeout_s=60))
    assert error.cause is not None
    assert error.cause.symptom.code == "L-101"
    assert "77.54 of 139.8 GiB" in str(error)
    assert "end the leftover process" in (error.fix or "")
    assert trouble.diagnose("\n".join(error.tail), "vllm").causes[0].code in ("L-101", "L-190")


HOLD = """
import os, sys, time
with open(sys.argv[1], "w") as group:
    group.write(str(os.getpid()))
held = bytearray(b"1") * int(sys.argv[2])  # written to, so really there
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.live
def test_host_memory_held_by_another_process() -> None:
    """Both under one limit of the kernel's: alone the engine starts; beside the holder, whom the kernel is asked to
    spare, it is killed."""
    launch = llamacpp.launch(Options(ctx=65536, parallel=1, cache_ram=0))
    with shared_limit(512 << 20) as group:
        inside = (
            "/bin/sh",
            "-c",
            f'echo $$ > {group}; echo 1000 > /proc/self/oom_score_adj; exec "$0" "$@"',
            *launch.argv,
        )
        assert process.stop(process.start(replace(launch, argv=inside), timeout_s=60))
        command = [sys.executable, "-c", HOLD, str(group), str(400 << 20)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]}) as holder:
            try:
                assert holder.stdout is not None
                assert holder.stdout.readline() == "held\n"
                error = failing(lambda: process.start(replace(launch, argv=inside), timeout_s=60))
                assert holder.poll() is None
            finally:
                holder.kill()
    assert error.kind == "exited"
    assert "killed by SIGKILL (by the kernel, for lack of memory)" in str(error)
    assert "free host memory" in (error.fix or "")
    assert error.report.phases[-1].name in ("weights", "context", "warm-up")


@pytest.mark.live
def test_more_host_memory_than_there_is(tmp_path: Path) -> None:
    """The address space of the engine is limited: what `std::bad_alloc` or a failed map looks like is real."""
    launch = llamacpp.launch(Options(ctx=1_048_576, parallel=4))
    limited = ("/bin/sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"', *launch.argv)
    error = failing(lambda: process.start(replace(launch, argv=limited), timeout_s=60))
    assert error.kind == "exited"
    assert error.cause is not None
    assert error.cause.symptom.code in ("L-204", "L-205")
    assert error.fix


# --- wrong model type ------------------------------------------------------------------------------------------------


@pytest.mark.live
def test_wrong_architecture_in_the_file(tmp_path: Path) -> None:
    data = gguf_path().read_bytes()
    name = b"nemotron_h_moe" if b"nemotron_h_moe" in data[:4096] else b"nemotron_h"
    other = tmp_path / "other.gguf"
    other.write_bytes(data.replace(name, b"n" * len(name)))
    error = failing(lambda: llamacpp.serve(Options(model=str(other), ctx=512)))
    assert error.cause is not None
    assert error.cause.symptom.code == "L-202"
    assert "does not know the architecture" in str(error)


def test_wrong_architecture_in_a_checkpoint() -> None:
    line = "ERROR 11-30 11:18:25 ValueError: Model architectures ['NemotronQForCausalLM'] are not supported for now."
    launch = replace(fake("--line", line, "--exit", "1"), log=log_rules("vllm"))
    error = failing(lambda: process.start(launch))
    assert error.cause is not None
    assert error.cause.symptom.code == "L-113"


# --- killed while loading --------------------------------------------------------------------------------------------


def test_killed_while_loading() -> None:
    """An engine of several processes: no child, and no child of a child, lives on, in whatever session it is."""
    lines = ("--line", "(EngineCore pid=9) INFO 11-30 11:24:59 [gpu_model_runner.py:1] Starting to load model m...")
    launch = replace(fake(*lines, "--escape"), log=log_rules("vllm"))
    pids: list[int] = []

    def kill(at: process.Progress) -> None:
        known = state.every()
        if at.phase == "weights" and known and not pids:
            pids.append(known[0].pid)
            os.kill(known[0].pid, signal.SIGKILL)

    error = failing(lambda: process.start(launch, progress=kill, timeout_s=60))
    assert error.kind == "exited"
    assert "killed by SIGKILL (by hand or by a program" in str(error)
    assert pids
    assert until(lambda: gone(pids[0]))
    child = next(int(line.split()[1]) for line in error.tail if line.startswith("child "))
    assert until(lambda: gone(child)), "what the engine started is gone too"


MANY = 64  # threads that spin for few cores: what takes 10 ms with one takes 200 ms


class Stepped:
    """A real engine that is let run a millisecond at a time, until its log says what is waited for; then it is frozen.

    The miniature loads in a blink: only so is it caught in the act.
    """

    def __init__(self, words: str, then: signal.Signals | None = None) -> None:
        self.words = words
        self.then = then
        self.pid = 0

    def __call__(self, at: process.Progress) -> None:
        if self.pid or not (known := state.every()):
            return
        self.pid, log = known[0].pid, Path(known[0].log)
        deadline = time.monotonic() + 60
        while self.words not in log.read_text() and not gone(self.pid) and time.monotonic() < deadline:
            os.kill(self.pid, signal.SIGCONT)
            time.sleep(0.001)
            os.kill(self.pid, signal.SIGSTOP)
            time.sleep(0.001)  # for the supervisor to write what it got
        if self.then:
            os.kill(self.pid, self.then)


@pytest.mark.live
def test_the_real_engine_killed_while_loading() -> None:
    kill = Stepped("load_tensors: loading model tensors", signal.SIGKILL)
    error = failing(lambda: llamacpp.serve(Options(ctx=4096, threads=MANY), progress=kill))
    assert error.kind == "exited"
    assert "killed by SIGKILL" in str(error)
    assert error.report.phases[-1].name in ("weights", "context")
    assert gone(kill.pid)


# --- hangs while warming up ------------------------------------------------------------------------------------------


@pytest.mark.live
def test_the_real_engine_hangs_while_warming_up() -> None:
    """Stopped by SIGSTOP in its warm-up, it hears no SIGTERM either: it is given up, named, and killed."""
    hang = Stepped("warming up the model with an empty run")
    launch = replace(llamacpp.launch(Options(ctx=4096, threads=MANY)), grace_s=0.3)
    error = failing(lambda: process.start(launch, progress=hang, timeout_s=4.0))
    assert (error.kind, error.exit_code) == ("timed out", ExitCode.KILLED)
    assert "was not ready after 4 s, it was at: warm-up" in str(error)
    assert hang.pid
    assert gone(hang.pid)


def test_hangs_while_warming_up() -> None:
    text = (FIXTURES / "vllm-0.22.0-ready.log").read_text()
    lines = text[: text.index("Initial profiling/warmup run took")].splitlines()[:-1]
    arguments = [item for line in lines for item in ("--line", line.replace("{", "{{").replace("}", "}}"))]
    launch = replace(fake(*arguments), log=log_rules("vllm"))
    error = failing(lambda: process.start(launch, timeout_s=3.0))
    assert (error.kind, error.exit_code) == ("timed out", ExitCode.KILLED)
    assert "it was at: Mamba kernel warm-up and profiling" in str(error)
    assert error.report.phases[-1].name == "Mamba kernel warm-up and profiling"
    found = trouble.diagnose("\n".join(lines))
    assert found.stopped_at == "Mamba kernel warm-up and profiling"
    assert any("60 to 128 s of silence here are normal" in cause.fix for cause in found.causes)


def test_a_server_that_accepts_and_never_answers() -> None:
    """A socket that is open is no server: health must answer 200."""
    error = failing(lambda: process.start(fake("--listen", "0", "--health", "503"), timeout_s=1.5))
    assert error.kind == "timed out"


# --- a start that is given up ----------------------------------------------------------------------------------------


def test_two_servers_that_fail_at_once_leave_nothing() -> None:
    """Failures do not hold the right to start: the second is not blocked by the first."""
    errors: list[NemolabError] = []

    def attempt() -> None:
        try:
            process.start(fake("--line", "CUDA out of memory", "--exit", "1"), timeout_s=60)
        except NemolabError as error:
            errors.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 2
    assert all("the GPU has no memory left" in str(error) for error in errors)
