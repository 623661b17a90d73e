"""The key of a step: the same key means that measuring again would measure the same thing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nemolab.core.files import sha256

SCHEMA = 1


def step_key(*, code: str, library: str, parameters: Mapping[str, Any], needs: Mapping[str, str]) -> str:
    """Digest of what a step measures.

    Expectations and limits of time are left out: they judge a measurement and do not change it. So is a server's
    address: parameters taken from a `service` step stand in as the reference's text, for its key stands in `needs`.

    Args:
        code: digest of the notebook's code cells.
        library: digest of the library's files.
        parameters: JSON-ready values, those given and those left at their defaults.
        needs: key of each step that this one waits for.
    """
    parts = {
        "schema": SCHEMA,
        "code": code,
        "library": library,
        "parameters": dict(parameters),
        "needs": dict(sorted(needs.items())),
    }
    return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode())
