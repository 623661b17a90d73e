"""Identity of processes, ports, state files, options: the parts that process control rests on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.support.engines import SMALL, fake, until

from nemolab.core.errors import UsageError
from nemolab.engines import llamacpp, llamacpp_server, ports, state, supervise
from nemolab.engines.identity import alive, born
from nemolab.engines.launch import Owner
from nemolab.engines.llamacpp import Options


def server(**fields: object) -> state.ServerState:
    values: dict[str, object] = {
        "id": "llamacpp-1", "engine": "llamacpp", "title": "t", "model": "m", "supervisor": 1,
        "supervisor_started": "no", "pid": 1, "pid_started": "no", "host": "127.0.0.1", "port": 1234,
        "since": datetime.now().isoformat(timespec="seconds"), "run": None, "owner": 7, "owner_started": "x",
        "argv": ("a",), "log": "l", "ended": None,
    }  # fmt: skip
    return state.ServerState(**(values | fields))  # type: ignore[arg-type]


def test_a_pid_alone_is_no_identity() -> None:
    mine = born(os.getpid())
    assert mine is not None
    assert alive(os.getpid(), mine)
    assert not alive(os.getpid(), "another start")
    assert not alive(None, None)


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        assert until(lambda: born(child.pid) is None)
        assert Path(f"/proc/{child.pid}").exists() or sys.platform != "linux"
    finally:
        child.wait()


def test_state_file_comes_back_and_a_broken_one_is_no_server(lab_state: Path) -> None:
    known = server(ended=state.Ended("2026-11-30T12:00:00", -9, "killed"))
    state.write(known)
    assert state.read(known.id) == known
    state.file_of("llamacpp-2").write_text("{")
    assert state.every() == (known,)
    assert state.new_id("llamacpp") == "llamacpp-3", "an id is not given twice, not even beside a broken file"


def test_lost_servers_are_forgotten_and_ended_ones_after_a_day(lab_state: Path) -> None:
    now = datetime.now()
    state.write(server(id="a-1"))
    state.write(server(id="a-2", ended=state.Ended(now.isoformat(), 1, "x")))
    state.write(server(id="a-3", ended=state.Ended((now - timedelta(days=2)).isoformat(), 1, "x")))
    state.tidy()
    assert [known.id for known in state.every()] == ["a-2"]


def test_a_port_held_by_somebody_else_is_named() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} is held by pid {os.getpid()} \(.*started \d\d:\d\d"):
            ports.require_free("127.0.0.1", port)
        assert ports.listens(os.getpid(), port)
        assert not ports.listens(os.getppid(), 1)
    ports.require_free("127.0.0.1", port)


def test_an_orphan_that_holds_a_port_is_named(lab_state: Path) -> None:
    me = born(os.getpid())
    state.write(server(pid=os.getpid(), pid_started=me, port=1234, run="r7"))
    with pytest.raises(UsageError, match=r"llamacpp-1 \(pid \d+, an orphan, started \d\d:\d\d by run r7\)") as caught:
        ports.require_free("127.0.0.1", 1234)
    assert "nemolab servers stop llamacpp-1" in str(caught.value)
    state.forget("llamacpp-1")


def test_owner_is_the_run_or_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Owner.current() == Owner(os.getpid(), born(os.getpid()), None)
    monkeypatch.setenv("NEMOLAB_RUN", "r1")
    assert Owner.current().run == "r1"
    monkeypatch.setenv("NEMOLAB_RUNNER_PID", str(os.getppid()))
    assert Owner.current() == Owner(os.getppid(), born(os.getppid()), "r1")
    monkeypatch.setenv("NEMOLAB_RUNNER_PID", "99999999")
    with pytest.raises(UsageError, match="does not run"):
        Owner.current()


def test_a_secret_stays_out_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    with pytest.raises(UsageError, match="LAB_KEY is not set"):
        fake(secret_env=("LAB_KEY",)).check()
    monkeypatch.setenv("LAB_KEY", "s3cret-value")
    with pytest.raises(UsageError, match="stands in the command") as caught:
        fake("--line", "s3cret-value", secret_env=("LAB_KEY",)).check()
    assert "s3cret-value" not in str(caught.value)


def test_options_become_the_parameters_of_the_engine() -> None:
    launch = llamacpp.launch(Options(ctx=2048, parallel=3, threads=5, port=0, cache_reuse=64, reasoning_format="none"))
    chosen = llamacpp_server.options(list(launch.argv[4:]))
    params = llamacpp_server.common_params(chosen)
    assert (params.n_ctx, params.n_parallel) == (3 * 2048, 3)
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (5, 5)
    assert (params.n_cache_reuse, params.endpoint_metrics, params.use_jinja) == (64, True, True)
    assert params.reasoning_format.name == "COMMON_REASONING_FORMAT_NONE"
    assert list(params.hostnames) == ["127.0.0.1"]


def test_one_core_is_left_to_the_client() -> None:
    assert llamacpp.default_threads() == max(1, llamacpp.cores() - 1)
    assert f"--threads {llamacpp.default_threads()}" in " ".join(llamacpp.launch(SMALL).argv)


@pytest.mark.parametrize(
    ("code", "starved", "words"),
    [
        (3, None, "it exited with code 3"),
        (3, False, "it exited with code 3"),
        (3, True, "it exited with code 3; meanwhile the kernel killed a process for lack of memory"),
        (-9, None, "it was killed by SIGKILL (by hand, or by the kernel for lack of memory)"),
        (-9, True, "it was killed by SIGKILL (by the kernel, for lack of memory)"),
        (-9, False, "it was killed by SIGKILL (by hand or by a program: the kernel has killed nothing "
        "for lack of memory)"),
        (-11, True, "it was killed by SIGSEGV"),
    ],
)  # fmt: skip
def test_endings_in_words(code: int, starved: bool | None, words: str) -> None:
    assert supervise.ending(code, starved) == words
