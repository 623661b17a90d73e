"""Statistics of a ladder on rows whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from nemolab.core.errors import UsageError
from nemolab.load import LadderResult, Plan, Request, Slo, Stage, StageRun, knee, look, stages, summarise
from nemolab.load.params import LadderResults

ROW = Request(
    due_s=0, sent_s=0, ok=True, total_s=1.05, ttft_s=0.05, tpot_s=0.01, prompt_tokens=100, completion_tokens=101
)
BAD = Request(due_s=0, sent_s=0, ok=False, total_s=0.1, error_class="http 5xx", error="HTTP 500: no")


def ladder(*runs: StageRun) -> LadderResult:
    return LadderResult(Plan(tuple(run.stage for run in runs), output_tokens=101), runs, True)


def run(level: float, rows: list[Request], wall_s: float, mode: str = "closed") -> StageRun:
    return StageRun(Stage(mode, level, len(rows)), tuple(rows), wall_s, 0.1)  # type: ignore[arg-type]


def test_rates_come_from_usage_and_wall_time() -> None:
    (s,) = summarise(ladder(run(2, [ROW] * 20, 10.5)), Slo())
    assert s.output_s.value == pytest.approx(20 * 101 / 10.5)
    assert s.total_s.value == pytest.approx(20 * 201 / 10.5)
    assert s.in_flight == pytest.approx(2.0)
    assert s.output_s.low == pytest.approx(s.output_s.value)  # equal requests leave nothing to resample


def test_interval_of_a_rate_holds_its_value_and_widens_with_spread() -> None:
    rows = [replace(ROW, total_s=1 + 0.1 * (i % 5)) for i in range(40)]
    (s,) = summarise(ladder(run(1, rows, sum(r.total_s for r in rows))), Slo())
    assert s.requests_s.low < s.requests_s.value < s.requests_s.high


def test_an_error_is_never_good_and_never_timed() -> None:
    (s,) = summarise(ladder(run(1, [ROW] * 9 + [BAD], 10.0)), Slo(ttft_ms=60, tpot_ms=20))
    assert (s.good.successes, s.good.n) == (9, 10)
    assert s.errors == (("http 5xx", 1),)
    assert s.ttft[0].n == 9


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        (Slo(ttft_ms=49), False),
        (Slo(ttft_ms=51), True),
        (Slo(tpot_ms=9), False),
        (Slo(e2e_ms=1049), False),
        (Slo(e2e_ms=1051, tpot_ms=11, ttft_ms=51), True),
    ],
)
def test_service_level(slo: Slo, good: bool) -> None:
    (s,) = summarise(ladder(run(1, [ROW], 1.05)), slo)
    assert bool(s.good.successes) is good


def test_open_load_counts_waiting_in_the_client() -> None:
    late = replace(ROW, due_s=1.0, sent_s=3.0)
    (s,) = summarise(ladder(run(10, [late], 5, "open")), Slo(ttft_ms=1000))
    assert s.ttft[0].value == pytest.approx(2050)
    assert not s.good.successes
    assert "late" in s.limited


def test_client_that_lags_is_named() -> None:
    (s,) = summarise(ladder(run(1, [replace(ROW, lag_s=0.02)] * 5, 5)), Slo())
    assert "20.0 ms late" in s.limited
    assert "L-CLIENT" in [f.code for f in look.findings(ladder(run(1, [ROW], 1)), (s,))]


def test_short_outputs_and_cache_hits_are_found() -> None:
    rows = [replace(ROW, completion_tokens=50, cached_tokens=80)] * 10
    load = ladder(run(1, rows, 10))
    found = {f.code for f in look.findings(load, summarise(load, Slo()))}
    assert {"L-SHORT", "L-CACHE"} <= found


def test_knee() -> None:
    rates = {1: 100.0, 2: 190.0, 4: 210.0, 8: 200.0}
    parts = summarise(ladder(*(run(c, [ROW] * 20, 20 * 101 / x) for c, x in rates.items())), Slo(ttft_ms=60))
    found = knee(parts)
    assert (found.level, found.best, found.best_good) == (2, 4, 8)
    assert knee(parts[:2]).level is None


def test_results_and_look_of_a_ladder_where_everything_failed() -> None:
    load = ladder(run(1, [BAD] * 5, 1.0))
    parts = summarise(load, Slo(ttft_ms=1))
    values = LadderResults(**look.results(load, parts, knee(parts)))
    assert values.errors == 5
    assert values.ttft_p50_ms is None
    assert "no load" in look.verdict(parts, knee(parts), Slo(ttft_ms=1), 0.9)
    assert [row["TTFT ms"] for row in look.latency_table(parts)] == ["-"] * 3


def test_a_ladder_survives_json() -> None:
    load = ladder(run(1, [ROW, BAD], 1.0))
    adapter = TypeAdapter(LadderResult)
    assert adapter.validate_json(adapter.dump_json(load)) == load


def test_figures_draw_every_stage() -> None:
    load = ladder(run(1, [ROW] * 20, 20), run(2, [ROW] * 20, 10))
    parts = summarise(load, Slo())
    assert list(look.throughput_figure(load, parts).data[1].x) == [1, 2]
    assert list(look.latency_figure(load, parts, "ttft", 100).data[0].y) == pytest.approx([50, 50])
    assert len(look.goodput_figure(load, parts).data) == 2


def test_stages() -> None:
    assert [s.level for s in stages("1,2,4")] == [1, 2, 4]
    assert [s.requests for s in stages("1,8", requests=12)] == [12, 24]
    assert stages("0.5,2", "open")[0].level == 0.5


@pytest.mark.parametrize("text", ["", "0", "4,2", "1,1", "x", "1.5"])
def test_stages_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="not stages"):
        stages(text)
