"""Starts that fail, of every kind: the right cause with its fix, and nothing left running.

The real llama.cpp where it can be made to fail so; otherwise the fake engine, printing lines of real vLLM logs.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.engines import fake, gone, until

from nemolab.core.errors import ExitCode, NemolabError, UsageError
from nemolab.engines import llamacpp, process, state, trouble
from nemolab.engines.llamacpp import Options
from nemolab.engines.process import StartError
from nemolab.engines.registry import log_rules
from nemolab.miniature import checkpoint_folder, gguf_path

FIXTURES = Path(__file__).parents[1] / "engines" / "fixtures"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    for name in ("NEMOLAB_RUN", "NEMOLAB_RUNNER_PID"):
        monkeypatch.delenv(name, raising=False)
    yield
    left = state.every()
    for server in left:
        process.stop(server)
    assert not left, f"left: {[server.describe() for server in left]}"


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


# --- memory held by another process ----------------------------------------------------------------------------------


def test_gpu_memory_held_by_another_process() -> None:
    launch = replace(fake(*vllm_log("leftover-process"), "--exit", "1"), log=log_rules("vllm"))
    error = failing(lambda: process.start(launch, timeout_s=60))
    assert error.cause is not None
    assert error.cause.symptom.code == "L-101"
    assert "77.54 of 139.8 GiB" in str(error)
    assert "end the leftover process" in (error.fix or "")
    assert trouble.diagnose("\n".join(error.tail), "vllm").causes[0].code in ("L-101", "L-190")


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
    """As by the kernel for lack of memory: the message says so, and no child lives on."""
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
    assert "killed by SIGKILL (by hand, or by the kernel for lack of memory)" in str(error)
    assert pids
    assert until(lambda: gone(pids[0]))
    child = next(int(line.split()[1]) for line in error.tail if line.startswith("child "))
    assert until(lambda: gone(child)), "what the engine started is gone too"


@pytest.mark.live
def test_the_real_engine_killed_while_loading() -> None:
    killed: list[int] = []

    def kill(at: process.Progress) -> None:
        if not killed and (known := state.every()):
            killed.append(known[0].pid)
            os.kill(known[0].pid, signal.SIGKILL)

    error = failing(lambda: llamacpp.serve(Options(ctx=4096), progress=kill))
    assert "killed by SIGKILL" in str(error)
    assert gone(killed[0])


# --- hangs while warming up ------------------------------------------------------------------------------------------


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
