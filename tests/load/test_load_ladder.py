"""The ladder against a server whose behaviour is known, for what a real engine cannot be made to do on demand."""

from __future__ import annotations

import asyncio
import threading

import pytest
from known_server import Known, serving

from nemolab.client import Endpoint
from nemolab.core import aio
from nemolab.core.errors import NemolabError
from nemolab.load import Plan, Slo, Stage, run_ladder, summarise


def test_closed_stages_keep_their_level_and_time_from_usage() -> None:
    known = Known()
    plan = Plan((Stage("closed", 1, 3), Stage("closed", 4, 12)), prompt_tokens=207, output_tokens=21)
    seen: list[tuple[int, int, str]] = []
    with serving(known) as endpoint:
        ladder = run_ladder(endpoint, plan, progress=lambda *what: seen.append(what))
    one, four = summarise(ladder, Slo())
    assert known.most == 4
    assert [s.ok for s in (one, four)] == [3, 12]
    assert {row.prompt_tokens for run in ladder.stages for row in run.requests} == {207}  # calibrated
    assert one.tpot[0].value == pytest.approx(2.0, rel=0.5)  # two chunks, 21 tokens: a chunk gap would read 40 ms
    assert four.output_s.value > 2 * one.output_s.value
    assert seen[-1] == (15, 15, "4 streams")


def test_prompts_share_nothing_unless_told() -> None:
    known = Known(ttft_s=0)
    with serving(known) as endpoint:
        run_ladder(endpoint, Plan((Stage("closed", 2, 8),), prompt_tokens=207, output_tokens=2))
        cold = known.prompts[3:]
        run_ladder(
            endpoint, Plan((Stage("closed", 2, 8),), prompt_tokens=207, output_tokens=2, shared_prefix=0.5, seed=1)
        )
    assert len({text[:30] for text in cold}) == len(cold)
    warm = known.prompts[-8:]
    assert len({text[:200] for text in warm}) == 1
    assert len(set(warm)) == 8


def test_a_server_that_does_not_know_ignore_eos() -> None:
    known = Known(ttft_s=0, takes_ignore_eos=False)
    with serving(known) as endpoint:
        ladder = run_ladder(endpoint, Plan((Stage("closed", 1, 3),), output_tokens=2))
    assert not ladder.ignore_eos
    assert "ignore_eos" in ladder.notes[0]
    assert all(row.ok for row in ladder.stages[0].requests)


def test_a_failing_stage_ends_the_ladder() -> None:
    known = Known(ttft_s=0, fails=lambda number: number > 6)
    plan = Plan((Stage("closed", 1, 3), Stage("closed", 2, 40), Stage("closed", 4, 40)), output_tokens=2)
    with serving(known) as endpoint:
        ladder = run_ladder(endpoint, plan)
    assert len(ladder.stages) == 2
    assert ladder.stages[1].stopped
    assert len(ladder.stages[1].requests) < 40
    assert "ended at 2 streams" in ladder.notes[-1]


def test_a_few_errors_do_not_end_it() -> None:
    known = Known(ttft_s=0, fails=lambda number: number == 10)
    with serving(known) as endpoint:
        ladder = run_ladder(endpoint, Plan((Stage("closed", 2, 40),), output_tokens=2))
    (s,) = summarise(ladder, Slo())
    assert (s.n, s.ok, s.errors) == (40, 39, (("http 5xx", 1),))


def test_open_load_does_not_wait_for_answers() -> None:
    known = Known(ttft_s=0.5)
    plan = Plan((Stage("open", 50, 20),), output_tokens=2, poisson=False)
    with serving(known) as endpoint:
        ladder = run_ladder(endpoint, plan)
    rows = ladder.stages[0].requests
    assert known.most == 20  # all are sent before the first is answered
    assert [row.due_s for row in rows] == pytest.approx([i / 50 for i in range(20)])


def test_counters_before_and_after_a_stage() -> None:
    readings = iter([{"a": 1.0, "same": 5.0}, {"a": 4.0, "same": 5.0}])
    with serving(Known(ttft_s=0)) as endpoint:
        plan = Plan((Stage("closed", 1, 3),), output_tokens=2)
        ladder = run_ladder(endpoint, plan, counters=lambda: next(readings))
    assert ladder.stages[0].server == {"a": 3.0}


def test_no_server_is_one_clear_error() -> None:
    with pytest.raises(NemolabError, match="does not answer a small request"):
        run_ladder(Endpoint("http://127.0.0.1:1/v1", "x"), Plan((Stage("closed", 1, 1),)))


def test_an_interrupt_cancels_the_work_and_waits_for_it() -> None:
    ended = threading.Event()
    main = threading.main_thread()
    assert threading.current_thread() is main

    async def work() -> None:
        import signal

        threading.Timer(0.2, lambda: signal.pthread_kill(main.ident or 0, signal.SIGINT)).start()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        aio.run(work())
    assert ended.is_set()
