"""The server's own counters, read before and after a stage."""

from __future__ import annotations

from nemolab.client.endpoint import Endpoint
from nemolab.client.prometheus import scrape
from nemolab.core.errors import NemolabError
from nemolab.load.ladder import Snapshot

_COUNTERS = ("_total", "_sum", "_count")  # how the exposition format ends the names of what only grows


def server_counters(endpoint: Endpoint) -> Snapshot:
    """A reader of every counter at the server's `/metrics`, summed over labels; {} where there is none."""

    def read() -> dict[str, float]:
        try:
            metrics = scrape(endpoint)
        except NemolabError:
            return {}
        sums = metrics.sums if metrics else {}
        return {name: value for name, value in sums.items() if name.endswith(_COUNTERS)}

    return read
