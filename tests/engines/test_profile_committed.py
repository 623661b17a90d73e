"""Every committed profile: each setting with reason and source, lint clean or named, the planner of one mind."""

from __future__ import annotations

import re
from functools import cache

import pytest
from click.testing import CliRunner

from nemolab.cli.lint import lint
from nemolab.core.finding import Finding, Severity
from nemolab.engines import profile as profiles
from nemolab.engines import profile_check

EVERY = [profile.full_name for profile in profiles.every()]
NAMES = list(profiles.names())
GRAVE = (Severity.ERROR, Severity.WARNING, Severity.DISAGREE)

# Flags that circulate and that no profile may have: they are gone, or never were.
LEGACY = re.compile(
    r"swap-space|awq|trtllm-build|reward|enable-reasoning$|disable-log-requests|use-v2-block|trust.remote"
)


@cache
def found(name: str) -> tuple[Finding, ...]:
    return tuple(profile_check.findings(profiles.load(name)))


def wanted() -> list[tuple[str, str, int, str]]:
    """Model, GPU, GPUs and engine of what the family needs at least."""
    ultra = [
        ("ultra-nvfp4", gpu, gpus, engine)
        for gpu, gpus in (("b200", 4), ("h100", 8), ("h200", 8))
        for engine in ("vllm", "sglang", "trtllm", "nim")
    ]
    miniature = [("miniature", "h200", 1, engine) for engine in ("vllm", "sglang", "trtllm", "nim", "dynamo")]
    return [
        *ultra,
        *miniature,
        ("ultra-nvfp4", "b200", 8, "dynamo"),
        ("ultra-nvfp4", "h200", 8, "dynamo"),
        ("ultra-bf16", "b200", 8, "vllm"),
        ("ultra-bf16", "h100", 16, "vllm"),
        ("teacher-stem", "b200", 8, "vllm"),
        *[("super-nvfp4", gpu, gpus, "vllm") for gpu, gpus in (("h100", 2), ("b200", 1), ("gb10", 1))],
        *[("lightning-nvfp4", gpu, 1, "vllm") for gpu in ("h100", "b200", "gb10")],
        ("nano-bf16", "h100", 1, "vllm"),
        ("nano-nvfp4", "b200", 1, "vllm"),
        ("nano-nvfp4", "gb10", 1, "vllm"),
        ("lightning-nvfp4", "rtx-5090", 1, "nim"),
        ("lightning-nvfp4", "rtx-5090", 1, "trtllm"),
        ("miniature", "", 0, "llamacpp"),
    ]


def test_the_family_is_covered() -> None:
    have = {(p.model, p.hardware.gpu, p.hardware.gpus, p.engine) for p in map(profiles.load, NAMES)}
    assert set(wanted()) <= have
    goals = {p.goal for p in profiles.every()}
    assert goals == {"quick-check", "latency", "throughput", "long-context", "agents"}
    assert {"latency", "long-context"} <= set(profiles.load("ultra_nvfp4_4xb200_trtllm").variants)
    assert "long-context" in profiles.load("ultra_nvfp4_8xb200_dynamo").variants


@pytest.mark.parametrize("name", EVERY)
def test_each_setting_has_a_reason_with_its_source(name: str) -> None:
    profile = profiles.load(name)
    assert profile.unexplained == ()
    if profile.image and "@sha256:" not in profile.image:
        assert "no digest" in profile.reasons["image"].why


@pytest.mark.parametrize("name", EVERY)
def test_lint_is_clean_or_the_profile_names_what_stays(name: str) -> None:
    assert profile_check.unnamed(profiles.load(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_named_finding_is_really_found(name: str) -> None:
    base = profiles.load(name)
    codes = {f.code for full in (name, *(f"{name}:{v}" for v in base.variants)) for f in found(full)}
    assert {d.finding for d in base.disagreements if d.finding} <= codes


@pytest.mark.parametrize("name", EVERY)
def test_the_planner_says_what_the_profile_says(name: str) -> None:
    profile = profiles.load(name)
    plan = profile_check.plan(profile)
    if plan is None:
        assert profile.hardware.gpus == 0
        return
    assert plan.fits is profile.fits
    if not profile.fits:
        assert "does not fit" in profile.title
        assert "GiB" in profile.notes


@pytest.mark.parametrize("name", EVERY)
def test_no_legacy_flag(name: str) -> None:
    profile = profiles.load(name)
    assert not [setting for setting in (*profile.args, *profile.env) if LEGACY.search(setting)]


def test_a_million_tokens_have_their_switch() -> None:
    """Lint would refuse a length without its switch, and a switch without its length."""
    long = [p for p in profiles.every() if p.variant == "long-context"]
    assert len(long) > 10
    lengths = ("max-model-len", "context-length", "max_seq_len")
    assert {next(p.args[k] for k in lengths if k in p.args) for p in long if p.model != "miniature"} == {1048576}


def test_the_linter_reads_a_profile_with_base_and_variants() -> None:
    run = CliRunner().invoke(lint, [str(profiles.folder() / "teacher_stem_as_listed.yaml")], standalone_mode=False)
    assert run.return_value == 1
    assert "R-MEM line 10" in run.output  # the line of its own tensor-parallel-size
    assert run.output.count("R-MEM") == 2  # one of them in the variant
    run = CliRunner().invoke(lint, [str(profiles.folder() / "ultra_nvfp4_8xh200_sglang.yaml")], standalone_mode=False)
    assert "R-LONG SGLang" in run.output  # the length stands in the base: a line of that file would mislead
