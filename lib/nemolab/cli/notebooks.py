"""`nemolab lint-notebooks`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nemolab.core import paths
from nemolab.core.errors import ExitCode, UsageError
from nemolab.core.finding import Finding


@click.command("lint-notebooks")
@click.argument("notebooks", nargs=-1, metavar="[PATHS]...")
@click.option("--fix", is_flag=True, help="Put right what is mechanical: outputs, ids, kernel, the parameters cell.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def lint_notebooks(notebooks: tuple[str, ...], fix: bool, as_json: bool) -> int:
    """Check notebooks against the house rules (docs/notebooks.md).

    PATHS are notebooks or folders of them; without any, the checkout's notebooks/. Exit code 1 if there are findings.
    """
    from nemolab.notebook import fix as fixing
    from nemolab.notebook.lint import lint

    chosen = _chosen(notebooks)
    fixed = [path for path in chosen if fix and _readable(path) and fixing.fix(path)]
    here = Path.cwd()
    findings = lint(chosen, base=here)
    if as_json:
        document = {"notebooks": len(chosen), "fixed": [str(p) for p in fixed], "findings": _rows(findings)}
        click.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        for path in fixed:
            click.echo(f"fixed {path}")
        for finding in findings:
            click.echo(f"{finding.where}: {finding.code} {finding.message}\n    fix: {finding.fix}")
        count = f"{len(findings)} finding{'' if len(findings) == 1 else 's'}" if findings else "no findings"
        click.echo(f"{len(chosen)} notebook{'' if len(chosen) == 1 else 's'}, {count}")
    return int(ExitCode.FAILED if findings else ExitCode.PASSED)


def _chosen(names: tuple[str, ...]) -> list[Path]:
    chosen: dict[Path, None] = {}
    for path in [Path(name).resolve() for name in names] or [paths.notebooks()]:
        if path.is_dir():
            chosen |= dict.fromkeys(p for p in sorted(path.rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts)
        elif path.exists():
            chosen[path] = None
        else:
            raise UsageError("no such notebook or folder", where=str(path), fix="`ls notebooks` shows them")
    return list(chosen)


def _readable(path: Path) -> bool:
    from nemolab.notebook import source

    try:
        source.read(path)
    except UsageError:
        return False
    return True


def _rows(findings: list[Finding]) -> list[dict[str, str | None]]:
    return [finding.as_dict() for finding in findings]
