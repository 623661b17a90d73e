"""Servers, their owners and their helpers killed: what must die dies, what happened is known."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.engines import SMALL, closed, fake, gone, until

from nemolab.client.outcome import CheckStatus
from nemolab.client.probe import probe
from nemolab.engines import llamacpp, process, spawn, state
from nemolab.engines.identity import born
from nemolab.engines.launch import Owner

linux = pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG and subreapers are Linux's")


@pytest.fixture(autouse=True)
def lab_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    yield
    for server in state.every():
        process.stop(server)


def owner_of_a_server(code: str) -> tuple[subprocess.Popen[str], int, int]:
    """A process that has started a server, with the engine's pid and port."""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid, port = owner.stdout.readline().split()
    return owner, int(pid), int(port)


START = (
    "import time; from nemolab.engines import llamacpp; from tests.support.engines import SMALL; "
    "s = llamacpp.serve(SMALL); print(s.pid, s.port, flush=True); time.sleep(600)"
)


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_dies_with_its_owner(number: signal.Signals) -> None:
    owner, pid, port = owner_of_a_server(START)
    (server,) = process.running()
    owner.send_signal(number)
    owner.wait(10)
    assert until(lambda: gone(pid) and gone(server.supervisor))
    assert closed(port)
    assert until(lambda: state.every() == ())


@pytest.mark.live
def test_killed_engine_is_noticed_and_its_end_is_known() -> None:
    server = llamacpp.serve(SMALL)
    os.kill(server.pid, signal.SIGKILL)
    assert until(lambda: process.running() == ())
    ended = process.ended(server.base_url)
    assert ended is not None
    assert ended.ended is not None
    assert ended.ended.code == -9
    report = probe(server.endpoint, timeout_s=5)
    first, *rest = report.checks
    assert first.status is CheckStatus.FAILED
    assert "llamacpp-1 ended at" in first.detail
    assert "SIGKILL" in first.detail
    assert {check.status for check in rest} == {CheckStatus.SKIPPED}
    assert not report.passed
    again = llamacpp.serve(llamacpp.Options(ctx=512, parallel=1, port=server.port))
    assert process.stop(again), "the port is free for the next one"


@linux
def test_engine_dies_with_its_supervisor() -> None:
    server = process.start(fake())
    known = state.read(server.id)
    assert known is not None
    os.kill(known.supervisor, signal.SIGKILL)
    assert until(lambda: gone(server.pid))
    assert process.running() == ()
    with state.claim():
        state.tidy()
    assert state.every() == (), "the stale file goes at the next start"


@linux
def test_deaf_engine_and_a_child_that_left_the_group_are_ended() -> None:
    server = process.start(fake("--deaf", "--escape", "--listen", "0"))
    found = re.search(r"child (\d+)", server.log.read_text())
    assert found
    child = int(found[1])
    assert not gone(child)
    assert process.stop(server)
    assert gone(server.pid)
    assert until(lambda: gone(child))
    assert closed(server.port)


def test_orphan_is_named_and_stopped() -> None:
    """An engine whose supervisor is gone and that lives on (as on systems without PR_SET_PDEATHSIG)."""
    orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        server = state.ServerState(
            id="llamacpp-4",
            engine="llamacpp",
            title="t",
            model="m",
            supervisor=2**22 + 1,
            supervisor_started="x",
            pid=orphan.pid,
            pid_started=born(orphan.pid),
            host="127.0.0.1",
            port=1,
            since="2026-11-30T13:02:00",
            run="r",
            owner=None,
            owner_started=None,
            argv=(),
            log="",
        )
        state.folder().mkdir(parents=True)
        state.write(server)
        assert process.running() == (server,)
        assert server.orphan
        assert f"llamacpp-4 (pid {orphan.pid}, an orphan, started" in server.describe()
        assert process.stop_owned("r") == (server,)
        assert orphan.wait(5) == -signal.SIGTERM
        assert state.every() == ()
    finally:
        orphan.kill()
        orphan.wait()


def test_a_pid_that_is_another_process_now_is_left_alone() -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        time.sleep(0.05)  # starts are told apart by clock ticks of 10 ms
        server = process.start(fake())
        known = state.read(server.id)
        assert known is not None
        process.stop(server)
        state.write(replace(known, pid=stranger.pid, supervisor=stranger.pid))
        assert process.running() == ()
        assert not process.stop(server.id)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_log_disk_does_not_stop_the_server() -> None:
    launch = fake("--listen", "0", "--line", "x" * 10000)
    state.folder().mkdir(parents=True)
    spawn.spawn(launch, Owner.current(), "llamacpp-9", Path("/dev/full"))
    assert until(lambda: bool((known := state.read("llamacpp-9")) and known.port))
    assert process.stop("llamacpp-9")


def in_terminal(*arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """`nemolab` in a terminal of its own, so that Ctrl-C is what it is for a person."""
    master, slave = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = subprocess.Popen(
        [sys.executable, "-m", "nemolab", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(slave)
    return child, master


def read_until(master: int, words: str, timeout_s: float = 60.0) -> str:
    text, deadline = "", time.monotonic() + timeout_s
    while words not in text and time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                text += os.read(master, 65536).decode(errors="replace")
            except OSError:
                break
    return text


@pytest.mark.live
def test_ctrl_c_on_nemolab_serve_leaves_nothing() -> None:
    child, master = in_terminal("serve", "miniature", "--port", "0", "--ctx", "512")
    try:
        text = read_until(master, "Ctrl-C stops it.")
        found = re.search(r"base URL +http://127\.0\.0\.1:(\d+)/v1", text)
        assert found, text
        assert "curl http://127.0.0.1" in text
        assert "OpenAI(base_url=" in text
        (server,) = process.running()
        os.write(master, b"\x03")
        read_until(master, "interrupted")
        assert child.wait(20) == 130
    finally:
        child.kill()
        child.wait()
        os.close(master)
    assert gone(server.pid)
    assert gone(server.supervisor)
    assert closed(int(found[1]))
    assert state.every() == ()


@pytest.mark.live
def test_engine_killed_under_nemolab_serve_is_said_with_the_exit_code() -> None:
    child, master = in_terminal("serve", "--port", "0", "--ctx", "512")
    try:
        read_until(master, "Ctrl-C stops it.")
        (server,) = process.running()
        os.kill(server.pid, signal.SIGKILL)
        text = read_until(master, "fix:")
        assert "killed by SIGKILL" in text
        assert child.wait(20) == 4
    finally:
        child.kill()
        child.wait()
        os.close(master)
    assert process.running() == ()


def test_servers_command_lists_and_stops() -> None:
    server = process.start(fake())

    def nemolab(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "nemolab", *arguments], capture_output=True, text=True, timeout=60)

    listed = nemolab("servers").stdout
    assert "llamacpp-1" in listed
    assert "running" in listed
    assert nemolab("servers", "stop").returncode == 2
    assert nemolab("servers", "stop", "nobody-7").returncode == 2
    stopped = nemolab("servers", "stop", "llamacpp-1")
    assert (stopped.returncode, stopped.stdout.strip()) == (0, "llamacpp-1 stopped")
    assert gone(server.pid)
    assert nemolab("servers").stdout.strip() == "No servers."
