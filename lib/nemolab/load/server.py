"""The server's own counters, read before and after a stage."""

from __future__ import annotations

import urllib.error
import urllib.request

from nemolab.client.endpoint import Endpoint
from nemolab.load.ladder import Snapshot

_TIMEOUT_S = 5.0


def server_counters(endpoint: Endpoint) -> Snapshot:
    """A reader of every counter at the server's `/metrics`, summed over labels; {} where there is none."""

    def read() -> dict[str, float]:
        request = urllib.request.Request(endpoint.root + "/metrics", headers=endpoint.headers())
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                return counters(response.read().decode(errors="replace"))
        except (urllib.error.URLError, OSError, ValueError):
            return {}

    return read


def counters(text: str) -> dict[str, float]:
    """Counters in a Prometheus text exposition, summed over labels; a histogram counts by its `_count` and `_sum`."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            counts = family.type == "counter" and not sample.name.endswith("_created")
            sums = family.type in ("histogram", "summary") and sample.name.endswith(("_count", "_sum"))
            if counts or sums:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found
