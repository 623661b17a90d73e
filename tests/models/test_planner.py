"""The planner: what fits, what does not, and what it says about it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from nemolab import models
from nemolab.cli.models import models as models_command
from nemolab.cli.plan import plan as plan_command
from nemolab.core.errors import UsageError
from nemolab.engines import profile, profile_check, registry

GIB = 1 << 30
MILLION = 1 << 20


def fit(model: str, gpu: str, tp: int, **options: Any) -> models.Plan:
    options = {"gpu_memory_utilization": 0.90, "kv_cache_dtype": "fp8", **options}
    if options.get("engine", "vllm") == "vllm":
        options.setdefault("max_running_requests", 32)
    return models.plan(models.request(model, gpu, tensor_parallel_size=tp, **options))


# What official pages list and what arithmetic says (models that do not fit at the documented utilisation).
@pytest.mark.parametrize(
    ("model", "gpu", "tp", "fits"),
    [
        ("ultra-bf16", "h200", 8, False),  # listed by NVIDIA's cookbook, card and NIM
        ("ultra-bf16", "b300", 4, False),  # listed by NIM
        ("teacher-stem", "b200", 4, False),  # listed by its card
        ("teacher-stem", "h100", 8, False),
        ("ultra-bf16", "h200", 16, True),
        ("ultra-bf16", "b200", 8, True),
        ("ultra-nvfp4", "h100", 8, True),
        ("ultra-nvfp4", "h200", 4, True),
        ("ultra-nvfp4", "b200", 4, True),
        ("ultra-nvfp4", "gb300", 1, False),
        ("super-nvfp4", "h100", 2, True),
        ("nano-bf16", "h100", 1, True),
        ("lightning-nvfp4", "h100", 1, True),
    ],
)
def test_what_fits(model: str, gpu: str, tp: int, fits: bool) -> None:
    assert fit(model, gpu, tp).fits is fits


def test_nvfp4_on_two_b200_fits_only_without_mtp() -> None:
    assert fit("ultra-nvfp4", "b200", 2, max_model_len=32_768).fits
    assert not fit("ultra-nvfp4", "b200", 2, max_model_len=32_768, num_speculative_tokens=3).fits


def test_the_cookbook_s_tp1_dp8_does_not_fit() -> None:
    """NVIDIA-NeMo/Nemotron#289."""
    for ep in (True, False):
        asked = models.request(
            "ultra-nvfp4", "h100", data_parallel_size=8, enable_expert_parallel=ep, gpu_memory_utilization=0.9
        )
        assert not models.plan(asked).fits


def test_the_h200_run_is_predicted_from_the_gpu_alone() -> None:
    """67.13 GiB and 11.08x were logged; activations and graphs are estimates."""
    found = models.plan(
        models.request(
            "nano-bf16", "h200", max_model_len=MILLION, max_num_batched_tokens=16_384, max_running_requests=32
        )
    )
    assert found.available_kv / GIB == pytest.approx(67.13, abs=0.2)
    assert found.concurrency == pytest.approx(11.08, abs=0.05)


def test_available_kv_makes_it_exact() -> None:
    found = models.plan(
        models.request("nano-bf16", "h200", max_model_len=MILLION, available_kv=int(67.13 * GIB))
    ).as_dict()
    assert (found["block_size"], found["pool_blocks"], found["kv_tokens"], found["concurrency"]) == (
        2096,
        5597,
        11_621_544,
        11.08,
    )
    how = found["how"]
    assert not any(how[name]["estimate"] for name in ("pool_blocks", "kv_tokens", "concurrency", "available_kv_bytes"))
    assert how["activation_bytes"]["estimate"]
    assert how["available_kv_bytes"]["formula"].startswith("given")
    assert found["engine_version"] == "0.22.0"


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_every_value_has_formula_and_source(engine: str) -> None:
    found = fit("ultra-nvfp4", "b200", 4, engine=engine, max_model_len=MILLION)
    assert found.values
    for value in found.values:
        assert value.formula, value.name
        assert value.source, value.name
    document = json.loads(json.dumps(found.as_dict()))
    assert {"weights_bytes", "kv_tokens", "concurrency", "bytes_per_request", "fits"} <= document.keys()
    pools_are_estimates = document["how"]["kv_tokens"]["estimate"]
    assert pools_are_estimates


def test_sglang_gives_states_47_percent_and_slots_4_mib() -> None:
    found = fit("ultra-nvfp4", "b200", 4, engine="sglang", max_model_len=MILLION).as_dict()
    states = found["mamba_states"] * found["mamba_state_bytes"]
    assert states / found["available_kv_bytes"] == pytest.approx(0.9 / 1.9, abs=0.01)
    assert found["req_to_token_bytes"] == 2048 * (4 << 20)
    small = fit("ultra-nvfp4", "b200", 4, engine="sglang", max_model_len=MILLION, max_running_requests=16).as_dict()
    assert small["req_to_token_bytes"] == 16 * (4 << 20)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_model_len": MILLION}, "long-context switch"),
        ({"mamba_cache_mode": "align"}, "block 8304 is above max_num_batched_tokens 8192"),
        ({"mamba_cache_mode": "all"}, "mode all keeps"),
        ({"max_running_requests": 4096}, "max_num_seqs 4096 is above the"),
        ({"num_speculative_tokens": 3, "speculation": "draft"}, "drafter's weights"),
    ],
)
def test_remarks(options: dict[str, Any], says: str) -> None:
    assert any(says in warning for warning in fit("ultra-nvfp4", "b200", 4, **options).warnings)


def test_unified_memory_and_alignment_are_remarked_on() -> None:
    assert any("share this memory" in text for text in fit("super-nvfp4", "gb10", 1).warnings)
    assert any("2688 / 4 = 672 is no multiple of 64" in text for text in fit("super-nvfp4", "h100", 4).warnings)
    assert not any("multiple" in text for text in fit("super-nvfp4", "h100", 2).warnings)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": "nano-bf16", "num_speculative_tokens": 3}, "nano-bf16 has no MTP layer"),
        ({"tensor_parallel_size": 3}, "cannot be split over tensor_parallel_size 3"),
        ({"tensor_parallel_size": 4, "gpus": 2}, "needs more than 2 GPUs"),
        ({"gpu_memory_utilization": 1.5}, "not between 0 and 1"),
        ({"max_model_len": -1}, "not positive"),
        ({"kv_cache_dtype": "int3"}, "--kv-cache-dtype 'int3'"),
        ({"mamba_cache_mode": "some"}, "mamba_cache_mode 'some'"),
        ({"engine": "tgi"}, "no planner for engine 'tgi'"),
        ({"model": "lightning-dspark"}, "architecture of lightning-dspark is not known"),
        ({"model": "nope"}, "no model 'nope'"),
        ({"gpu": "v100"}, "no GPU kind 'v100'"),
    ],
)
def test_nonsense_is_refused_by_name(options: dict[str, Any], says: str) -> None:
    options = {"model": "super-nvfp4", "gpu": "h200", **options}
    with pytest.raises(UsageError, match=says):
        models.plan(models.request(**options))


def test_remedies_work() -> None:
    asked = models.request("ultra-bf16", "h200", tensor_parallel_size=8, gpu_memory_utilization=0.9)
    found = models.remedies(asked)
    assert found
    assert all(remedy.plan.fits for remedy in found)
    assert any("--tensor-parallel-size 16" in remedy.what for remedy in found)
    assert any("ultra-nvfp4" in remedy.what for remedy in found)


@settings(deadline=None)
@given(
    st.sampled_from([name for name in models.names() if models.find(name).architecture]),
    st.sampled_from(["h100", "h200", "b200", "b300", "gb10"]),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, MILLION),
    st.integers(1, MILLION),
    st.sampled_from(["vllm", "sglang", "trtllm"]),
)
def test_plans_are_monotonic(name: str, gpu: str, tp: int, one: int, other: int, engine: str) -> None:
    short, long = sorted((one, other))
    if name == "miniature" and tp > 4:
        return
    plans = [fit(name, gpu, tp, max_model_len=length, engine=engine) for length in (short, long)]
    assert plans[0].concurrency >= plans[1].concurrency
    assert plans[0].headroom >= plans[1].headroom
    assert plans[0].fits or not plans[1].fits
    richer = fit(name, gpu, tp, max_model_len=long, engine=engine, memory=models.find_gpu(gpu).memory + GIB)
    assert richer.concurrency >= plans[1].concurrency


@pytest.mark.parametrize(
    ("text", "engine", "tokens"),
    [
        ("1M", "vllm", 1_048_576),
        ("1m", "vllm", 1_000_000),
        ("32k", "vllm", 32_000),
        ("32K", "vllm", 32_768),
        ("1M", "sglang", 1_000_000),
        ("1Mi", "sglang", 1_048_576),
        ("262,144", "vllm", 262_144),
        ("1.5K", "vllm", 1536),
    ],
)
def test_lengths_are_read_as_the_engine_reads_them(text: str, engine: str, tokens: int) -> None:
    assert models.length(text, engine) == tokens


@pytest.mark.parametrize("text", ["", "1x", "-1", "1.0001k", "0", "M", "1e6"])
def test_other_lengths_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        models.length(text)


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("NVIDIA GB300", "gb300"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("NVIDIA L40S", None),
    ],
)
def test_products_are_recognised(product: str, name: str | None) -> None:
    found = models.match_gpu(product)
    assert (found.name if found else None) == name


def test_the_command_prints_a_plan_and_its_exit_code_says_whether_it_fits() -> None:
    line = "--model ultra-nvfp4 --gpu b200 --tp 4 --max-model-len 1M --json"
    good = CliRunner().invoke(plan_command, line.split(), standalone_mode=False)
    assert good.return_value == 0
    assert json.loads(good.output)["max_model_len"] == MILLION
    bad = CliRunner().invoke(
        plan_command, ["--model", "ultra-bf16", "--gpu", "h200", "--tp", "8"], standalone_mode=False
    )
    assert bad.return_value == 1
    assert "DOES NOT FIT" in bad.output
    assert "16 GPUs" in bad.output


@pytest.mark.parametrize("arguments", [[], ["ultra-nvfp4"], ["lightning-dspark"], ["--json"]])
def test_the_catalogue_command_prints(arguments: list[str]) -> None:
    shown = CliRunner().invoke(models_command, arguments)
    assert shown.exit_code == 0, shown.output
    assert "ightning" in shown.output or "ultra" in shown.output


def test_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, nemolab.models; print(sorted({'pydantic', 'yaml', 'numpy', 'gguf', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_auto_follows_the_checkpoint_s_kv_scales() -> None:
    assert models.request("ultra-nvfp4", "b200").dtypes == ("fp8", "float32", "bfloat16")
    assert models.request("ultra-bf16", "b200").dtypes == ("bfloat16", "float32", "bfloat16")
    assert models.request("ultra-bf16", "b200", mamba_ssm_cache_dtype="float16").dtypes[1] == "float16"


def test_ranks_cost_nccl_s_buffers() -> None:
    sizes = [fit("ultra-nvfp4", "b200", tp).overhead.communication >> 20 for tp in (1, 2, 4, 8)]
    assert sizes == [0, 342, 392, 392]


def test_sglang_pools_as_its_log_printed_them() -> None:
    """SGLang 0.5.13 with the miniature on an H200, tests/engines/fixtures/sglang-0.5.13-h200-miniature.log."""
    log = (Path(__file__).parents[1] / "engines/fixtures/sglang-0.5.13-h200-miniature.log").read_text()
    printed = {name: q.value for name, q in registry.explain(log).capacity.items()}
    free = float(re.search(r"Load weight begin\. avail mem=([\d.]+) GB", log)[1])  # type: ignore[index]
    options = {"engine": "sglang", "gpu_memory_utilization": 0.1, "max_model_len": 65536, "kv_cache_dtype": "auto"}
    seen = fit("miniature", "h200", 1, **options, memory=int(free * GIB), max_running_requests=16).as_dict()
    assert seen["mamba_states"] == pytest.approx(printed["mamba_slots"], rel=0.01)
    assert seen["kv_tokens"] == pytest.approx(printed["kv_tokens"], rel=0.01)
    whole = fit("miniature", "h200", 1, **options, max_running_requests=16).as_dict()
    assert printed["kv_tokens"] < whole["kv_tokens"] < 1.02 * printed["kv_tokens"], "another process held 1.2 GiB"


@pytest.mark.parametrize(
    ("strategy", "version", "states"),
    [
        ("auto", "0.5.13", 3),
        ("auto", "0.5.14", 5),
        ("auto", "", 5),
        ("no_buffer", "0.5.23", 3),
        ("extra_buffer", "0.5.13", 5),
        ("extra_buffer_lazy", "0.5.23", 4),
        ("off", "0.5.23", 1),
    ],
)
def test_sglang_keeps_states_for_each_request_by_its_strategy(strategy: str, version: str, states: int) -> None:
    options = {"engine": "sglang", "engine_version": version, "mamba_radix_cache_strategy": strategy}
    found = fit("nano-bf16", "h200", 1, **options).as_dict()
    assert found["states_per_request"] == states
    assert found["max_sequences"] == found["mamba_states"] // states
    assert found["bytes_per_request"] - states * found["mamba_state_bytes"] == 262144 * found["kv_bytes_per_token"]


def test_without_the_radix_cache_sglang_keeps_what_the_limit_needs() -> None:
    options = {"engine": "sglang", "mamba_radix_cache_strategy": "off", "max_running_requests": 16}
    found = fit("nano-bf16", "h200", 1, **options).as_dict()
    assert (found["mamba_states"], found["max_sequences"]) == (16, 16)
    with_cache = fit("nano-bf16", "h200", 1, engine="sglang", max_running_requests=16).as_dict()
    assert found["kv_tokens"] > 1.5 * with_cache["kv_tokens"]


def test_the_strategy_is_one_of_the_flags() -> None:
    from nemolab.models.request import STRATEGIES

    (said,) = [option.help for option in plan_command.params if option.name == "mamba_radix_cache_strategy"]  # type: ignore[attr-defined]
    assert all(name in said for name in STRATEGIES)
    words = "--model nano-bf16 --gpu h200 --engine sglang --mamba-radix-cache-strategy"
    assert CliRunner().invoke(plan_command, f"{words} off").exit_code == 0
    refused = CliRunner().invoke(plan_command, f"{words} both")
    assert isinstance(refused.exception, UsageError)
    with pytest.raises(UsageError, match="no strategy 'both'"):
        fit("nano-bf16", "h200", 1, engine="sglang", mamba_radix_cache_strategy="both")


@pytest.mark.parametrize(
    ("changes", "states"),
    [
        ({}, 5),
        ({"args.mamba-radix-cache-strategy": "no_buffer"}, 3),
        ({"args.mamba-radix-cache-strategy": "null", "args.disable-radix-cache": "true"}, 1),
    ],
)
def test_a_profile_is_planned_by_its_strategy(changes: dict[str, str], states: int) -> None:
    planned = profile_check.plan(profile.changed(profile.load("miniature_sglang"), changes))
    assert planned is not None
    assert planned.as_dict()["states_per_request"] == states


def test_tensorrt_llm_allocates_states_before_the_kv_pool() -> None:
    small, large = (fit("nano-bf16", "h200", 1, engine="trtllm", max_running_requests=batch) for batch in (8, 256))
    state = small.as_dict()["mamba_state_bytes"]
    assert small.available_kv - large.available_kv == pytest.approx(248 * state * 0.9, rel=1e-6)
