"""The roofline beside measured first tokens: in tables, in the figure, and in 51_validate_long_context."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracle import Oracle, serving
from run_notebook import run_notebook

from nemolab.core.errors import UsageError
from nemolab.core.intervals import quantile
from nemolab.longctx import look, roofline_look
from nemolab.longctx.stats import clustered
from nemolab.longctx.summary import Length

NANO = "nano_bf16_1xh200_vllm"


def length(tokens: int, cold: float | None) -> Length:
    times = [cold] if cold else []
    return Length(tokens, clustered([[True]]), 1.0, quantile(times, 0.5), quantile([], 0.5), None, (), ())


def test_a_profile_and_its_parts_are_the_same_launch() -> None:
    by_profile, by_name = roofline_look.named(NANO, (32_768,)), roofline_look.named("nano-bf16 h200", (32_768,))
    assert by_profile[0].bound_s == by_name[0].bound_s
    assert by_profile[0].assumed_s == pytest.approx(by_profile[0].bound_s / 0.4)
    assert roofline_look.named("nano-bf16 h200 2", (32_768,))[0].bound_s == pytest.approx(by_name[0].bound_s / 2)
    assert roofline_look.named("", (32_768,)) == ()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nano-bf16 h200 two", "not a launch"),
        ("nano-bf16 h200 1 more", "not a launch"),
        ("nosuch", "no profile"),
        ("nano-bf16 h999", "no GPU kind"),
        ("nosuch h200", "nosuch"),
        ("miniature_llamacpp", "no GPU that the planner knows"),
    ],
)
def test_what_has_no_roofline(what: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        roofline_look.named(what, (32_768,))


def test_the_measured_million() -> None:
    """91.7 s for 1,048,000 tokens on one H200, vLLM 0.22.0, was known as 67 % of the peak."""
    (bound,) = roofline_look.named(NANO, (1_048_000,))
    assert bound.share(91.7) == pytest.approx(0.67, abs=0.005)
    assert bound.tflops(91.7) == pytest.approx(663, abs=2)
    assert roofline_look.columns(bound, 91.7)["of the peak"] == "67 %"
    assert roofline_look.columns(bound, None)["TFLOP/s a GPU"] is None


def test_figure_and_table_are_as_before_without_it() -> None:
    found = [length(512, 0.5), length(2048, None)]
    assert [trace.name for trace in look.ttft_figure(found).data] == ["first question on a text", "further questions"]
    assert list(look.ttft_table(found)[0]) == [
        "length", "cold TTFT s", "warm TTFT s", "cold tokens/s", "from the cache"
    ]  # fmt: skip
    assert look.ttft_table(found, ()) == look.ttft_table(found)


def test_figure_and_table_hold_times_against_it() -> None:
    found, bounds = [length(512, 0.5), length(2048, None)], roofline_look.named(NANO, (512, 2048))
    lines = look.ttft_figure(found, bounds).data[2:]
    assert [line.name for line in lines] == ["roofline, full peak", "roofline, 40 % of the peak"]
    assert list(lines[0].y) == [bound.bound_s for bound in bounds]
    first, second = look.ttft_table(found, bounds)
    assert first["TFLOP/s a GPU"] == pytest.approx(bounds[0].flops / 0.5 / 1e12)
    assert (second["roofline s"], second["of the peak"]) == (bounds[1].bound_s, "-")


def test_the_notebook_shows_it_and_replays(tmp_path: Path) -> None:
    with serving(Oracle()) as endpoint:
        asked = {
            "base_url": endpoint.base_url, "model": "oracle", "lengths": "600", "haystacks": 1, "roofline": NANO
        }  # fmt: skip
        live = run_notebook("51_validate_long_context", tmp_path, **asked)
    assert any("of the peak" in text and "TFLOP/s a GPU" in text for text in live.text)
    assert run_notebook("51_validate_long_context", tmp_path, replay=True, **asked) == live
