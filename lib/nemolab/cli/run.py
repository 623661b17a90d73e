"""`nemolab run`, `nemolab list`, `nemolab sign-off`."""

from __future__ import annotations

import click

from nemolab.core import paths
from nemolab.core.errors import UsageError


def _runbooks(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Shell completion of a runbook's name."""
    try:
        return [path.stem for path in paths.runbooks().glob("*.yaml") if path.stem.startswith(begun)]
    except UsageError:
        return []


def _runs(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Shell completion of a run's id."""
    try:
        return sorted(path.parent.name for path in paths.reports().glob(f"*/{begun}*/run.json"))
    except UsageError:
        return []


@click.command()
@click.argument("runbook", required=False, shell_complete=_runbooks)
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Set a parameter of the runbook. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Print the plan, check every notebook, start nothing.")
@click.option("--fresh", is_flag=True, help="Measure every step again; keep nothing of earlier runs.")
@click.option(
    "--resume", metavar="RUN", shell_complete=_runs, help="Go on with a run that did not end well, in its own folder."
)
@click.option(
    "--replay",
    metavar="RUN",
    shell_complete=_runs,
    help="Execute a run's notebooks again on its recordings; measure nothing.",
)
@click.option(
    "--recorded",
    metavar="RUN",
    multiple=True,
    shell_complete=_runs,
    help="Run again with RUN's parameters; take its recorded calls where they are the same. Repeatable.",
)
@click.option("--until", metavar="STEP", help="Run only this step and what it needs.")
@click.option("--jobs", type=click.IntRange(1), help="Independent steps side by side. Default: one more than cores.")
@click.option("--by", metavar="NAME", default="", help="Who asks for the run; stands in the report.")
def run(
    runbook: str | None,
    sets: tuple[str, ...],
    dry_run: bool,
    fresh: bool,
    resume: str | None,
    replay: str | None,
    recorded: tuple[str, ...],
    until: str | None,
    jobs: int | None,
    by: str,
) -> int:
    """Run a RUNBOOK (a file, or its name in runbooks/) and write its report.

    Steps whose notebook, parameters and library have not changed since they last passed are kept from that run.

    \b
      nemolab run quickstart                        everything that is not up to date
      nemolab run quickstart --set rates=[1,2,4]    with another parameter
      nemolab run quickstart --fresh                all again
      nemolab run --resume quickstart               the newest run, after a failure, a Ctrl-C or a sign-off
      nemolab run --replay 20260115-101500-3f9a     without servers and without measuring
      nemolab run --recorded 20260115-101500-3f9a   its measurements, with the notebooks and library of today
      nemolab run --recorded RUN --recorded OTHER   what the first does not hold, from the other one
    """
    if not (runbook or resume or replay or recorded):
        raise UsageError(
            "say what to run: RUNBOOK, --resume RUN, --replay RUN or --recorded RUN", fix="`nemolab list` shows them"
        )
    if sum(map(bool, (resume, replay, recorded))) > 1:
        raise UsageError("--resume, --replay and --recorded exclude each other", fix="keep one")
    if not dry_run:
        from nemolab.runbook import worker

        worker.warm()  # a process of its own imports papermill, while this one reads the runbook
    from nemolab.runbook import commands

    parsed = commands.parse_sets(sets)
    if replay:
        if sets or dry_run or fresh or until:
            raise UsageError("a replay takes no other option than --jobs")
        return commands.replay(replay, runbook=runbook, jobs=jobs)
    if recorded:
        if dry_run or fresh:
            raise UsageError("--recorded measures only what no recording holds", fix="leave out --dry-run and --fresh")
        return commands.recorded(recorded, parsed, runbook=runbook, until=until, jobs=jobs, by=by)
    if resume:
        if sets or fresh:
            raise UsageError("--resume goes on with the run's own parameters", fix="leave out --set and --fresh")
        return commands.resume(resume, runbook=runbook, until=until, jobs=jobs, dry_run=dry_run)
    assert runbook is not None
    if dry_run:
        return commands.dry_run(runbook, parsed, until=until, fresh=fresh)
    return commands.run(runbook, parsed, until=until, fresh=fresh, jobs=jobs, by=by)


@click.command("list")
@click.argument("runbook", required=False, shell_complete=_runbooks)
def list_(runbook: str | None) -> int:
    """List the runbooks with their last runs; with a RUNBOOK, all of its runs."""
    from nemolab.runbook import listing

    for line in listing.runs(runbook) if runbook else listing.runbooks():
        click.echo(line)
    return 0


@click.command("sign-off")
@click.argument("run", shell_complete=_runs)
@click.argument("step")
@click.option("--role", required=True, help="The role in which you answer for the step.")
@click.option("--by", required=True, metavar="NAME", help="Who you are.")
@click.option("--note", default="", help="What the reader should know.")
def sign_off(run: str, step: str, role: str, by: str, note: str) -> int:
    """Sign STEP of RUN off. The sign-off holds until anything beneath the step changes."""
    from nemolab.runbook import sign_off as signing

    click.echo(signing.sign(run, step, role=role, by=by, note=note))
    return 0
