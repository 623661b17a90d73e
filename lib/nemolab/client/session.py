"""The connections under a load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nemolab.client.endpoint import Endpoint

if TYPE_CHECKING:
    import aiohttp


def open_session(endpoint: Endpoint) -> aiohttp.ClientSession:
    """A session without limits of its own; to be called in a running loop and closed by the caller.

    On loopback, and for llama.cpp anywhere, every request gets a connection of its own. llama.cpp's server announces
    keep-alive and then closes the connection after a streamed answer, so that every second request on a kept
    connection fails (measured, xllamacpp 2026.10). Connecting costs 0.1 ms on loopback. Elsewhere connections are
    kept, as users' clients keep them.
    """
    import aiohttp

    close = endpoint.loopback or endpoint.engine == "llamacpp"
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=close))
