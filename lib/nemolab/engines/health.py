"""Whether a server answers, asked directly: no proxy, no redirect, no key."""

from __future__ import annotations

import http.client


def answers(host: str, port: int, path: str, timeout_s: float = 5.0) -> bool:
    """Whether `GET path` gives 200."""
    return status(host, port, path, timeout_s) == 200


def status(host: str, port: int, path: str, timeout_s: float = 5.0) -> int | None:
    """HTTP status of `GET path`, None without an answer."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
