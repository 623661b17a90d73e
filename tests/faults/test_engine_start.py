"""A server that does not start: the right cause at once, one message, nothing left running."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.engines import SMALL, fake, gone, leftovers, until

from nemolab.core.errors import ExitCode, NemolabError, UsageError
from nemolab.engines import llamacpp, process, state, vllm
from nemolab.engines.launch import Launch
from nemolab.engines.llamacpp import LOG, Options
from nemolab.engines.process import Progress, StartError
from nemolab.miniature import gguf_path


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


def failing(call: Callable[[], object], kind: type[NemolabError] = StartError) -> NemolabError:
    with pytest.raises(kind) as caught:
        call()
    assert process.running() == ()
    assert state.every() == (), "a server that never was is not listed as ended"
    return caught.value


def test_missing_model(tmp_path: Path) -> None:
    error = failing(lambda: llamacpp.serve(Options(model=str(tmp_path / "no.gguf"))), UsageError)
    assert "no model there" in str(error)
    assert error.exit_code is ExitCode.USAGE


def test_file_that_is_no_gguf(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"PK\x03\x04" + bytes(1000))
    assert "not a GGUF file" in str(
        failing(lambda: llamacpp.serve(Options(model=str(tmp_path / "m.gguf"))), UsageError)
    )


@pytest.mark.live
@pytest.mark.parametrize("keep", [0.6, 0.0001], ids=["cut in the weights", "cut in the header"])
def test_cut_gguf_is_found_by_the_engine(tmp_path: Path, keep: float) -> None:
    whole = gguf_path().read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[: int(len(whole) * keep)])
    began = time.monotonic()
    error = failing(lambda: llamacpp.serve(Options(model=str(cut), ctx=512)))
    assert isinstance(error, StartError)
    assert error.kind == "exited"
    assert error.cause is not None
    assert error.cause.symptom.code in ("L-201", "L-205")
    assert "last lines of the log" in str(error)
    assert error.fix
    assert time.monotonic() - began < 60, "at once, not after the time-out"


@pytest.mark.live
def test_port_of_another_server_of_the_lab() -> None:
    first = llamacpp.serve(SMALL)
    try:
        with pytest.raises(UsageError, match=r"is held by llamacpp-1 \(pid \d+, started") as caught:
            llamacpp.serve(Options(port=first.port))
        assert "nemolab servers stop llamacpp-1" in str(caught.value)
    finally:
        process.stop(first)


def test_port_of_a_foreign_process() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        error = failing(lambda: process.start(fake(port=port)), UsageError)
    assert f"port {port} is held by pid {os.getpid()}" in str(error)


def test_port_taken_between_the_look_and_the_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server answers on the port: its health is not ours."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
    other = process.start(fake("--listen", str(port), port=port))
    try:
        monkeypatch.setattr(process, "require_free", lambda host, port: None)
        with pytest.raises(StartError) as caught:
            process.start(fake("--line", "srv init: couldn't bind HTTP server socket", port=port), timeout_s=1.0)
        assert caught.value.cause is not None
        assert caught.value.cause.symptom.code == "L-001"
    finally:
        process.stop(other)


def test_exit_is_noticed_at_once_with_the_cause() -> None:
    began = time.monotonic()
    error = failing(lambda: process.start(fake("--line", "torch: CUDA out of memory", "--exit", "3"), timeout_s=120))
    assert "it exited with code 3: the GPU has no memory left" in str(error)
    assert time.monotonic() - began < 30


def test_hanging_warm_up_ends_at_the_limit() -> None:
    lines = ("--line", "0.00.001.000 I cmn init: warming up the model with an empty run")
    error = failing(lambda: process.start(fake(*lines), timeout_s=0.7))
    assert isinstance(error, StartError)
    assert (error.kind, error.exit_code) == ("timed out", ExitCode.KILLED)
    assert "was not ready after 0.7 s, it was at: warm-up" in str(error)
    assert any("warming up" in line for line in error.tail)


def test_a_server_that_only_looks_ready_is_not_waited_for() -> None:
    line = "AttributeError: '_IncludedRouter' object has no attribute 'path'"
    launch = replace(fake("--listen", "0", "--health", "500", "--line", line), log=vllm.LOG)
    error = failing(lambda: process.start(launch, timeout_s=120))
    assert isinstance(error, StartError)
    assert error.kind == "unusable"
    assert error.fix
    assert "fastapi 0.136.3" in error.fix


def test_program_that_is_not_there(tmp_path: Path) -> None:
    launch = Launch("llamacpp", "nothing", "m", (str(tmp_path / "no-such-engine"),), LOG)
    error = failing(lambda: process.start(launch), NemolabError)
    assert "could not be started: No such file" in str(error)


def test_interrupted_start_leaves_nothing() -> None:
    pids: list[int] = []

    def interrupt(progress: Progress) -> None:
        if known := state.every():
            pids.extend((known[0].pid, known[0].supervisor))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.start(fake("--line", "x"), progress=interrupt)
    assert until(lambda: all(gone(pid) for pid in pids))
    assert len(pids) == 2
    assert state.every() == ()


def test_a_secret_is_in_neither_log_nor_state_nor_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "plain-looking-value")
    shape = "hf_" + "A" * 30
    launch = fake("--line", "key is {LAB_KEY}", "--line", f"token {shape}", "--exit", "1", secret_env=("LAB_KEY",))
    error = failing(lambda: process.start(launch))
    assert isinstance(error, StartError)
    files = [path for path in state.folder().rglob("*") if path.is_file()]
    everything = str(error) + "".join(path.read_text() for path in files)
    assert "key is [LAB_KEY removed]" in everything
    assert "plain-looking-value" not in everything
    assert shape not in "".join(path.read_text() for path in state.folder().rglob("*.log"))


def test_two_starts_at_once_do_not_take_the_same_name() -> None:
    code = (
        "from nemolab.engines import process; from tests.support.engines import fake; "
        "s = process.start(fake()); print(s.id, s.port); process.stop(s)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=60)[0].split() for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert len({port for _, port in said}) == 2
    assert state.every() == ()
