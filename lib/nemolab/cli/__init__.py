"""The command line: `nemolab COMMAND`. Each command is a module of this package, imported only when it is called."""

from __future__ import annotations

import importlib
import sys

import click

from nemolab import __version__
from nemolab.core.errors import ExitCode, NemolabError

# command -> (module in this package, attribute, one line of help); the line spares the import for `--help`.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "run": ("run", "run", "Run a runbook and write its report."),
    "list": ("run", "list_", "List runbooks, and the runs that are in reports/."),
    "report": ("report", "report", "Write a run's HTML again from its record."),
    "diff": ("report", "diff", "Compare the results of two runs."),
    "check-report": ("report", "check_report", "Check that a report is whole and untampered."),
    "sign-off": ("run", "sign_off", "Sign a step off, for as long as nothing beneath it changes."),
    "lint": ("lint", "lint", "Check launch commands, compose files, manifests and profiles."),
    "schemas": ("schemas", "schemas", "List, make and compare the engines' command lines."),
    "lint-notebooks": ("notebooks", "lint_notebooks", "Check the notebooks against the house rules."),
    "install": ("install", "install", "Install an engine from its lock, or as a container image."),
    "profiles": ("render", "profiles", "List launch profiles, or show one with its reasons."),
    "render": ("render", "render", "Write the files with which a profile is started."),
    "serve": ("serve", "serve", "Serve a model with the embedded engine until Ctrl-C."),
    "servers": ("serve", "servers", "List the servers that run on this machine, or stop them."),
    "models": ("models", "models", "List the checkpoints of the family, or show one with its sources."),
    "plan": ("plan", "plan", "Plan the memory of a launch before anything is loaded."),
    "host": ("host", "host", "Say what this machine is and whether an engine can run on it."),
    "longctx": ("longctx", "longctx", "Build exact prompts, validate long context, plan what it proves and costs."),
    "miniature": ("miniature", "miniature", "Train, evaluate or export the miniature model."),
}


class Commands(click.Group):
    """A group that knows its commands by name and imports a command only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command: click.Command = getattr(importlib.import_module(f"nemolab.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="nemolab")
def app() -> None:
    """Serve Nemotron 3 models right, and prove it with executed reports.

    \b
    First steps:
      nemolab list                          what can be run
      nemolab run runbooks/quickstart.yaml  check, serve, probe, load and validate a real engine
      nemolab serve miniature               an OpenAI-compatible server on loopback

    \b
    Exit codes: 0 passed, 1 a failed expectation or finding, 2 usage, 3 error,
    4 timed out or killed, 130 interrupted.
    Shell completion: eval "$(_NEMOLAB_COMPLETE=bash_source nemolab)" (or zsh_source, fish_source).
    """


def main() -> None:
    """Entry point: run the command and turn every ending into its exit code."""
    try:
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except NemolabError as error:
        click.echo(f"nemolab: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        click.echo("nemolab: interrupted", err=True)
        sys.exit(ExitCode.INTERRUPTED)
