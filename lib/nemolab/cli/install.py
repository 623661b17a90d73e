"""`nemolab install`: an engine from its lock into an environment of its own, or as a container image."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nemolab.core.errors import ExitCode, UsageError
from nemolab.core.sizes import human

if TYPE_CHECKING:
    from nemolab.engines.install import InstallPlan
    from nemolab.engines.install_image import Image

_LOCKED = ("vllm", "sglang")
_CONTAINERS = ("vllm", "sglang", "trtllm", "nim", "dynamo")


@click.command()
@click.argument("engine", required=False, type=click.Choice([*_CONTAINERS, "llamacpp"]))
@click.option("--version", default="", metavar="V", help="Engine version, such as 0.22.0; the newest by default.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and how large it is.")
@click.option("--container", is_flag=True, help="The image, where there is an environment too.")
@click.option("--image", default="", metavar="REF", help="Another image than the known one.")
@click.option("--remove", is_flag=True, help="Remove the environment again.")
@click.option("--relock", is_flag=True, help="Make a lock of this version, resolved as of its release.")
@click.option("--machine", default="", metavar="M", help="With --relock: x86_64 or aarch64.")
@click.option("--skip-disk-check", is_flag=True, help="Install even if the disk looks too small.")
def install(
    engine: str | None,
    version: str,
    dry_run: bool,
    container: bool,
    image: str,
    remove: bool,
    relock: bool,
    machine: str,
    skip_disk_check: bool,
) -> int:
    """Install ENGINE, or list what there is.

    vllm and sglang go into an environment of their own, from a lock with the hash of every file, resolved as of the
    day of the release; the lab's environment is not touched. trtllm, nim and dynamo are container images.
    An install that was interrupted goes on when it is started again.

    \b
    nemolab install                               what there is, and what is installed
    nemolab install vllm --version 0.22.0 --dry-run
    nemolab install trtllm                        log in with NGC_API_KEY, and pull
    """
    version = version.removeprefix("v")
    if engine is None:
        return _list()
    if engine == "llamacpp":
        click.echo("llama.cpp comes with the lab (the xllamacpp wheel): nemolab serve miniature")
        return ExitCode.PASSED
    if relock:
        return _relock(engine, version, machine)
    if remove:
        return _remove(engine, version)
    if container or image or engine not in _LOCKED:
        from nemolab.engines import install_image

        return _pull(install_image.of(engine, image) if image else install_image.find(engine, version), dry_run)
    from nemolab.engines import install as installing

    return _environment(installing.plan(engine, version), dry_run, not skip_disk_check)


def _environment(asked: InstallPlan, dry_run: bool, disk: bool) -> int:
    from nemolab.cli import text
    from nemolab.core.finding import Severity
    from nemolab.engines import install as installing

    lock = asked.lock
    click.echo(f"{asked.engine} {asked.version}: {len(lock.packages)} packages as of {lock.exclude_newer}")
    click.echo(f"  download   {human(asked.download)} at most; what uv has cached is not fetched again")
    click.echo(f"  on disk    {human(asked.disk)}")
    click.echo(f"  Python     {lock.python}, {lock.machine}, CUDA {lock.cuda or '-'}, glibc {lock.glibc} or newer")
    click.echo(f"  into       {asked.folder} ({asked.state})")
    found = installing.check(asked, disk=disk)
    if found:
        click.echo(text.findings(found))
    if dry_run:
        return ExitCode.FAILED if any(f.severity is Severity.ERROR for f in found) else ExitCode.PASSED
    sys.stdout.flush()
    python = installing.apply(asked, disk_check=disk, progress=_downloaded)
    click.echo(f"installed: {python}")
    return ExitCode.PASSED


def _downloaded(done: float, total: float | None, package: str | None) -> None:
    if package and total:
        click.echo(f"  {done / total:4.0%}  {human(done):>10}  {package}", err=True)


def _pull(image: Image, dry_run: bool) -> int:
    from nemolab.cli import text
    from nemolab.core.finding import Severity
    from nemolab.engines import install_image

    known = install_image.size(image)
    holds = f" ({image.holds})" if image.holds else ""
    click.echo(f"{image.engine} {image.version}: {image.reference}{holds}")
    click.echo(f"  download   {human(known) if known else 'not known before docker asks the registry'}")
    for step in install_image.commands(image):
        click.echo(f"  $ {step}")
    found = install_image.check(image)
    click.echo(text.findings(found))
    if dry_run:
        return ExitCode.FAILED if any(f.severity is Severity.ERROR for f in found) else ExitCode.PASSED
    digest = install_image.pull(image, on_line=lambda line: click.echo(f"  {line}", err=True))
    click.echo(f"pulled: {image.reference}" + (f"\n  digest {digest}" if digest else ""))
    return ExitCode.PASSED


def _relock(engine: str, version: str, machine: str) -> int:
    from nemolab.engines import install_lock, install_resolve

    if not version:
        raise UsageError("which version?", where="--relock", fix="--version 0.22.0")
    wanted = machine or install_lock.this_machine()
    lock = install_resolve.make(engine, version, wanted, say=click.echo)
    click.echo(f"{lock.path}: {len(lock.packages)} packages, {human(lock.download)}, CUDA {lock.cuda or '-'}")
    return ExitCode.PASSED


def _remove(engine: str, version: str) -> int:
    from nemolab.engines import install as installing

    if not version:
        raise UsageError("which version?", where="--remove", fix="`nemolab install` lists what is installed")
    gone = installing.remove(engine, version)
    click.echo(f"{engine} {version} {'removed; uv cache prune frees the rest' if gone else 'is not installed'}")
    return ExitCode.PASSED


def _list() -> int:
    from nemolab.cli import text
    from nemolab.engines import install as installing
    from nemolab.engines import install_image, install_lock

    rows: list[dict[str, object]] = []
    for engine in _LOCKED:
        for version in install_lock.versions(engine):
            try:
                asked = installing.plan(engine, version)
            except UsageError:
                continue  # not for this machine
            rows.append(
                {
                    "engine": engine,
                    "version": version,
                    "kind": "environment",
                    "released": asked.lock.released,
                    "download": human(asked.download),
                    "state": asked.state,
                }
            )
    for image in install_image.IMAGES:
        rows.append(
            {
                "engine": image.engine,
                "version": image.version,
                "kind": "image by digest" if image.pinned else "image by tag",
                "released": "-",
                "download": "-",
                "state": "-",
            }
        )
    click.echo(text.table(rows))
    return ExitCode.PASSED
