"""`nemolab render` and `nemolab profiles`: the files with which a profile is started, and the profiles there are."""

from __future__ import annotations

from pathlib import Path

import click

from nemolab.core.errors import ExitCode, UsageError

_TARGETS = ("process", "docker", "compose", "systemd", "k8s", "slurm", "ray", "dynamo")


@click.command()
@click.argument("profile")
@click.option("--to", "target", required=True, type=click.Choice(_TARGETS), help="What starts it.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder to write into; default: print.")
@click.option("--set", "settings", multiple=True, metavar="K=V", help="A setting; several times.")
@click.option("--force", is_flag=True, help="Also what the profile says does not fit.")
def render(profile: str, target: str, out: Path | None, settings: tuple[str, ...], force: bool) -> int:
    """Write the files with which PROFILE is started.

    PROFILE is a name in runbooks/profiles or a YAML file; NAME:VARIANT takes a variant of it.

    \b
    Settings: args.FLAG, env.NAME, image, revision, ports.http change the profile;
      name, model_dir, models, bind, shm_gib, disk_gb_s and more say where things are.
    Examples:
      nemolab render ultra_nvfp4_4xb200_vllm --to compose --out deploy
      nemolab render ultra_nvfp4_4xb200_vllm:long-context --to k8s --set storage_class=fast
      nemolab render miniature_vllm --to docker --set args.max-model-len=8192
    Secrets are named in the files, never written.
    """
    from nemolab.engines import profile as profiles
    from nemolab.engines import render as renderers

    changes, chosen = _split(settings)
    loaded = profiles.changed(profiles.load(profile), changes)
    files = renderers.render(loaded, target, chosen, force=force)
    if out:
        for path in renderers.write(files, out):
            click.echo(str(path))
        return ExitCode.PASSED
    for name, text in files.items():
        if len(files) > 1:
            click.echo(f"==> {name} <==")
        click.echo(text, nl=False)
    return ExitCode.PASSED


@click.command()
@click.argument("profile", required=False)
@click.option("--lint", "check", is_flag=True, help="Lint and plan each; exit 1 on what a profile does not name.")
def profiles(profile: str | None, check: bool) -> int:
    """List the profiles, or show one: settings with their reasons, what lint and the planner say of it."""
    from nemolab.cli import text
    from nemolab.engines import profile as module
    from nemolab.engines import profile_check

    if profile:
        return _show(module.load(profile))
    rows = []
    failed = False
    for item in module.every():
        row: dict[str, object] = {
            "profile": item.full_name,
            "engine": f"{item.engine} {item.engine_version}",
            "hardware": f"{item.hardware.gpus} x {item.hardware.gpu}" if item.hardware.gpus else "CPU",
            "goal": item.goal,
        }
        if check:
            open_ = profile_check.unnamed(item)
            failed |= bool(open_)
            row["lint"] = ", ".join(sorted({f.code for f in open_})) or "clean"
            row["plan"] = _fit(item)
        rows.append(row)
    click.echo(text.table(rows))
    return ExitCode.FAILED if failed else ExitCode.PASSED


def _show(profile: object) -> int:
    from nemolab.cli import text
    from nemolab.engines import profile_check
    from nemolab.engines.profile import Profile

    assert isinstance(profile, Profile)
    click.echo(f"{profile.full_name}: {profile.title}")
    click.echo(f"{profile.engine} {profile.engine_version}, {profile.image or 'no image'}, goal {profile.goal}")
    if profile.variants and not profile.variant:
        click.echo(f"variants: {', '.join(profile.variants)}")
    if profile.notes:
        click.echo(profile.notes.strip())
    values = {**profile.args, **profile.frontend, **profile.env}
    rows = []
    for name, value in values.items():
        reason = profile.reasons.get(name)
        rows.append(
            {
                "setting": name,
                "value": str(value),
                "why": reason.why if reason else "",
                "source": reason.source if reason else "",
            }
        )
    click.echo("\n" + text.table(rows))
    for item in profile.disagreements:
        says = "; ".join(f"{answer} ({who})" for answer, who in item.says.items())
        click.echo(f"\nsources disagree on {item.about}: {says}. Chosen: {item.chosen}")
    click.echo(f"\nplan: {_fit(profile)}")
    found = profile_check.findings(profile)
    if found:
        click.echo("\n" + text.findings(found))
    return ExitCode.FAILED if profile_check.unnamed(profile) else ExitCode.PASSED


def _fit(profile: object) -> str:
    from nemolab.engines import profile_check
    from nemolab.engines.profile import Profile

    assert isinstance(profile, Profile)
    plan = profile_check.plan(profile)
    return "not planned" if plan is None else str(plan.fit)


def _split(settings: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Changes of the profile, and settings of the target."""
    changes: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"{item!r} has no value", where="--set", fix="--set NAME=VALUE")
        ours = "." in name or name in ("image", "revision")
        (changes if ours else chosen)[name] = value
    return changes, chosen
