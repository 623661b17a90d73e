"""Settings of a launch held against each other: what is asked, compared and concluded, from plan to replay."""

from __future__ import annotations

import json
import math
import shutil
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_notebook import run_notebook

from nemolab import models
from nemolab.client.collect import Collected, StreamResult, Token
from nemolab.client.prometheus import parse
from nemolab.core.errors import UsageError
from nemolab.core.finding import Severity
from nemolab.engines import process, smoke_launch
from nemolab.engines.llamacpp_server import common_params, options
from nemolab.engines.logs import Quantity
from nemolab.longctx import arms_agree, arms_find, arms_look, arms_plan
from nemolab.longctx.arms import Measured, measure
from nemolab.longctx.arms_agree import Course
from nemolab.longctx.arms_clock import first_token, hits, spent
from nemolab.longctx.arms_params import PriceParams, planner_off, results_of
from nemolab.longctx.arms_rows import Asked, How, Point, Said
from nemolab.longctx.arms_spec import Arm, PriceSpec, parse_arms, smoke_spec
from nemolab.miniature import checkpoint_folder
from nemolab.models import dummy

NOTEBOOK = "53_price_long_context"
NANO = PriceSpec("nano_bf16_1xh200_vllm:long-context", (32_768, 1_048_576))


# What is priced


def test_arms_are_read() -> None:
    assert parse_arms(["as usual:", 'b: args.x=1 env.Y="two words"']) == (
        Arm("as usual"),
        Arm("b", ("args.x=1", "env.Y=two words")),
    )
    assert parse_arms([]) == (Arm("as it is"),)
    assert parse_arms(["c: upto=512K args.x=1"]) == (Arm("c", ("args.x=1",), 524_288),)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (["args.x=1"], "not an arm: 'args.x=1'"),
        ([": args.x=1"], "not an arm"),
        (["a: args.x"], "not a setting: 'args.x'"),
        (["a: =1"], "not a setting"),
        (["a: args.x='1"], "not an arm"),
        (["a:", "b:", "a: args.x=1"], "two arms are called 'a'"),
        (["a: upto=much"], "arm a, upto: 'much' is not a length"),
        (["a: upto=1K upto=2K"], "upto is said twice"),
    ],
)
def test_arms_that_cannot_be_read(arms: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_arms(arms)


@pytest.mark.parametrize("lengths", ["32K,much", "0", "32K,"])
def test_lengths_that_cannot_be_read_name_the_parameter(lengths: str) -> None:
    with pytest.raises(UsageError, match=r"^lengths: '"):
        PriceParams(lengths=lengths).spec()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": (Arm("a", ("nosuch=1",)),)}, "arm a: cannot set 'nosuch'"),
        ({"arms": (Arm("a", ("args.max-num-batched-tokenz=1",)),)}, "arm a: --max-num-batched-tokenz is unknown"),
        ({"extra_args": "--load-formt dummy"}, "--load-formt is unknown"),
        ({"arms": (Arm("a"), Arm("b")), "target": "attach", "base_url": "http://x/v1"}, "2 arms and one server"),
        ({"target": "attach"}, "base_url is not set"),
        ({"profile": "ultra_nvfp4_4xb200_nim"}, "nim does not run as one process"),
        ({"profile": "nano_bf16_1xh200"}, "no profile"),
        ({"lengths": ()}, "no lengths"),
        ({"settings": ("args.max-model-len=100",)}, "arm as it is: a context of 100 tokens leaves no room"),
    ],
)
def test_what_cannot_be_priced_is_one_clear_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        arms_plan.look_at(replace(NANO, **changes))


def test_a_folder_that_cannot_work_is_refused_before_any_arm_starts(tmp_path: Path) -> None:
    dummy.write(models.find("nano-bf16"), tmp_path / "nano", checkpoint_folder())
    spec = replace(NANO, target="process", python=sys.executable, model_dir=str(tmp_path / "nano"))
    assert arms_plan.look_at(spec)
    words = tmp_path / "nano/tokenizer.json"
    words.write_text(words.read_text().replace('"<think>"', '"<thought>"'))
    with pytest.raises(UsageError, match=r"tokenizer.json: the tokenizer has no <think>, which"):
        arms_plan.look_at(spec)
    assert arms_plan.look_at(replace(spec, settings=("args.reasoning-parser=null",)))
    (tmp_path / "nano/config.json").write_text((checkpoint_folder() / "config.json").read_text())
    with pytest.raises(UsageError, match="not nano-bf16: 8 layers, not 52"):
        arms_plan.look_at(spec)


def test_each_arm_is_a_question_of_its_own() -> None:
    spec = replace(NANO, arms=(Arm("a"), Arm("b", ("args.x=1",))))
    assert [one.arms for one in spec.each()] == [(Arm("a"),), (Arm("b", ("args.x=1",)),)]
    assert measure(next(spec.each())).state == "planned"


def test_the_tokenizer_is_the_checkpoints_unless_another_is_named() -> None:
    assert replace(NANO, model_dir="/models/nano/").tokenizer_name == "/models/nano/tokenizer.json"
    assert replace(NANO, profile="miniature_llamacpp").tokenizer_name == "miniature"
    assert replace(NANO, tokenizer="t.json", model_dir="/models/nano").tokenizer_name == "t.json"
    with pytest.raises(UsageError, match="no tokenizer"):
        _ = NANO.tokenizer_name


# What is planned


def test_an_arm_may_be_asked_less() -> None:
    whole, part = arms_plan.look_at(replace(NANO, arms=(Arm("a"), Arm("b", (), 524_288))))
    assert whole.lengths == (32_768, 1_048_576 - 64 - 64)
    assert part.lengths == (32_768,)
    assert arms_find.soonest((part, whole)) is whole, "what is asked less is not planned to be faster"
    with pytest.raises(UsageError, match=r"no length up to 1,024 tokens"):
        arms_plan.look_at(replace(NANO, arms=(Arm("b", (), 1024),)))


def test_arms_are_planned_by_what_they_change() -> None:
    arms = (
        Arm("chunk 16384"),
        Arm("none", ("args.enable-prefix-caching=false", "args.mamba-cache-mode=none")),
        Arm("bf16 KV", ("args.kv-cache-dtype=auto",)),
    )
    usual, none, bf16 = arms_plan.look_at(replace(NANO, arms=arms))
    assert usual.lengths == (32_768, 1_048_576 - 64 - 64)  # the answer needs room
    assert usual.fits
    assert none.expected["kv_tokens"] > usual.expected["kv_tokens"]
    assert bf16.expected["kv_tokens"] == pytest.approx(usual.expected["kv_tokens"] / 2, rel=0.05)
    assert (usual.other_types, bf16.other_types) == (False, True)
    assert usual.bounds[1].bound_s == none.bounds[1].bound_s
    assert bf16.bounds[1].step_bound_s > usual.bounds[1].step_bound_s
    # 2 FLOPs a weight and token, and attention's half square: known to be about 61 PFLOP for this model at 1M.
    assert usual.bounds[1].flops == pytest.approx(6.08e16, rel=0.01)
    table = arms_look.plan_rows((usual, none, bf16))
    assert [row["arms"] for row in table] == ["chunk 16384, none", "bf16 KV"] * 2
    shared = {finding.where for finding in arms_look.plan_findings((usual, none, bf16))}
    assert shared == {"chunk 16384", "bf16 KV"}  # a block of its own size each; without cache there is none to name


@pytest.mark.parametrize(
    ("changes", "dummy"),
    [
        ({"extra_args": "--load-format dummy --no-enable-flashinfer-autotune"}, True),
        ({"extra_args": "--load-format=dummy"}, True),
        ({"settings": ("args.load-format=dummy",)}, True),
        ({"extra_args": "--load-format auto", "settings": ("args.load-format=dummy",)}, False),
        ({}, False),
    ],
)
def test_dummy_weights_are_known(changes: dict[str, Any], dummy: bool) -> None:
    (planned,) = arms_plan.look_at(replace(NANO, arms=(Arm("a"),), **changes))
    assert planned.without_weights is dummy


def test_lengths_beyond_the_context_are_cut_once() -> None:
    (plan,) = arms_plan.look_at(PriceSpec("miniature_llamacpp", (512, 100_000, 200_000)))
    assert plan.context == 16_384
    assert plan.lengths == (512, 16_384 - 128)
    assert (plan.bounds, plan.expected, plan.fits) == ((), {}, None)


def test_llama_cpp_is_started_with_the_arms_batch_sizes(tmp_path: Path) -> None:
    spec = PriceSpec("miniature_llamacpp", (512,), (Arm("a", ("args.batch-size=256", "args.ubatch-size=64")),))
    argv = smoke_launch.launch(smoke_spec(spec, spec.arms[0]), tmp_path).argv
    assert argv[-4:] == ("--batch-size", "256", "--ubatch-size", "64")
    params = common_params(options(list(argv[argv.index("--model") :])))
    assert (params.n_batch, params.n_ubatch) == (256, 64)


# What is compared


def token(text: str, logprob: float | None = -0.1, **others: float) -> Token:
    return Token(text, logprob, ((text, logprob), *others.items()))


def said(*tokens: Token, how: How = "cold") -> Said:
    return Said(how, "".join(each.text for each in tokens), tokens)


def test_the_same_tokens_are_the_same_answer() -> None:
    verdict, moved, at, _ = arms_agree.judge(said(token("4"), token("2")), said(token("4", -0.12), token("2", -1.0)))
    assert (verdict, at) == ("same", None)
    assert moved == pytest.approx(0.02)


def test_a_near_tie_is_rounding_and_anything_else_is_not() -> None:
    first, near = said(token("a", -0.7, b=-0.8)), said(token("b", -0.7, a=-0.75))
    assert arms_agree.judge(first, near)[0] == "near tie"
    one_sided = said(token("b", -0.1, a=-3.0))
    assert arms_agree.judge(first, one_sided)[0] == "differs"
    unknown = said(token("c", -0.1))
    assert arms_agree.judge(first, unknown)[:3] == ("differs", None, 1)


def test_a_token_held_for_much_less_likely_has_moved() -> None:
    assert arms_agree.judge(said(token("a", -0.1)), said(token("a", -0.7)))[0] == "moved"
    assert arms_agree.judge(said(token("a", -0.1)), said(token("a", -0.5)))[0] == "same"


def test_no_number_and_no_logprobs() -> None:
    assert arms_agree.judge(said(token("!")), said(token("!", None)))[3].startswith("a logprob is no number")
    bare = Said("cold", "42", ())
    assert arms_agree.judge(bare, replace(bare, text="43"))[0] == "differs"
    assert arms_agree.judge(bare, bare)[0] == "same"
    assert arms_agree.judge(said(token("a"), token("b")), said(token("a")))[0] == "differs"


def test_logprobs_of_a_stream_are_its_tokens_also_without_a_text() -> None:
    got = Collected(started=0.0)
    part = {"token": "\ufffd", "logprob": -0.5, "top_logprobs": [{"token": "a", "logprob": None}]}
    chunk = {"choices": [{"delta": {"content": ""}, "logprobs": {"content": [part]}}]}
    got.add(json.dumps(chunk).encode(), 0.25)
    got.add(b'{"choices": [{"text": "x", "logprobs": {"tokens": ["x"], "token_logprobs": [0]}}]}', 0.5)  # completions
    seen = got.result(None, 0.0)
    assert seen.tokens == (Token("\ufffd", -0.5, (("a", None),)),)
    assert (seen.ttft_s, seen.chunks) == (0.25, 2)


def arm(name: str, answers: dict[int, Sequence[Said]], **fields: Any) -> Measured:
    points = tuple(
        Point(
            n, n, n / 1000, again_s=n / 50_000, cached=n, decode_ms=4.0, decode_by="engine", found=True, said=tuple(s)
        )
        for n, s in answers.items()
    )
    return Measured(name, "started", asked=Asked(17, points), **fields)


LENGTHS = (1024, 2048, 4096, 8192)
GOOD = {n: (said(token("7")), said(token("7"), how="warm")) for n in LENGTHS}


def bad_from(first: int, drift: float = 0.0) -> dict[int, Sequence[Said]]:
    return {
        n: (said(token("8" if n >= first else "7", -0.1 - drift * math.log2(n / 1024))),) for n in LENGTHS
    }  # fmt: skip


def test_a_cliff_is_a_suspect_kernel_with_its_length() -> None:
    tried = [arm("a", GOOD), arm("b", bad_from(4096))]
    rows = arms_agree.compare(tried)
    assert arms_agree.agreed_to(rows) == 2048
    bad = [course for course in arms_agree.courses(rows) if course.shape != "agrees"]
    assert bad == [Course("b", "settings", "a", "cliff", 2048, 4096)]
    plans = [replace(plan, pitches={"hidden state": 2**31 // 3000}) for plan in plans_of("a", "b")]
    (found,) = [f for f in arms_find.findings(plans, tried, rows) if f.code == "X-KERNEL"]
    assert found.severity is Severity.ERROR
    assert "up to 2,048 tokens, other ones from 4,096 on" in found.message
    assert "2^31 elements of hidden state at 3,000" in found.message
    results = results_of(plans, tried, rows, arms_find.findings(plans, tried, rows))
    assert (results.agreeing, results.agreed_to_tokens, results.suspect_from_tokens) == (False, 2048, 4096)
    assert not results.good
    assert "agree up to 2,048 tokens and differ at 4,096 with b" in arms_find.sentence(plans, tried, rows)


def test_answers_without_numbers_are_an_error_by_themselves() -> None:
    nan, fine = [said(token("\0", None))], [said(token("yes"))]
    arms = [arm("a", {1024: fine, 2048: nan, 4096: nan}), arm("b", {1024: fine, 2048: nan, 4096: fine})]
    rows = arms_agree.compare(arms)
    assert [(row.tokens, row.verdict) for row in rows] == [(1024, "same"), (4096, "differs")]
    plans = plans_of("a", "b")
    found = [f for f in arms_find.findings(plans, arms, rows) if f.code == "X-NAN"]
    assert [(f.where, f.severity) for f in found] == [("a", Severity.ERROR), ("b", Severity.ERROR)]
    assert "a: no numbers at 2,048 and 4,096 tokens" in found[0].message
    assert "At 1,024 they were numbers" in found[0].message
    results = results_of(plans, arms, rows, found)
    assert (results.good, results.broken_from_tokens) == (False, 2048)
    assert "no numbers (NaN) from 2,048 tokens on with a and b" in arms_find.sentence(plans, arms, rows)
    dummy = [replace(plan, without_weights=True) for plan in plans]
    noise = [f for f in arms_find.findings(dummy, arms, rows[:1]) if f.code == "X-NAN"]
    assert [f.severity for f in noise] == [Severity.INFO, Severity.INFO], "dummy weights cause it by themselves"
    assert "128,000" in noise[0].message
    assert "NaN" not in arms_find.sentence(dummy, arms, rows)
    whole = [arm("a", {1024: fine}), arm("b", {1024: fine})]
    assert not [f for f in arms_find.findings(plans, whole, arms_agree.compare(whole)) if f.code == "X-NAN"]


def test_the_odd_one_is_the_suspect_wherever_it_stands() -> None:
    tried = [arm("odd", bad_from(4096)), arm("b", GOOD), arm("c", GOOD)]
    rows = arms_agree.compare(tried)
    assert arms_agree.reference(tried) == "b"
    assert [course.arm for course in arms_agree.courses(rows) if course.shape == "cliff"] == ["odd"]


def test_a_slope_announces_itself_and_is_no_overflow() -> None:
    rows = arms_agree.compare([arm("a", GOOD), arm("b", bad_from(8192, drift=0.2))])
    (course,) = [course for course in arms_agree.courses(rows) if course.shape != "agrees"]
    assert (course.shape, course.bad) == ("slope", 8192)
    found = arms_find.findings(plans_of("a", "b"), [], rows)
    assert [(f.code, f.severity) for f in found] == [("X-SLOPE", Severity.WARNING)]


@pytest.mark.parametrize(("other_types", "code"), [(True, "X-TYPES"), (False, "X-OTHER")])
def test_other_answers_everywhere_are_no_offset(other_types: bool, code: str) -> None:
    plans = [replace(plan, other_types=other_types) for plan in plans_of("a", "b")]
    rows = arms_agree.compare([arm("a", GOOD), arm("b", bad_from(0))])
    assert [f.code for f in arms_find.findings(plans, [], rows)] == [code]
    assert arms_agree.agreed_to(rows) == 0


def test_other_answers_at_a_length_in_between_are_no_cliff() -> None:
    odd = {n: (said(token("8" if n == 2048 else "7")),) for n in LENGTHS}
    rows = arms_agree.compare([arm("a", GOOD), arm("b", odd)])
    assert Course("b", "settings", "a", "unsteady", 1024, 2048) in arms_agree.courses(rows)
    (found,) = arms_find.findings(plans_of("a", "b"), [], rows)
    assert (found.code, found.severity) == ("X-OTHER", Severity.ERROR)
    assert "at some lengths, first at 2,048 tokens" in found.message


def test_a_cache_that_answers_otherwise_is_not_the_settings() -> None:
    stale = {n: (said(token("7")), said(token("3"), how="warm")) for n in LENGTHS}
    rows = arms_agree.compare([arm("a", GOOD), arm("b", stale)])
    bad = {(course.arm, course.relation, course.shape) for course in arms_agree.courses(rows)} - {
        ("a", "cache", "agrees"), ("b", "settings", "agrees"),
    }  # fmt: skip
    assert bad == {("b", "cache", "everywhere")}


def test_offsets_between_two_lengths() -> None:
    pitches = {"hidden state": 2688, "small": 8}
    assert arms_agree.offsets(pitches, 524_288, 1_048_576) == [
        "2^31 elements of hidden state at 798,915",
        "2^32 bytes of hidden state at 798,915",
    ]
    assert arms_agree.offsets(pitches, 800_000, 1_048_576) == []


def plans_of(*names: str) -> list[arms_plan.Planned]:
    spec = PriceSpec("miniature_llamacpp", LENGTHS, tuple(map(Arm, names)))
    return list(arms_plan.look_at(spec))


# What it means


def test_what_lint_refuses_is_said_where_the_verdict_is() -> None:
    arms = (Arm("a"), Arm("b", ("args.max-num-batched-tokens=many",)))
    plans = arms_plan.look_at(replace(NANO, arms=arms))
    tried = [measure(one) for one in replace(NANO, arms=arms).each()]
    found = arms_find.findings(plans, tried, ())
    assert [(finding.code, finding.where) for finding in found] == [("F-INT", "b")]
    assert not results_of(plans, tried, (), found).good
    assert arms_find.sentence(plans, tried, ()).endswith("every arm fits; errors in the launch of b.")
    started = [Measured("a", "started"), Measured("b", "started")]  # it runs after all: not a fault of its answers
    assert arms_find.findings(plans, started, ()) == []


def test_the_axis_has_room_for_the_names_of_its_ends() -> None:
    for lengths in ((32_768, 1_048_448), (512,)):
        plans = arms_plan.look_at(replace(NANO, lengths=lengths))
        axis = arms_look.time_figure(plans, ()).layout.xaxis
        assert 10 ** axis.range[0] < 0.9 * lengths[0]
        assert 10 ** axis.range[1] > 1.1 * lengths[-1]


def test_the_sentence_is_for_a_stakeholder() -> None:
    plans = arms_plan.look_at(replace(NANO, lengths=(32_768,), arms=(Arm("a"), Arm("b"))))
    point = Point(32_768, 32_768, 0.5, again_s=0.01, cached=30_000, decode_ms=3.93, decode_by="engine", found=True)
    tried = [
        Measured("a", "started", asked=Asked(0, (replace(point, cold_s=0.6),))),
        Measured("b", "started", asked=Asked(0, (point,))),
    ]
    share = round(100 * plans[0].bounds[0].bound_s / 0.5)
    assert arms_find.sentence(plans, tried, ()) == (
        f"32,768 tokens: first token after 0.50 s ({share} % of the peak), then 3.9 ms a token, fastest with b; "
        "longer by 20 % with a; a second question saves 98.3 % of the wait with a (at 32,768 tokens)."
    )
    results = results_of(plans, tried, (), ())
    assert (results.best_arm, results.ttft_s, results.warm_saving, results.agreeing) == ("b", 0.5, 0.9833, None)
    assert results.good
    (row, _) = arms_look.time_rows(plans, tried)
    assert row["TFLOP/s a GPU"] == pytest.approx(plans[0].bounds[0].flops / 0.6 / 1e12)


def test_plan_and_log_are_compared_number_by_number() -> None:
    (plan,) = arms_plan.look_at(NANO)
    capacity = {
        "kv_cache": Quantity(64.0, "GiB"),
        "weights": Quantity(58.92, "GiB"),
        "cuda_graphs": Quantity(1.0, "GiB"),
    }
    tried = [Measured("as it is", "started", capacity=capacity)]
    rows = arms_look.memory_rows([plan], tried)
    assert [row["value"] for row in rows] == ["weights", "kv cache"]
    assert planner_off([plan], tried) == pytest.approx(abs(plan.expected["kv_cache"] - 64) / 64)


def test_the_first_token_of_a_stream_that_is_mostly_silent() -> None:
    spoken = StreamResult(True, first_byte_s=1.0, ttft_s=1.1, completion_tokens=8, chunks=8)
    assert first_token(spoken) == 1.1
    assert first_token(replace(spoken, chunks=1)) == 1.0  # the only chunk may be the last token's
    assert first_token(replace(spoken, chunks=0, ttft_s=None)) == 1.0
    assert first_token(replace(spoken, completion_tokens=None)) == 1.1


def test_one_request_between_two_scrapes() -> None:
    name = "vllm:request_decode_time_seconds"

    def metrics(total: float, count: int, cached: int) -> Any:
        return parse(f"{name}_sum {total}\n{name}_count {count}\nvllm:prefix_cache_hits_total {cached}\n")

    before, after = metrics(1.0, 3, 100), metrics(1.25, 4, 164)
    assert spent(before, after, "decode") == pytest.approx(0.25)
    assert spent(before, metrics(1.5, 5, 164), "decode") is None  # somebody else's request is in it
    assert spent(None, after, "decode") is None
    assert hits(before, after) == 64


def test_parameters_of_the_notebook() -> None:
    spec = PriceParams(arms=["a: args.x=1"], lengths="32K,1M").spec()
    assert (spec.lengths, spec.arms) == ((32_768, 1_048_576), (Arm("a", ("args.x=1",)),))


# The notebook, with a server in vLLM's place for faults that no real one shows on demand


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Parameters that start the fake in vLLM's place, in a state folder of its own."""
    fake = Path(__file__).parents[1] / "support" / "fake_vllm.py"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{fake}' \"$@\"\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "nano"
    folder.mkdir()
    shutil.copy(checkpoint_folder() / "tokenizer.json", folder)
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    for name in ("NEMOLAB_RUN", "NEMOLAB_RUNNER_PID"):
        monkeypatch.delenv(name, raising=False)
    return {
        "target": "process",
        "python": str(python),
        "model_dir": str(folder),
        "extra_args": "--load-format dummy",
        "decode_tokens": 16,
    }


def test_an_arm_that_answers_otherwise_beyond_1024_tokens_is_named_and_replayed(
    vllm: dict[str, Any], tmp_path: Path
) -> None:
    asked = vllm | {
        "lengths": "600,1000,1200,1600",
        "arms": [
            "usual:",
            "chunk 8192: args.max-num-batched-tokens=8192 env.FAKE_WRONG_BEYOND=1024",
            "no cache: args.enable-prefix-caching=false args.mamba-cache-mode=none",
        ],
    }
    live = run_notebook(NOTEBOOK, tmp_path, **asked)
    assert (live.values["agreed_to_tokens"], live.values["suspect_from_tokens"]) == (1000, 1200)
    assert live.values["arms_failed"] == 0
    assert not live.values["good"]
    assert "X-KERNEL" in live.codes
    shown = "\n".join(live.text)
    assert "chunk 8192, other settings, against usual: the same answers up to 1,000 tokens" in shown
    assert "FAILED: 1,600 tokens: first token after" in shown
    assert live.values["warm_saving"] > 0
    assert live.values["planner_off"] is not None
    assert any("engine" in text and "decode step" in text for text in live.text)
    assert run_notebook(NOTEBOOK, tmp_path, replay=True, **asked) == live


def test_an_arm_that_dies_is_a_result_and_the_next_one_is_measured(vllm: dict[str, Any], tmp_path: Path) -> None:
    done = run_notebook(
        NOTEBOOK, tmp_path, **vllm, lengths="600,1200", arms=["dies: env.FAKE_DIES_BEYOND=1000", "lives:"]
    )
    assert (done.values["arms_failed"], done.values["best_arm"]) == (1, "lives")
    assert {"X-ARM", "L-008"} <= done.codes
    assert done.values["agreeing"]  # where both answered


@pytest.mark.parametrize(("fault", "code"), [("FAKE_DRIFT=0.2", "X-SLOPE"), ("FAKE_WRONG_WARM=1", "X-OTHER")])
def test_faults_of_one_arm(vllm: dict[str, Any], fault: str, code: str) -> None:
    spec = PriceParams(**vllm, lengths="600,1200,4200", arms=["usual:", f"odd: env.{fault}"]).spec()
    tried = [measure(one) for one in spec.each()]
    rows = arms_agree.compare(tried)
    found = {f.code for f in arms_find.findings(arms_plan.look_at(spec), tried, rows) if f.severity != "info"}
    assert found - {"X-NEEDLE"} == {code}
    assert ("X-NEEDLE" in found) == (code == "X-OTHER")  # asked again, the wrong answer lacks it
    assert not any(one.failed for one in tried)
    assert process.running() == ()  # each was stopped before the next one started


def test_tokens_without_a_text_are_measured_all_the_same(vllm: dict[str, Any]) -> None:
    (one,) = PriceParams(**vllm, lengths="600", settings=["env.FAKE_MUTE=1"]).spec().each()
    tried = measure(one)
    (point,) = tried.asked.points
    assert not tried.failed
    assert point.warm
    assert point.decode_ms
    assert point.decode_by == "engine"
    assert not point.found
    codes = {finding.code for finding in arms_find.findings(arms_plan.look_at(one), [tried], ())}
    assert codes == {"X-NEEDLE", "X-NOTE"}


def test_time_that_is_up_leaves_lengths_out_and_says_so(vllm: dict[str, Any], tmp_path: Path) -> None:
    spec = PriceParams(**vllm, lengths="600,40000", max_s=1e-6).spec()
    (tried,) = [measure(one) for one in spec.each()]
    assert [point.tokens for point in tried.asked.points] == [600]
    assert any("40,000 tokens: not asked" in note for note in tried.asked.notes)


def test_what_is_missing_is_said_before_anything_starts(vllm: dict[str, Any], tmp_path: Path) -> None:
    for wrong, message in (
        ({"python": str(tmp_path / "none")}, "no interpreter there"),
        ({"model_dir": str(tmp_path)}, "cannot read the tokenizer"),
        ({"lengths": "20"}, "too few"),
    ):
        (one,) = PriceParams(**vllm | wrong).spec().each()
        with pytest.raises(UsageError, match=message):
            measure(one)


# The real engine


@pytest.mark.live
def test_two_batch_sizes_of_llama_cpp_agree_and_a_broken_arm_is_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEMOLAB_STATE", str(tmp_path / "state"))
    asked: dict[str, Any] = {
        "profile": "miniature_llamacpp",
        "target": "process",
        "lengths": "512,2048",
        "decode_tokens": 16,
        "arms": [
            "batch 2048:",
            "batch 256: args.batch-size=256 args.ubatch-size=64",
            "broken: args.reasoning-format=nosuch",
        ],
    }
    live = run_notebook(NOTEBOOK, tmp_path, **asked)
    assert live.values["longest_tokens"] == 2048
    assert live.values["agreeing"]
    assert live.values["agreed_to_tokens"] == 2048
    assert live.values["warm_saving"] > 0.5
    assert live.values["decode_ms"] != 0, "a client that read all at once measured nothing"
    assert (live.values["arms"], live.values["arms_failed"]) == (3, 1)
    assert not live.values["good"]
    assert "X-NEEDLE" not in live.codes  # the miniature finds them all
    assert run_notebook(NOTEBOOK, tmp_path, replay=True, **asked) == live
