"""The embedded engine with the miniature: it starts, answers, stops, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.engines import SMALL, closed, gone

from nemolab.engines import llamacpp, process, serving, state
from nemolab.engines.process import Progress

pytestmark = pytest.mark.live


def test_it_starts_answers_and_stops(lab_state: Path) -> None:
    seen: list[Progress] = []
    server = llamacpp.serve(SMALL, progress=seen.append)
    try:
        known = state.read(server.id)
        assert known is not None
        assert (known.pid, known.port, known.owner) == (server.pid, server.port, os.getpid())
        assert os.getpgid(server.pid) == server.pid != os.getpgid(0), "a process group of its own"
        assert [p.phase for p in seen if p.new][-2:] == ["warm-up", "slots"]
        assert server.report.version == server.endpoint.engine_version != ""
        assert (server.endpoint.engine, server.endpoint.loopback) == ("llamacpp", True)
        answer = serving.ask(server.base_url, server.model)
        assert "7421906" in answer.content
        assert answer.reasoning
        assert answer.finish_reason == "stop"
    finally:
        assert process.stop(server)
    assert gone(server.pid)
    assert gone(known.supervisor)
    assert closed(server.port)
    assert state.every() == ()
    assert not process.stop(server), "stopping twice is no error"


def test_start_and_stop_again_and_again_leaves_nothing() -> None:
    port = 0
    for _ in range(6):
        server = llamacpp.serve(llamacpp.Options(ctx=512, parallel=1, port=port))
        port = server.port  # from the second time on the same port, just freed
        process.stop(server)
        assert gone(server.pid)
        assert closed(port)
    assert state.every() == ()
    assert not list(state.folder().glob("*.json"))


def test_two_at_once() -> None:
    first, second = llamacpp.serve(SMALL), llamacpp.serve(SMALL)
    try:
        assert first.port != second.port
        assert {server.id for server in process.running()} == {"llamacpp-1", "llamacpp-2"}
        process.stop(first)
        assert serving.ask(second.base_url, second.model).content
    finally:
        process.stop(first)
        process.stop(second)


def test_a_server_of_a_run_outlives_the_kernel_that_started_it(lab_state: Path) -> None:
    code = "from nemolab.engines import llamacpp; from tests.support.engines import SMALL; llamacpp.serve(SMALL)"
    environment = os.environ | {"NEMOLAB_RUN": "run-7", "NEMOLAB_RUNNER_PID": str(os.getpid())}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    (server,) = process.running()
    assert (server.run, server.owner) == ("run-7", os.getpid())
    assert serving.ask(server.base_url, server.model).content
    assert process.stop_owned("another run") == ()
    assert process.stop_owned("run-7") == (server,)
    assert gone(server.pid)
    assert gone(server.supervisor)
    assert process.running() == ()


def test_release_says_what_happens_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    started = serving.start(SMALL)
    assert "keeps running" in serving.release(started.id, keep_running=True)
    monkeypatch.setenv("NEMOLAB_RUN", "run-8")
    assert "stays for the next steps" in serving.release(started.id)
    assert len(process.running()) == 1
    monkeypatch.delenv("NEMOLAB_RUN")
    assert "no process and no port is left" in serving.release(started.id)
    assert process.running() == ()


def test_kept_running_it_belongs_to_nobody() -> None:
    started = serving.start(SMALL, keep_running=True)
    try:
        (known,) = process.running()
        assert (known.owner, known.run) == (None, None)
    finally:
        process.stop(started.id)
