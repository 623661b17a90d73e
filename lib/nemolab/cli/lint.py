"""`nemolab lint`: hold launch commands, compose files, manifests, units and profiles against what is known."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nemolab.core.errors import ExitCode, UsageError
from nemolab.lint import Context, Finding, Severity, lint_text


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--engine", type=click.Choice(["vllm", "sglang", "trtllm"]), help="Engine, when the text does not tell.")
@click.option("--engine-version", metavar="V", help="Engine version, such as 0.22.0.")
@click.option("--model", metavar="M", help="Catalogue name, repository or folder of the model.")
@click.option("--gpu", metavar="G", help="Kind of GPU, such as h200.")
@click.option("--gpus", type=click.IntRange(1), metavar="N", help="GPUs in all.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list of findings.")
@click.option("--sarif", is_flag=True, help="SARIF 2.1.0, for code scanning.")
def lint(
    files: tuple[str, ...],
    engine: str | None,
    engine_version: str | None,
    model: str | None,
    gpu: str | None,
    gpus: int | None,
    as_json: bool,
    sarif: bool,
) -> int:
    """Check launch commands before the load.

    FILE is a pasted shell command or script, a compose file, a Kubernetes manifest, a systemd unit or a
    profile; - is standard input.

    \b
    Exit codes: 0 no errors, 1 errors found, 2 usage.
    """
    from nemolab.lint import render

    if as_json and sarif:
        raise UsageError("--json and --sarif exclude each other", fix="choose one")
    context = Context(engine, engine_version.removeprefix("v") if engine_version else None, model, gpu, gpus)
    _known(context)
    names = files or ("-",)
    failed = False
    everything = []
    for name in names:
        findings = _findings(name, _text(name), context)
        failed |= any(f.severity is Severity.ERROR for f in findings)
        everything += findings
        if not as_json and not sarif:
            click.echo(render.terminal(findings, name=name, colour=sys.stdout.isatty()))
    if as_json:
        click.echo(render.as_json(everything))
    elif sarif:
        click.echo(render.as_sarif(everything, name=names[0] if names[0] != "-" else "stdin"))
    return ExitCode.FAILED if failed else ExitCode.PASSED


def _findings(name: str, text: str, context: Context) -> list[Finding]:
    """Findings on a text; a profile's file is read with its base and its variants."""
    from nemolab.lint.documents import is_profile

    if name != "-" and is_profile(text):
        from nemolab.engines import profile_check

        return profile_check.of_file(Path(name), context)
    return lint_text(text, context)


def _known(context: Context) -> None:
    """Refuse a model or GPU that nothing is known of, rather than checking less in silence."""
    if context.model:
        from nemolab import models

        models.find(context.model)
    if context.gpu:
        from nemolab.lint import hardware

        hardware.find(context.gpu)


def _text(name: str) -> str:
    if name == "-":
        if sys.stdin.isatty():
            raise UsageError(
                "no file and nothing on standard input", fix="nemolab lint FILE, or paste into: nemolab lint -"
            )
        raw = sys.stdin.buffer.read()
    else:
        try:
            raw = Path(name).read_bytes()
        except OSError as error:
            raise UsageError(
                f"cannot read: {error.strerror or error}", where=name, fix="give a file, or - for standard input"
            ) from error
    return raw.decode("utf-8", errors="replace").removeprefix("\ufeff")
