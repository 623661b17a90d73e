"""What a launch needs for a long context: held against published numbers, the planner's table and lint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nemolab.core.finding import Severity
from nemolab.engines import profile as profiles
from nemolab.longctx import enable, enable_look, enable_memory
from nemolab.longctx.enable import EnableSpec, Enabling
from nemolab.longctx.enable_case import SWITCHES
from nemolab.longctx.enable_climb import Climb

VLLM = "ultra_nvfp4_4xb200_vllm:long-context"
SGLANG = "ultra_nvfp4_4xb200_sglang:long-context"
TRTLLM = "ultra_nvfp4_4xb200_trtllm:long-context"
DYNAMO = "ultra_nvfp4_8xb200_dynamo:long-context"
LONG = [profile.full_name for profile in profiles.every() if profile.goal == "long-context"]


def look(name: str, *settings: str, **more: float) -> Enabling:
    return enable.look_at(EnableSpec(name, settings, **more))  # type: ignore[arg-type]


def said(found: Enabling, about: str) -> str:
    """The row about something, as one text."""
    return next(" | ".join(row.values()) for row in found.settings if row["about"] == about)


@pytest.mark.parametrize("name", LONG)
def test_every_long_variant_is_enabled_and_every_row_has_a_source(name: str) -> None:
    found = look(name)
    assert (found.enabled, found.sound) == (True, True), found.sentence
    assert found.length > 200_000
    for row in (*found.settings, *found.lost, *(hop.row for hop in found.hops)):
        assert row["source"].strip("- "), row
    planned = {cost.tokens for cost in found.costs}
    assert planned >= {4_096, 65_536, 262_144, 524_288, 1_048_576} if found.prepared.fits is not None else not planned
    assert "".join(found.prepared.files.values()).count(str(found.length)) >= 1


@pytest.mark.parametrize(("name", "engine"), [(VLLM, "vllm"), (SGLANG, "sglang"), (TRTLLM, "trtllm"), (DYNAMO, "vllm")])
def test_without_the_variable_the_length_is_refused(name: str, engine: str) -> None:
    variable, flag = SWITCHES[engine]
    assert f"{flag} 1048576" in said(look(name), "switch 1, length")
    assert f"{variable} set" in said(look(name), "switch 2, variable")
    found = look(name, f"env.{variable}=null")
    assert (found.enabled, found.sound) == (False, False)
    assert "262,144 allowed: the engine's switch is not set" in found.sentence
    assert "R-LONG" in {finding.code for finding in found.findings if finding.severity is Severity.ERROR}


def test_the_variable_alone_is_not_needed_and_changes_nothing() -> None:
    found = look("nano_bf16_1xh200_vllm", "env.VLLM_ALLOW_LONG_MAX_MODEL_LEN=1")
    assert (found.enabled, found.length, found.native) == (True, 262_144, 262_144)
    assert "has no effect at this length" in said(found, "switch 2, variable")


@pytest.mark.parametrize(
    ("name", "settings", "gib"),
    [
        (VLLM, (), 3.11),
        (VLLM, ("args.mamba-cache-mode=all",), 15.05),
        (VLLM, ("args.enable-prefix-caching=null", "args.mamba-cache-mode=null"), 3.06),
        ("nano_bf16_1xh200_vllm:long-context", ("args.kv-cache-dtype=null",), 6.10),
        ("super_nvfp4_1xb200_vllm:long-context", ("args.mamba-ssm-cache-dtype=float32",), 4.35),
    ],
)
def test_a_request_of_a_million_tokens_takes_what_the_arithmetic_says(
    name: str, settings: tuple[str, ...], gib: float
) -> None:
    found = look(name, *settings)
    assert found.cost is not None
    assert found.cost.request_gib == pytest.approx(gib, abs=0.006)


def test_mode_all_is_named_with_its_price() -> None:
    assert "4.8 times the memory here" in said(look(VLLM), "prefix caching")
    assert "times the memory here" not in said(look(VLLM, "args.mamba-cache-mode=null"), "prefix caching")


@pytest.mark.parametrize(
    ("name", "thousands"),
    [("nano_bf16_1xh200_vllm", 208), ("super_nvfp4_1xb200_vllm", 116), ("super_bf16_4xh100_vllm", 463)],
)
def test_where_an_unchunked_prompt_overflows_follows_the_model(name: str, thousands: int) -> None:
    text = said(look(f"{name}:long-context"), "chunked prefill")
    assert int(text.split("from ")[1].split(" ")[0].replace(",", "")) == pytest.approx(thousands * 1000, abs=600)


def test_request_tables_grow_with_sequences_and_length() -> None:
    assert "= 5.0 GiB a worker" in said(look(VLLM, "args.max-num-seqs=1024"), "host memory of request tables")
    slots = said(look(SGLANG, "args.max-running-requests=null"), "request slots")
    assert "2,048 x 1,048,576 tokens = 8.0 GiB of every GPU" in slots
    assert "40 are used" in said(look(SGLANG), "state share of the pools")  # 8 requests, five states each
    for strategy, used in (("null", 40), ("extra_buffer_lazy", 32), ("no_buffer", 24)):  # null: what the version takes
        found = look(SGLANG, f"args.mamba-radix-cache-strategy={strategy}")
        assert f"{used} are used" in said(found, "state share of the pools")
    assert "9000" in said(look(TRTLLM), "avg_seq_len")


def test_hops_follow_the_planned_prefill() -> None:
    found = look(VLLM)
    by_limit = {hop.limit: hop for hop in found.hops}
    assert found.prefill_s is not None
    client, step = by_limit["total of a request"], by_limit["VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"]
    assert client.needed_s is not None
    assert step.needed_s is not None
    assert 0 <= client.needed_s - (60 + 4 * found.prefill_s) < 10
    assert step.needed_s < client.needed_s  # one chunk of it
    assert not any(hop.short for hop in found.hops)
    assert "not said" in client.row["has"]


def test_limits_that_are_too_short_are_found() -> None:
    found = look(VLLM, "env.VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=20", client_limit_s=3600, proxy_idle_s=60)
    assert [hop.limit for hop in found.hops if hop.short] == [
        "idle limit (nginx: proxy_read_timeout)",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
    ]
    warned = [f.message for f in found.findings if f.code == "X-HOP" and f.severity is Severity.WARNING]
    assert [text.partition(":")[0] for text in warned] == ["proxy", "engine"]
    short = look(SGLANG, "args.watchdog-timeout=5")
    assert [hop.limit for hop in short.hops if hop.short] == ["--watchdog-timeout"]


def test_what_is_given_up_comes_from_the_profile() -> None:
    lost = {row["what"]: (row["at 256K"], row["here"]) for row in look(DYNAMO).lost}
    assert lost["speculative-config"] == ("method mtp, num_speculative_tokens 5", "not set")
    assert lost["requests that the cache holds"] == ("76.3", "21.1")
    assert lost["RULER of Ultra, base"] == ("86.22 %", "76.83 %")
    options = {row["what"] for row in look(TRTLLM).lost}
    assert {"enable_attention_dp", "kv_cache_config.avg_seq_len", "max_batch_size"} <= options
    assert "a prompt of the whole length" in {row["what"] for row in look(SGLANG).lost}


@pytest.mark.parametrize("name", ["ultra_nvfp4_4xb200_nim", "miniature_llamacpp"])
def test_an_engine_that_chooses_by_itself_is_not_guessed_at(name: str) -> None:
    found = look(name)
    assert [row["about"] for row in found.settings] == ["native length", "length"]
    assert (found.switched, found.enabled) == (None, True)


def test_a_profile_by_path_is_compared_with_its_own_file(tmp_path: Path) -> None:
    for path in (profiles.folder() / "nano_bf16_1xh200_vllm.yaml", *profiles.folder().glob("_*.yaml")):
        (tmp_path / path.name).write_text(path.read_text().replace("max-num-seqs: 128", "max-num-seqs: 96"))
    found = look(f"{tmp_path}/nano_bf16_1xh200_vllm.yaml:long-context")
    assert {row["what"]: row["at 256K"] for row in found.lost}["max-num-seqs"] == "96"


def test_a_small_models_first_token_is_not_nothing() -> None:
    found = look("miniature_vllm:long-context")
    assert all(cost.prefill_s > 0 and cost.step_ms > 0 for cost in found.costs)
    assert not any(row[name].startswith("0.0 ") for row in enable_memory.rows(found.costs) for name in row)
    none = replace(
        found, costs=(replace(found.costs[0], prefill_s=0.0), *found.costs[1:])
    )  # as older recordings have it
    (planned,) = enable_look.figure(none, Climb()).data
    assert list(planned.x) == [cost.tokens for cost in found.costs[1:]]


def test_bodies_are_as_large_as_they_are_sent() -> None:
    (body,) = [hop for hop in look(VLLM).hops if "size of a body" in hop.row["limit"]]
    assert "4.3 MB of text, 5.0 MB as token ids" in body.row["know"]
