"""`nemolab plan`: does a launch fit, before anything is loaded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from nemolab.core.errors import ExitCode
from nemolab.core.sizes import GIB

if TYPE_CHECKING:
    from nemolab.models import Plan

_ENGINES = ("vllm", "sglang", "trtllm", "tensorrt-llm")  # the last is another name of the one before


@click.command()
@click.option("--model", required=True, help="Catalogue name, Hugging Face repository, or folder with a config.json.")
@click.option(
    "--gpu", required=True, help="Kind of GPU: h100, h200, b200, gb200, b300, gb300, gb10, rtx-pro-6000, a100."
)
@click.option("--gpus", type=int, default=None, help="GPUs there are; default: as many as the parallelism needs.")
@click.option("--gpu-memory-gib", type=float, default=None, help="Memory of one GPU as CUDA reports it, if measured.")
@click.option("--tp", "--tensor-parallel-size", "tp", type=int, default=1, show_default=True)
@click.option("--pp", "--pipeline-parallel-size", "pp", type=int, default=1, show_default=True)
@click.option("--dp", "--data-parallel-size", "dp", type=int, default=1, show_default=True)
@click.option("--ep", "--enable-expert-parallel", "ep", is_flag=True, help="Whole experts per rank (vLLM).")
@click.option("--kv-cache-dtype", default="auto", show_default=True)
@click.option("--mamba-ssm-cache-dtype", default="auto", show_default=True)
@click.option("--mamba-cache-dtype", default="auto", show_default=True)
@click.option("--mamba-cache-mode", default="none", show_default=True, help="none, align or all (vLLM).")
@click.option(
    "--mamba-radix-cache-strategy",
    default="auto",
    show_default=True,
    help="auto, no_buffer, extra_buffer, extra_buffer_lazy, or off without the radix cache (SGLang).",
)
@click.option("--max-model-len", default=None, help="262144, 32k, 1M (= 1,048,576 as vLLM reads it), 1m, 1Mi.")
@click.option("--num-speculative-tokens", type=int, default=0, show_default=True)
@click.option("--speculation", type=click.Choice(["mtp", "draft"]), default="mtp", show_default=True)
@click.option("--gpu-memory-utilization", type=float, default=None, help="Default: the engine's own, 0.92 for vLLM.")
@click.option("--max-num-batched-tokens", default="8192", show_default=True)
@click.option(
    "--max-num-seqs", type=int, default=None, help="SGLang: max-running-requests; TensorRT-LLM: max_batch_size."
)
@click.option("--block-size", type=int, default=16, show_default=True)
@click.option("--available-kv-gib", type=float, default=None, help="Cache memory as the engine's log printed it.")
@click.option("--cpu-offload-gb", type=float, default=0.0, show_default=True, help="GiB of weights kept on the host.")
@click.option("--enforce-eager", is_flag=True, help="No CUDA graphs.")
@click.option("--engine", type=click.Choice(_ENGINES), default="vllm", show_default=True)
@click.option("--engine-version", default="", help="Decides how the log counts KV tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan, with formulas and sources, as JSON.")
@click.option("--explain", is_flag=True, help="Print formula and source of every value.")
def plan(as_json: bool, explain: bool, **options: Any) -> int:
    """Plan the memory of a launch: weights, cache blocks, context and concurrency, per GPU.

    \b
    Examples:
      nemolab plan --model ultra-nvfp4 --gpu b200 --tp 4 --max-model-len 1M
      nemolab plan --model ultra-bf16 --gpu h200 --tp 8
      nemolab plan --model nano-bf16 --gpu h200 --max-model-len 1M --available-kv-gib 67.13

    With --available-kv-gib the result equals the engine's log; without it, activations and graphs are estimates.
    Exit code 1 when it does not fit.
    """
    from nemolab import models

    found = models.plan(_request(**options))
    changes = () if found.fits else models.remedies(found.request)
    if as_json:
        document = found.as_dict() | {"remedies": [change.as_dict() for change in changes]}
        click.echo(json.dumps(document, indent=1))
    else:
        _show(found, explain)
        if not found.fits:
            click.echo("\nWhat would fit:" if changes else "\nNo single change makes it fit on GPUs of this kind.")
            for change in changes:
                click.echo(
                    f"  {change.what}: {change.plan.concurrency:.2f} requests of {found.request.length:,} tokens"
                )
    return int(ExitCode.PASSED if found.fits else ExitCode.FAILED)


def _request(
    model: str,
    gpu: str,
    gpus: int | None,
    gpu_memory_gib: float | None,
    tp: int,
    pp: int,
    dp: int,
    ep: bool,
    max_model_len: str | None,
    max_num_batched_tokens: str,
    max_num_seqs: int | None,
    available_kv_gib: float | None,
    cpu_offload_gb: float,
    engine: str,
    **same: Any,
) -> Any:
    from nemolab import models

    engine = "trtllm" if engine == "tensorrt-llm" else engine
    return models.request(
        model,
        gpu,
        gpus=gpus,
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=dp,
        enable_expert_parallel=ep,
        memory=None if gpu_memory_gib is None else int(gpu_memory_gib * GIB),
        max_model_len=None if max_model_len is None else models.length(max_model_len, engine),
        max_num_batched_tokens=models.length(max_num_batched_tokens, engine),
        max_running_requests=max_num_seqs,
        available_kv=None if available_kv_gib is None else int(available_kv_gib * GIB),
        cpu_offload=int(cpu_offload_gb * GIB),
        engine=engine,
        **same,
    )


def _show(found: Plan, explain: bool) -> None:
    from nemolab.cli import text
    from nemolab.models import report

    asked = found.request
    kv, ssm, conv = asked.dtypes
    parallel = asked.parallel
    click.echo(
        f"{asked.model.name} on {asked.gpus} x {asked.gpu.name}, tp {parallel.tensor_parallel_size}"
        + (f" pp {parallel.pipeline_parallel_size}" if parallel.pipeline_parallel_size > 1 else "")
        + (f" dp {parallel.data_parallel_size}" if parallel.data_parallel_size > 1 else "")
        + (" ep" if parallel.enable_expert_parallel else "")
        + f", {asked.engine} {asked.version_text}: {str(found.fit).upper()}"
    )
    click.echo(
        f"KV {kv}, SSM state {ssm}, conv state {conv}, mode {asked.mamba_cache_mode}, "
        f"{asked.length:,} tokens, utilisation {asked.utilisation:g}, per GPU:\n"
    )
    rows = []
    for value in found.values:
        shown = report.amount(value.value, value.unit)
        row = {"value": value.name.removesuffix("_bytes"), "": shown, "kind": "estimate" if value.estimate else ""}
        rows.append(row | ({"formula": value.formula, "source": value.source} if explain else {}))
    click.echo(text.table(rows, header=explain))
    for warning in found.warnings:
        click.echo(f"note: {warning}")
