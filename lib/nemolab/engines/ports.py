"""Ports: whether one is free, who holds it, who listens."""

from __future__ import annotations

import contextlib
import errno
import socket
from datetime import datetime

from nemolab.core.errors import UsageError
from nemolab.engines import state


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free now and that no starting server has asked for.

    For engines that cannot take port 0 themselves; between this call and the engine's own bind another process may
    take it, which the start then reports.
    """
    asked = {server.port for server in state.every() if server.running}
    while True:
        with socket.socket() as probe:
            probe.bind((host, 0))
            port: int = probe.getsockname()[1]
        if port not in asked:
            return port


def require_free(host: str, port: int) -> None:
    """Make sure that `port` can be listened on.

    Raises:
        UsageError: it is taken; names the holder, since when, and how to free it.
    """
    if not port:
        return
    for server in state.every():
        if server.port == port and server.running:
            raise UsageError(
                f"port {port} is held by {server.describe()}",
                where=server.base_url,
                fix=f"use it as it is, stop it with `nemolab servers stop {server.id}`, or choose another port",
            )
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a closed connection's wait is not a holder
        try:
            probe.bind((host, port))
            return
        except OSError as error:
            if error.errno == errno.EACCES:
                raise UsageError(f"port {port} needs root", fix="choose one above 1023, or 0 for any") from None
            if error.errno != errno.EADDRINUSE:
                raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    raise UsageError(
        f"port {port} is held by {_holder(port)}, which nemolab did not start",
        where=f"{host}:{port}",
        fix="stop that process, or choose another port (0 for any)",
    )


def _holder(port: int) -> str:
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port and connection.pid:
                process = psutil.Process(connection.pid)
                since = datetime.fromtimestamp(process.create_time()).isoformat()
                return f"pid {process.pid} ({process.name()}, started {state.clock(since)})"
    return "a process of another user"


def listens(pid: int, port: int) -> bool:
    """Whether process `pid` or one of its descendants listens on `port`; true where the system does not tell."""
    import psutil

    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.Error:
        return False
    for process in family:
        try:
            sockets = process.net_connections("tcp")
        except psutil.AccessDenied:
            return True
        except psutil.Error:
            continue
        if any(s.status == psutil.CONN_LISTEN and s.laddr and s.laddr.port == port for s in sockets):
            return True
    return False
