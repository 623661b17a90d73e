"""`nemolab models`: the catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nemolab.core.errors import UsageError
from nemolab.core.sizes import gib, human

if TYPE_CHECKING:
    from nemolab.models import Model


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with sources.")
@click.option("--dummy", "out", metavar="DIR", help="Write config.json and a tokenizer there, for --load-format dummy.")
@click.option(
    "--tokenizer", metavar="PATH", help="With --dummy: tokenizer.json or its folder; the miniature's unless given."
)
def models(name: str | None, as_json: bool, out: str | None, tokenizer: str | None) -> None:
    """List the checkpoints that the lab knows, or show one: architecture, sizes, formats, sources.

    \b
    Examples:
      nemolab models
      nemolab models ultra-nvfp4
      nemolab models /models/my-checkpoint     any folder with a nemotron_h config.json
      nemolab models ultra-bf16@9              its first nine layers
      nemolab models ultra-bf16@9 --dummy DIR  its dimensions without weights, for --load-format dummy
    """
    from nemolab import models as lib

    if out is not None or tokenizer is not None:
        if as_json:
            raise UsageError("--json prints, --dummy writes", where="models", fix="one after the other")
        _dummy(name, out, tokenizer)
        return
    if name is None:
        entries = list(lib.entries().values())
        if as_json:
            click.echo(json.dumps([entry.as_dict() for entry in entries], indent=1))
        else:
            _list(entries)
        return
    entry = lib.find(name)
    if as_json:
        click.echo(json.dumps(entry.as_dict(), indent=1))
    else:
        _one(entry)


def _dummy(name: str | None, out: str | None, tokenizer: str | None) -> None:
    from nemolab import models as lib
    from nemolab.models import checkpoints, dummy

    if not name or not out:
        raise UsageError("a model and a folder are needed", where="models", fix="nemolab models NAME --dummy DIR")
    model = lib.find(name)
    written = dummy.write(
        model, Path(out).expanduser(), Path(tokenizer).expanduser() if tokenizer else checkpoints.MINIATURE
    )
    mtp = ", without its MTP layers" if model.shape.has_mtp else ""
    whose = "" if tokenizer else "; the tokenizer is the miniature's"
    click.echo(f"{out}: {written.name}{mtp}; --load-format dummy makes {human(written.size)} of weights up{whose}")


def _list(entries: list[Model]) -> None:
    from nemolab.cli import text

    rows = [
        {
            "name": entry.name,
            "parameters (B)": f"{entry.parameters.total / 1e9:.2f}" if entry.architecture else "-",
            "active (B)": f"{entry.active_parameters / 1e9:.2f}" if entry.architecture else "-",
            "GB": f"{entry.size / 1e9:,.1f}" if entry.architecture or entry.published_bytes else "-",
            "context": f"{entry.max_model_len:,}" if entry.architecture else "-",
            "MTP": "yes" if entry.architecture and entry.architecture.has_mtp else "no",
            "repository": entry.repo or "-",
        }
        for entry in entries
    ]
    click.echo(text.table(rows))


def _one(entry: Model) -> None:
    from nemolab.cli import text

    facts = {
        "repository": entry.repo or "-",
        "family, precision": f"{entry.family}, {entry.precision}",
        "released": entry.released or "unknown",
        "licence": entry.licence or "not seen",
        "reasoning plugin": entry.reasoning_plugin or "-",
        "engines from": ", ".join(f"{name} {version}" for name, version in entry.engines.items()) or "-",
    }
    if (arch := entry.architecture) is not None:
        counted = entry.parameters
        facts |= {
            "layers": f"{len(arch.layers)}: {arch.count('M')} Mamba, {arch.count('E')} MoE, "
            f"{arch.count('*')} attention",
            "pattern": arch.layers,
            "hidden, vocabulary": f"{arch.hidden_size:,}, {arch.vocab_size:,}",
            "attention": f"{arch.num_attention_heads} heads, {arch.num_key_value_heads} KV heads, "
            f"width {arch.head_dim}",
            "Mamba": f"{arch.mamba_num_heads} heads x {arch.mamba_head_dim}, state {arch.ssm_state_size}, "
            f"groups {arch.n_groups}, SSM state {arch.mamba_ssm_cache_dtype}",
            "experts": f"{arch.n_routed_experts}, {arch.num_experts_per_tok} active, "
            f"width {arch.moe_intermediate_size}, "
            f"latent {arch.moe_latent_size or 'none'}; shared {arch.moe_shared_expert_intermediate_size}",
            "positions": f"{arch.max_position_embeddings:,}",
            "MTP": f"{arch.mtp_layers}, {sum(counted.mtp.values()):,} parameters" if arch.has_mtp else "none",
            "parameters": f"{counted.total:,} ({entry.active_parameters:,} active, "
            f"{counted.router_biases:,} router biases)",
            "published parameters": f"{entry.published_parameters:,}" if entry.published_parameters else "not seen",
            "tensors": f"{entry.size / 1e9:,.1f} GB = {gib(entry.size)}"
            + (" (layout assumed)" if entry.layout.estimate else ""),
            "formats": ", ".join(f"{part} {kind}" for part, kind in entry.layout.formats.items())
            + (f"; others {entry.layout.default}" if entry.layout.formats else entry.layout.default),
        }
    click.echo(entry.name)
    click.echo(text.table([{"fact": key, "value": value} for key, value in facts.items()], indent="  ", header=False))
    for note in entry.notes:
        click.echo(f"  note: {note}")
    for commit, where in entry.revisions.items():
        click.echo(f"  revision {commit}: {where}")
    for source in entry.sources:
        click.echo(f"  source [{source.evidence}] {source.what}: {source.where}")
    for question in entry.disagreements:
        answers = "; ".join(f"{answer} ({who})" for answer, who in question.answers)
        arithmetic = f" Arithmetic: {question.arithmetic}." if question.arithmetic else ""
        click.echo(f"  sources disagree: {question.question}? {answers}.{arithmetic}")
