"""`nemolab schemas`: the engines' command lines, as lint-only data with their provenance."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import click

from nemolab.core.errors import ExitCode, UsageError
from nemolab.core.files import write_atomic
from nemolab.lint import schema as known


@click.group()
def schemas() -> None:
    """List, make and compare the command-line schemas that lint uses."""


@schemas.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_(as_json: bool) -> None:
    """List the shipped schemas with their provenance."""
    rows = []
    for engine in known.ENGINES:
        for version in known.versions(engine):
            s = known.load(engine, version)
            rows.append(
                {
                    "engine": engine,
                    "version": version,
                    "flags": len(s.flags),
                    "env": len(s.env),
                    "complete": s.complete,
                    **s.provenance,
                }
            )
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        click.echo(
            f"{row['engine']:8} {row['version']:16} {row['flags']:4} flags {row['env']:4} "
            f"variables  {row['method']}, {row['date']}"
        )


@schemas.command()
@click.argument("requirement", metavar="ENGINE==VERSION")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=known.FOLDER,
    help="Folder to write to; the shipped schemas by default.",
)
def extract(requirement: str, into: Path) -> None:
    """Make a schema from a published wheel, and show what changed since the version before.

    The wheel is unpacked into a temporary folder, and the engine's own parser is built there in an environment of its
    own, without the engine's dependencies.
    """
    from nemolab.lint.extract import extract as make

    document = make(requirement, lambda line: click.echo(line, err=True))
    engine, version = document["engine"], document["version"]
    before = [v for v in known.versions(engine) if known.version_key(v) < known.version_key(version)]
    path = into / f"{engine}-{version}.json.gz"
    raw = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
    write_atomic(path, gzip.compress(raw, 9, mtime=0))
    click.echo(
        f"{path}: {len(document['flags'])} options, {len(document['env'])} "
        f"variables, {document['provenance']['method']}"
    )
    if before:
        click.echo(_difference(known.load(engine, before[-1]), known.parse(document)))


@schemas.command()
@click.argument("engine", type=click.Choice(known.ENGINES))
@click.argument("old")
@click.argument("new")
def diff(engine: str, old: str, new: str) -> int:
    """Show what changed between two versions."""
    if old == new:
        raise UsageError("the two versions are the same", fix="name two")
    click.echo(_difference(known.load(engine, old), known.load(engine, new)))
    return ExitCode.PASSED


def _difference(old: known.Schema, new: known.Schema) -> str:
    from nemolab.lint.compare import lines

    return "\n".join([f"{old.label} -> {new.version}", *lines(old, new)])
