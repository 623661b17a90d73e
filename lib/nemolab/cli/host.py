"""`nemolab host`: facts of this machine, and what it lacks for an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nemolab.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from nemolab.core.finding import Finding
    from nemolab.host import HostFacts


@click.command()
@click.option("--profile", default="", help="Launch profile: engine, model, GPUs, memory and ports are its own.")
@click.option("--engine", default=None, help="Engine that is to run here: llamacpp, vllm, sglang, nim, ...")
@click.option("--model", default="", help="Checkpoint to download: its size is added to the disk wanted.")
@click.option("--gpus", type=click.IntRange(min=0), default=0, help="GPUs used together; 0 for the engine's minimum.")
@click.option("--gpu-memory-gib", type=float, default=0.0, help="Free memory that each GPU needs.")
@click.option("--gpu-memory-utilization", type=float, default=0.0, help="Share of each GPU that must be free.")
@click.option("--disk-gb", type=float, default=0.0, help="Free disk for checkpoints.")
@click.option("--port", type=click.IntRange(0, 65535), multiple=True, help="Port that must be free; may be repeated.")
@click.option("--from", "recorded", type=click.Path(path_type=Path), help="Read recorded facts instead of this host.")
@click.option("--fixes", "with_fixes", is_flag=True, help="Print the steps that need root, with risk and undo.")
@click.option("--power-limit", "watts", type=float, help="Print a unit that limits every GPU to this many watts.")
@click.option("--json", "as_json", is_flag=True, help="Print facts, and findings if an engine is named, as JSON.")
def host(
    profile: str,
    engine: str | None,
    model: str,
    gpus: int,
    gpu_memory_gib: float,
    gpu_memory_utilization: float,
    disk_gb: float,
    port: tuple[int, ...],
    recorded: Path | None,
    with_fixes: bool,
    watts: float | None,
    as_json: bool,
) -> int:
    """Say what this machine is and, with --engine or --profile, whether that can run on it.

    \b
    Examples:
      nemolab host
      nemolab host --engine vllm --gpus 8 --model ultra-nvfp4 --gpu-memory-utilization 0.9 --port 8000
      nemolab host --profile ultra_nvfp4_4xb200_vllm
      nemolab host --engine nim --fixes
      nemolab host --json > facts.json

    Nothing is changed; fixes are printed, never applied. What nobody can be asked is "unknown", never "fine".
    Exit code 1 when something that is needed is missing or unknown.
    """
    from nemolab import host as lib

    need = None
    if profile:
        from nemolab.host.profiles import for_profile

        need = for_profile(profile)
    elif engine:
        need = lib.for_launch(
            engine,
            model=model,
            gpus=gpus,
            gpu_memory_gib=gpu_memory_gib,
            gpu_memory_utilization=gpu_memory_utilization,
            disk_gb=disk_gb,
            ports=port,
        )
    found = _read(recorded) if recorded else lib.facts(ports=need.ports if need else port)
    findings = lib.check(found, need) if need else ()
    engine = need.engine if need else None
    if as_json:
        document = found.as_dict()
        if engine:
            document = {"facts": document, "findings": [item.as_dict() for item in findings]}
        click.echo(json.dumps(document, indent=1))
    else:
        _show(found, engine, findings)
        _show_fixes(found, findings, with_fixes, watts)
    return int(ExitCode.PASSED if not engine or lib.verdict(findings).startswith("fit") else ExitCode.FAILED)


def _read(path: Path) -> HostFacts:
    from nemolab.host import HostFacts

    try:
        return HostFacts.from_dict(json.loads(path.read_bytes()), where=str(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read: {error}", where=str(path)) from None


def _show(found: HostFacts, engine: str | None, findings: tuple[Finding, ...]) -> None:
    from nemolab import host as lib
    from nemolab.cli import text

    click.echo(text.table(lib.rows(found), header=False))
    click.echo("\n" + text.table(lib.disk_rows(found)) + "\n(sizes in GB)")
    for gpu in lib.gpu_rows(found):
        click.echo("\n" + text.table([{"fact": k, "value": v} for k, v in gpu.items()], header=False))
    if engine:
        click.echo("\n" + (text.findings(findings) or "No findings."))
        click.echo(f"\nFor {engine} this host is {lib.verdict(findings)}.")


def _show_fixes(found: HostFacts, findings: tuple[Finding, ...], with_fixes: bool, watts: float | None) -> None:
    from nemolab import host as lib

    fixes = list(lib.fixes_for(found, findings)) if with_fixes else []
    if watts is not None:
        fixes.append(lib.power_limit(found, watts))
    for fix in fixes:
        click.echo("\n" + fix.as_text())
    if with_fixes and not fixes:
        click.echo("\nNo fix needs root.")
