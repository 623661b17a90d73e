"""`nemolab longctx run` and `score`."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nemolab.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nemolab.longctx.rows import Row

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_SEND = "ids: token ids, template included, so that the server has nothing to tokenize."
_WANTED = click.option(
    "--wanted", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.8, show_default=True,
    help="Share of right answers that a length must prove.",
)  # fmt: skip


@click.command()
@click.option("--base-url", required=True, help="Such as http://127.0.0.1:8080/v1.")
@click.option("--model", default="", help="Name to ask for; default: the only one that is served.")
@click.option("--api-key-env", default="", help="Environment variable that holds the key.")
@click.option("--tokenizer", default="miniature", show_default=True, help="Path of a tokenizer.json, or miniature.")
@click.option("--tasks", "names", default="niah_multikey_1", show_default=True, help="Comma between.")
@click.option("--lengths", default="2K,8K", show_default=True, help="Template included; K and M are binary.")
@click.option("--n", type=click.IntRange(1), default=32, show_default=True, help="Answers for each task and length.")
@click.option("--questions", type=click.IntRange(1, 64), default=8, show_default=True, help="On each text.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--thinking-tokens", type=click.IntRange(-1), default=0, help="0: thinking off; -1: not sent.")
@click.option("--budget-s", type=click.FloatRange(0), default=0.0, help="Seconds for each length; 0: no limit.")
@click.option("--stop-early", is_flag=True, help="End a length as soon as it is settled.")
@click.option("--no-controls", is_flag=True, help="Only the questions themselves.")
@click.option("--send", type=click.Choice(["text", "ids"]), default="text", show_default=True, help=_SEND)
@click.option("--document", "documents", multiple=True, type=click.Path(dir_okay=False), help="Text to hide in.")
@click.option("--out", type=click.Path(dir_okay=False), help="JSON lines; run again to go on where it stopped.")
@_WANTED
@_JSON
def run(
    base_url: str, model: str, api_key_env: str, tokenizer: str, names: str, lengths: str, n: int, questions: int,
    seed: int, thinking_tokens: int, budget_s: float, stop_early: bool, no_controls: bool,
    send: Any, documents: tuple[str, ...], out: str | None, wanted: float, as_json: bool,
) -> int:  # fmt: skip
    """Ask a server, and say how far its context holds. Exit code 1 when it is shown not to."""
    from nemolab.client.attach import attach
    from nemolab.longctx import Suite, run_suite
    from nemolab.longctx.params import lengths as read_lengths
    from nemolab.longctx.suite import check

    suite = Suite(
        tuple(name.strip() for name in names.split(",")),
        read_lengths(lengths),
        haystacks=math.ceil(n / questions),
        questions=questions,
        seed=seed,
        controls=not no_controls,
        thinking=None if thinking_tokens < 0 else thinking_tokens > 0,
        thinking_tokens=max(0, thinking_tokens),
        budget_s=budget_s or None,
        stop_at=wanted if stop_early else None,
        documents=documents,
        send=send,
    )
    check(suite)
    endpoint = attach(base_url, model, api_key_env=api_key_env or None)
    result = run_suite(endpoint, suite, tokenizer, progress=_show, journal=Path(out) if out else None)
    click.echo("\r\x1b[K", err=True, nl=False)
    return _report(result.rows, wanted, as_json, result.notes)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@_WANTED
@_JSON
def score(files: tuple[str, ...], wanted: float, as_json: bool) -> int:
    """Score rows that `run --out` wrote; with two files, compare them question by question (McNemar).

    \b
    nemolab longctx score bf16.jsonl
    nemolab longctx score bf16.jsonl fp8.jsonl
    """
    from nemolab.longctx import journal
    from nemolab.longctx.compare import pair_rows, sentence

    if len(files) > 2:
        raise UsageError("two files at most", where="score", fix="compare them in pairs")
    rows = [journal.rows(Path(path)) for path in files]
    if len(rows) == 1:
        return _report(rows[0], wanted, as_json)
    pairs = pair_rows(rows[0], rows[1])
    if as_json:
        click.echo(json.dumps([{"length": pair.tokens, **asdict(pair.result)} for pair in pairs], indent=1))
    else:
        click.echo("\n".join(sentence(pair, (Path(files[0]).stem, Path(files[1]).stem)) for pair in pairs))
    return ExitCode.FAILED if any(pair.result.p < 0.05 and pair.result.difference < 0 for pair in pairs) else 0


def _report(rows: Sequence[Row], wanted: float, as_json: bool, notes: Sequence[str] = ()) -> int:
    """Print what rows say; the exit code is the verdict's."""
    from nemolab.cli.text import findings, table
    from nemolab.longctx import by_depth, by_length, conclude, look

    lengths = by_length(rows)
    found = conclude.findings(rows, lengths, wanted, notes)
    good = conclude.passed(rows, lengths, wanted)
    if as_json:
        document = {
            "passed": good,
            "verdict": conclude.verdict(lengths, wanted),
            "results": conclude.results(rows, lengths, wanted),
            "lengths": [
                {"tokens": x.tokens, "right": x.right.share.successes, "n": x.right.share.n, "texts": x.right.haystacks,
                 "low": x.right.share.low, "high": x.right.share.high, "worth": x.right.effective, "ruler": x.ruler,
                 "outcomes": {str(k): n for k, n in x.outcomes},
                 "tasks": {task: {"right": t.share.successes, "n": t.share.n, "low": t.share.low, "high": t.share.high}
                           for task, t in x.tasks}}
                for x in lengths
            ],
            "depths": [
                {"tokens": c.tokens, "from": c.low, "to": c.high, "right": c.share.successes, "n": c.share.n}
                for c in by_depth(rows)
            ],
            "findings": [item.as_dict() for item in found],
        }  # fmt: skip
        click.echo(json.dumps(document, indent=1))
        return ExitCode.PASSED if good else ExitCode.FAILED
    click.echo(table(look.length_table(lengths)))
    if len({row.task for row in rows}) > 1:
        click.echo("\n" + table(look.task_table(lengths)))
    click.echo("\n" + table(look.outcome_table(rows)))
    click.echo("\n" + findings(found))
    click.echo(f"\n{'PASSED' if good else 'FAILED'}: {conclude.verdict(lengths, wanted)}")
    return ExitCode.PASSED if good else ExitCode.FAILED


def _show(done: int, total: int, what: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{done}/{total}  {what}", err=True, nl=False)
