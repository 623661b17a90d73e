"""The ladder against the real engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from miniserver import miniature

from nemolab.client import Endpoint
from nemolab.load import Plan, Slo, Stage, knee, look, run_ladder, server_counters, summarise
from nemolab.load.params import LadderResults

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with miniature(tmp_path_factory.mktemp("state"), 2048) as served:
        yield served


def test_a_ladder_end_to_end(endpoint: Endpoint) -> None:
    plan = Plan((Stage("closed", 1, 6), Stage("closed", 2, 8)), prompt_tokens=200, output_tokens=16)
    ladder = run_ladder(endpoint, plan, counters=server_counters(endpoint))
    assert ladder.ignore_eos
    rows = [row for run in ladder.stages for row in run.requests]
    assert all(row.ok and row.completion_tokens == 16 for row in rows)
    assert all(abs((row.prompt_tokens or 0) - 200) <= 30 for row in rows)  # words are counted, not tokens
    assert ladder.stages[0].server["llamacpp:tokens_predicted_total"] == 6 * 16
    parts = summarise(ladder, Slo(ttft_ms=60_000))
    assert all(s.good.value == 1 and s.cached is not None and s.cached < 0.2 for s in parts)
    LadderResults(**look.results(ladder, parts, knee(parts)))


def test_a_shared_prefix_is_found_in_the_cache(endpoint: Endpoint) -> None:
    plan = Plan((Stage("closed", 1, 4),), prompt_tokens=1600, output_tokens=2, shared_prefix=0.8, seed=9)
    (s,) = summarise(run_ladder(endpoint, plan), Slo())
    assert s.cached is not None
    assert s.cached > 0.3
