"""Starting a supervisor and taking leave of it."""

from __future__ import annotations

import contextlib
import json
import selectors
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from nemolab.core.errors import NemolabError
from nemolab.engines import state
from nemolab.engines.launch import Launch, Owner
from nemolab.engines.supervise import Order

_KEEP_LOGS = 50
_SUPERVISOR_S = 30.0
_children: dict[int, subprocess.Popen[bytes]] = {}


def new_log(server_id: str) -> Path:
    """Path of a new log; the oldest of many are removed."""
    folder = state.folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.log"))[: -(_KEEP_LOGS - 1)]:
        old.unlink(missing_ok=True)
    return folder / f"{datetime.now():%Y%m%d-%H%M%S-%f}-{server_id}.log"


def spawn(launch: Launch, owner: Owner, server_id: str, log: Path) -> None:
    """Start the engine under a supervisor; its state file is there when this returns.

    Raises:
        NemolabError: the program could not be started.
    """
    reap()
    order = Order(
        id=server_id,
        engine=launch.engine,
        title=launch.title,
        model=launch.model,
        argv=list(launch.argv),
        env={"PYTHONUNBUFFERED": "1", **dict(launch.env)},
        secret_env=list(launch.secret_env),
        cwd=str(launch.cwd) if launch.cwd else None,
        host=launch.host,
        port=launch.port,
        port_pattern=launch.log.port.pattern if launch.log.port else None,
        log=str(log),
        grace_s=launch.grace_s,
        run=owner.run,
        owner=owner.pid,
        owner_started=owner.started,
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-P", "-m", "nemolab.engines.supervise"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _children[supervisor.pid] = supervisor
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    assert supervisor.stderr is not None
    try:
        supervisor.stdin.write(json.dumps(asdict(order)).encode())
        supervisor.stdin.close()
        answer = _first_line(supervisor, _SUPERVISOR_S)
    except BaseException:
        supervisor.terminate()
        raise
    finally:
        supervisor.stdout.close()
    if "pid" not in answer:
        supervisor.terminate()
        error = answer.get("error") or supervisor.stderr.read().decode(errors="replace").strip()[-2000:]
        supervisor.stderr.close()
        reap(supervisor)
        raise NemolabError(f"{launch.title} could not be started: {error}", where=launch.argv[0])
    supervisor.stderr.close()


def _first_line(supervisor: subprocess.Popen[bytes], timeout_s: float) -> dict[str, object]:
    assert supervisor.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(supervisor.stdout, selectors.EVENT_READ)
        if not selector.select(timeout_s):
            return {"error": f"its supervisor said nothing for {timeout_s:g} s"}
    line = supervisor.stdout.readline()
    return dict(json.loads(line)) if line.strip() else {}


def reap(child: subprocess.Popen[bytes] | None = None) -> None:
    """Take leave of supervisors that have ended, so that no zombie is left."""
    if child is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
    for pid in [pid for pid, process in _children.items() if process.poll() is not None]:
        del _children[pid]
