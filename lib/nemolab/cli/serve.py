"""`nemolab serve` and `nemolab servers`."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING

import click

from nemolab.core.errors import ExitCode, NemolabError, UsageError

if TYPE_CHECKING:
    from nemolab.engines.process import Progress, Server

_EXAMPLE = """
  curl {base_url}/chat/completions -H 'Content-Type: application/json' -d '{{"model": "{model}",
    "messages": [{{"role": "user", "content": "Who are you?"}}]}}'

  from openai import OpenAI
  client = OpenAI(base_url="{base_url}", api_key="none")
  client.chat.completions.create(model="{model}", messages=[{{"role": "user", "content": "Who are you?"}}])
"""


@click.command()
@click.argument("model", default="miniature")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes any free port.")
@click.option(
    "--ctx", type=click.IntRange(min=256), default=16384, show_default=True, help="Tokens a request can have."
)
@click.option("--threads", type=click.IntRange(min=0), default=0, help="Default: all cores but one.")
@click.option("--parallel", type=click.IntRange(min=1), default=2, show_default=True, help="Requests at the same time.")
@click.option("--timeout", "timeout_s", type=float, default=600.0, show_default=True, help="Longest start, in seconds.")
def serve(model: str, port: int, ctx: int, threads: int, parallel: int, timeout_s: float) -> int:
    """Serve MODEL with llama.cpp on loopback until Ctrl-C.

    MODEL is `miniature` (the default), or the path of a GGUF file. The server speaks the OpenAI API under /v1, and
    has /health, /metrics and /tokenize. Nothing is left running: not after Ctrl-C, not after a crash.

    \b
    nemolab serve miniature
    nemolab serve ~/models/some-model.gguf --port 0 --ctx 32768
    """
    from nemolab.engines import llamacpp, process

    options = llamacpp.Options(model=model, ctx=ctx, port=port, threads=threads, parallel=parallel)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    server = llamacpp.serve(options, timeout_s=timeout_s, progress=_show)
    try:
        _announce(server)
        while any(known.id == server.id for known in process.running()):
            time.sleep(0.2)
        gone = process.ended(server.base_url)
        if gone is None or gone.ended is None:
            click.echo(f"{server.id} was stopped.", err=True)
            return ExitCode.PASSED
        error = NemolabError(
            f"{server.title} ended: {gone.ended.reason}", where=gone.log, fix="read the end of the log"
        )
        error.exit_code = ExitCode.KILLED
        raise error
    finally:
        process.stop(server)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _show(progress: Progress) -> None:
    if progress.new:
        click.echo(f"{progress.elapsed_s:7.1f} s  {progress.phase}", err=True)


def _announce(server: Server) -> None:
    click.echo(f"{server.title} answers after {server.ready_s:.1f} s.")
    click.echo(f"  base URL  {server.base_url}\n  model     {server.model}\n  log       {server.log}")
    click.echo(_EXAMPLE.format(base_url=server.base_url, model=server.model))
    click.echo("Ctrl-C stops it.")
    sys.stdout.flush()


@click.group(invoke_without_command=True)
@click.pass_context
def servers(ctx: click.Context) -> None:
    """List the servers that nemolab runs on this machine, or stop them."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@servers.command("list")
def list_() -> None:
    """List running servers, and those that ended by themselves within a day."""
    from nemolab.cli import text
    from nemolab.engines import state

    rows: list[dict[str, object]] = [
        {
            "id": server.id,
            "state": "orphan" if server.orphan else "running" if server.running else "ended",
            "address": server.base_url,
            "model": server.model,
            "pid": str(server.pid),
            "since": state.clock(server.since),
            "owner": server.run or (str(server.owner) if server.owner else "nobody"),
            "log": server.log,
        }
        for server in state.every()
        if server.running or server.ended
    ]
    click.echo(text.table(rows) if rows else "No servers.")


@servers.command("stop")
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Stop all of them.")
def stop(ids: tuple[str, ...], everything: bool) -> None:
    """Stop servers by id, and forget those that have ended."""
    from nemolab.engines import process, state

    known = {server.id for server in state.every()}
    if everything == bool(ids):
        raise UsageError("name the servers to stop, or say --all", fix="`nemolab servers` lists them")
    if unknown := sorted(set(ids) - known):
        raise UsageError(f"no such server: {', '.join(unknown)}", fix="`nemolab servers` lists them")
    for server_id in sorted(known) if everything else ids:
        click.echo(f"{server_id} {'stopped' if process.stop(server_id) else 'had ended'}")
