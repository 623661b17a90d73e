"""What pages list, what fits where, and the rooflines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemolab import models
from nemolab.core.finding import Severity
from nemolab.models import listed, report, roofline, survey

MILLION = 1 << 20


def test_impossible_listings_are_found_and_the_others_left_alone() -> None:
    judged = listed.judged()
    wrong = {(item.listing.model, item.listing.layout): item for item in judged if not item.plan.fits}
    assert set(wrong) == {
        ("ultra-bf16", "8 x h200, TP8"),
        ("ultra-bf16", "4 x b300, TP4"),
        ("ultra-nvfp4", "8 x h100, TP1 DP8"),
        ("teacher-stem", "4 x b200, TP4"),
        ("teacher-stem", "8 x h100, TP8"),
    }
    assert wrong["teacher-stem", "4 x b200, TP4"].verdict == "does not fit"
    assert wrong["ultra-bf16", "8 x h200, TP8"].verdict == "does not fit at 0.90"
    found = listed.findings(judged)
    assert len(found) == 5
    for finding in found:
        assert finding.severity == Severity.DISAGREE
        assert "GiB of weights a GPU" in finding.message
        assert finding.source.startswith("listed by: ")


def test_the_needed_utilisation_is_where_it_begins_to_fit() -> None:
    item = next(one for one in listed.judged() if one.verdict == "does not fit at 0.90")
    asked = item.plan.request
    assert not models.plan(asked.but(gpu_memory_utilization=item.needed - 0.002)).fits
    assert models.plan(asked.but(gpu_memory_utilization=item.needed + 0.002)).fits


def test_the_survey_finds_the_fewest_gpus() -> None:
    cells = survey.survey(
        ["ultra-nvfp4", "nano-bf16"], ["h100", "b300"], max_model_len=MILLION, num_speculative_tokens=3
    )
    at = {(cell.model, cell.gpu): cell.gpus for cell in cells}
    assert at == {
        ("ultra-nvfp4", "h100"): 8,
        ("ultra-nvfp4", "b300"): 2,
        ("nano-bf16", "h100"): 1,
        ("nano-bf16", "b300"): 1,
    }
    for cell in cells:
        assert cell.plan
        if cell.gpus and cell.gpus > 1:
            narrower = models.request(
                cell.model,
                cell.gpu,
                tensor_parallel_size=cell.gpus // 2,
                max_model_len=MILLION,
                num_speculative_tokens=3,
            )
            assert not models.plan(narrower).fits
    fig, rows, alt = survey.survey_figure(cells)
    assert alt == "4 of 4 pairs have a layout that fits."
    assert len(rows) == 4
    assert fig.data[0].text[0][0].startswith("8 GPUs")


def test_what_never_fits_is_said() -> None:
    cells = survey.survey(["ultra-bf16"], ["gb10"], sizes=(1, 2), max_model_len=MILLION)
    fig, rows, alt = survey.survey_figure(cells)
    assert alt.endswith("None for: ultra-bf16 on gb10.")
    assert rows[0]["fit"] == "does not fit"
    assert fig.data[0].text[0][0] == "no"


def test_the_parts_add_up_to_the_budget() -> None:
    asked = models.request("super-nvfp4", "h100", tensor_parallel_size=2, num_speculative_tokens=3)
    plans = survey.same_layout(asked, ["h100", "gb10"])
    for found in plans:
        assert sum(survey.parts(found).values()) == pytest.approx(found.budget / (1 << 30), abs=0.05)
    fig, rows, _ = survey.parts_figure(plans)
    assert [row["layout"] for row in rows] == ["2 x h100", "2 x gb10"]
    assert "MTP weights" in {trace.name for trace in fig.data}


def test_prefill_flops_of_a_million_tokens() -> None:
    """6.1e16, 9.9e16, 3.3e17: attention is most of it."""
    expected = {"nano-bf16": (6.1e16, 0.89), "super-bf16": (9.9e16, 0.73), "ultra-bf16": (3.3e17, 0.65)}
    for name, (total, share) in expected.items():
        asked = models.request(name, "h200", max_model_len=MILLION)
        attention = roofline.attention_flops(asked, MILLION)
        both = attention + roofline.linear_flops(asked, MILLION)
        assert both == pytest.approx(total, rel=0.02)
        assert attention / both == pytest.approx(share, abs=0.01)


def test_the_measured_prefill_is_slower_than_the_bound() -> None:
    """91.7 s for 1,048,000 tokens, Nano on one H200; a decode step took 3.93 ms."""
    asked = models.request("nano-bf16", "h200", max_model_len=MILLION)
    first = roofline.prefill(asked, 1_048_000)
    assert first.bound_seconds < 91.7 < first.seconds
    assert roofline.prefill(asked, 1_048_000, mfu=0.67).seconds == pytest.approx(91.7, rel=0.02)
    assert roofline.decode(asked, 1, 131_072).bound_seconds < 0.00393


@given(st.sampled_from(["ultra-nvfp4", "nano-bf16"]), st.integers(1, 500), st.integers(1, MILLION))
def test_more_work_never_takes_less_time(name: str, batch: int, context: int) -> None:
    asked = models.request(name, "b200", tensor_parallel_size=4)
    one, more = roofline.decode(asked, batch, context), roofline.decode(asked, batch + 1, context)
    assert one.seconds <= more.seconds
    assert one.weight_bytes <= more.weight_bytes <= models.plan(asked).weights.total
    assert roofline.prefill(asked, context).seconds < roofline.prefill(asked, context + 1).seconds


def test_weight_only_checkpoints_run_at_the_bf16_peak() -> None:
    lightning = roofline.prefill(models.request("lightning-nvfp4", "b200"), 8192)
    assert "2,250 TFLOP/s for experts" in lightning.assumption
    assert "9,000 TFLOP/s" in roofline.prefill(models.request("ultra-nvfp4", "b200"), 8192).assumption


def test_findings_and_sentence_follow_the_plan() -> None:
    fits = models.plan(models.request("nano-bf16", "h200", max_model_len=MILLION))
    assert report.plan_findings(fits, 1) == ()
    assert "holds" in report.sentence(fits, 1)
    assert {finding.code for finding in report.plan_findings(fits, 100)} == {"M-CONCURRENCY"}
    assert "fewer than the 100 wanted" in report.sentence(fits, 100)
    tight = models.plan(models.request("super-fp8", "h200", max_model_len=MILLION, gpu_memory_utilization=0.9))
    assert {finding.severity for finding in report.plan_findings(tight, 1)} == {Severity.WARNING}
    none = models.plan(models.request("ultra-bf16", "h200"))
    assert {finding.code for finding in report.plan_findings(none, 1)} == {"M-MEMORY"}
    assert report.remedy_rows(models.remedies(none.request)) == []


def test_a_decode_step_reads_kv_and_reads_and_writes_states() -> None:
    step = roofline.decode(models.request("nano-bf16", "h200"), batch=4, context=1000)
    assert step.cache_bytes == 4 * (1000 * 1024 * 6 + 2 * 2_134_016 * 23)
    one, all_ = roofline.decode(models.request("nano-bf16", "h200"), 1), models.find("nano-bf16")
    assert one.weight_bytes == pytest.approx(2 * all_.active_parameters, rel=0.01)
