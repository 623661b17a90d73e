"""Fixtures of the host tests."""

from __future__ import annotations

import pytest
from tests.support.healthy_host import healthy_host

from nemolab.host.facts import HostFacts


@pytest.fixture
def healthy() -> HostFacts:
    """Two H200 on a machine that lacks nothing."""
    return healthy_host()
