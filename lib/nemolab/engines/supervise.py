"""The process between a server and its owner: `python -m nemolab.engines.supervise`, one for each server.

It starts the engine in a process group of its own, writes the engine's output to the log without secrets, keeps the
state file, and ends the whole group when it is told to (SIGTERM), when the owner is gone (however it died: the
kernel tells, through a pidfd), and when the engine has died. If this process itself is killed, Linux kills the engine
(PR_SET_PDEATHSIG). The order comes as one JSON document on standard input, so no argument list shows it; one line of
JSON on standard output says whether the engine was started.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from nemolab.core.secrets import redact, redact_log
from nemolab.engines import state
from nemolab.engines.identity import MARK, alive, born, watch_fd

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Order:
    """What to start and whom to watch. The document on standard input has these keys."""

    id: str
    engine: str
    title: str
    model: str
    argv: list[str]
    env: dict[str, str]
    secret_env: list[str]
    cwd: str | None
    host: str
    port: int
    port_pattern: str | None
    log: str
    grace_s: float
    run: str | None
    owner: int | None
    owner_started: str | None


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Log:
    """The engine's output on its way to the file: whole lines, without secrets, each seen once by `on_line`."""

    def __init__(self, order: Order, on_text: Callable[[str], None]) -> None:
        self._file = open(order.log, "ab", buffering=0)  # noqa: SIM115 - lives as long as this process
        self._hidden = [(os.environ[n], f"[{n} removed]") for n in order.secret_env if os.environ.get(n)]
        self._on_text = on_text
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        data = self._rest + piece
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - end > 65536:
            end = len(data)
        self._rest = data[end:]
        self._put(data[:end])

    def flush(self) -> None:
        """Write an unfinished line: it is a progress bar, or the last words."""
        self._put(self._rest)
        self._rest = b""

    def _put(self, data: bytes) -> None:
        if not data:
            return
        text = data.decode(errors="surrogateescape")
        for value, name in self._hidden:
            text = text.replace(value, name)
        text = redact_log(text)
        with contextlib.suppress(OSError):  # a full disk must not take the server down
            self._file.write(text.encode(errors="surrogateescape"))
        self._on_text(text)


class Supervisor:
    """One engine, from start to end."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.log = Log(order, self._look_for_port)
        self._port_pattern = re.compile(order.port_pattern) if order.port_pattern and not order.port else None
        self._stop_asked = False
        self._oom_kills = _oom_kills()
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what the engine leaves behind becomes our child, so that we can end it
        me = os.getpid()

        def tie_to_supervisor() -> None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != me:
                os._exit(1)

        self.process = subprocess.Popen(
            order.argv,
            env=os.environ | order.env | {MARK: state.mark(order.id)},
            cwd=order.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=tie_to_supervisor,
        )
        self.state = state.ServerState(
            id=order.id,
            engine=order.engine,
            title=order.title,
            model=order.model,
            supervisor=me,
            supervisor_started=born(me),
            pid=self.process.pid,
            pid_started=born(self.process.pid),
            host=order.host,
            port=order.port,
            since=datetime.now().isoformat(timespec="seconds"),
            run=order.run,
            owner=order.owner,
            owner_started=order.owner_started,
            argv=tuple(redact(part) for part in order.argv),
            log=order.log,
        )
        state.write(self.state)

    def run(self) -> int:
        """Watch until the end; the exit code of this process."""
        wake, wake_end = os.pipe()
        os.set_blocking(wake_end, False)
        signal.set_wakeup_fd(wake_end)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert self.process.stdout is not None
        output = self.process.stdout.fileno()
        os.set_blocking(output, False)
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            for pid in (self.process.pid, self.order.owner):
                if pid is not None and (fd := watch_fd(pid)) is not None:
                    selector.register(fd, selectors.EVENT_READ)
            while self.process.poll() is None and not self._stop_asked and self._owner_lives():
                ready = selector.select(_POLL_S)
                if any(key.fd == output for key, _ in ready):
                    if not self._drain(output):
                        selector.unregister(output)
                elif not ready:
                    self.log.flush()
        ended_alone = self.process.poll() is not None
        self._end_group(output)
        self._drain(output)
        self.log.flush()
        if ended_alone and not self._stop_asked:
            code = self.process.returncode
            at = datetime.now().isoformat(timespec="seconds")
            starved = _rose(self._oom_kills, _oom_kills())
            self.state = replace(self.state, ended=state.Ended(at, code, ending(code, starved), bool(starved)))
            state.write(self.state)
        else:
            state.forget(self.order.id)
        return 0

    def _on_signal(self, number: int, frame: Any) -> None:
        self._stop_asked = True

    def _owner_lives(self) -> bool:
        return self.order.owner is None or alive(self.order.owner, self.order.owner_started)

    def _drain(self, output: int) -> bool:
        """Take what the engine has written; false at the end of its output."""
        while True:
            try:
                piece = os.read(output, 65536)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not piece:
                return False
            self.log.feed(piece)

    def _look_for_port(self, text: str) -> None:
        if self._port_pattern and (match := self._port_pattern.search(text)):
            self._port_pattern = None
            self.state = replace(self.state, port=int(match["port"]))
            state.write(self.state)

    def _end_group(self, output: int) -> None:
        """TERM, wait, KILL: the engine's group, then whatever has left the group but is still ours."""
        self._signal_group(signal.SIGTERM)
        deadline = time.monotonic() + self.order.grace_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self._drain(output)  # an engine that blocks on a full pipe would never end
            time.sleep(0.01)
        self._signal_group(signal.SIGKILL)
        self.process.wait()
        for _ in range(200):
            if not _kill_children():
                return
            time.sleep(0.01)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def _kill_children() -> bool:
    """Kill and reap what was left to us; true while something remains."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    import psutil

    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    return True


def _oom_kills() -> int | None:
    """Processes that the kernel has killed for lack of memory since it started, those of control groups included; None
    where it does not count them (/proc/vmstat, since Linux 4.13)."""
    with contextlib.suppress(OSError, ValueError), open("/proc/vmstat", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)
    return None


def _rose(before: int | None, after: int | None) -> bool | None:
    return None if before is None or after is None else after > before


def ending(code: int, starved: bool | None = None) -> str:
    """How a process ended, in words.

    Args:
        starved: the kernel killed some process for lack of memory meanwhile; None: that is not known.
    """
    if code >= 0:
        also = "; meanwhile the kernel killed a process for lack of memory" if starved else ""
        return f"it exited with code {code}{also}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = {
        None: " (by hand, or by the kernel for lack of memory)",
        True: " (by the kernel, for lack of memory)",
        False: " (by hand or by a program: the kernel has killed nothing for lack of memory)",
    }
    return f"it was killed by {name}{hint[starved] if name == 'SIGKILL' else ''}"


def main() -> int:
    """Read the order, start, tell, watch."""
    order = Order(**json.load(sys.stdin.buffer))
    try:
        supervisor = Supervisor(order)
    except OSError as error:
        print(json.dumps({"error": f"{error.strerror}: {error.filename or order.argv[0]}"}), flush=True)
        return 1
    print(json.dumps({"pid": supervisor.process.pid}), flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
