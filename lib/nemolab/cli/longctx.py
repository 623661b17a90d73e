"""`nemolab longctx`: build prompts, run suites, score what was answered, plan what it proves and costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nemolab.cli.longctx_plan import plan
from nemolab.cli.longctx_run import run, score
from nemolab.core.errors import ExitCode, UsageError

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_COUNTED_BY = {"/tokenize": "its /tokenize, without a prefill", "usage": "the usage of a request for one token"}


@click.group()
def longctx() -> None:
    """Long context: exact prompts, tasks, statistics, and one class for every request.

    \b
    nemolab longctx tasks
    nemolab longctx build --task niah_single_1 --tokens 1M --tokenizer tokenizer.json --out prompt.txt
    nemolab longctx run --base-url http://127.0.0.1:8080/v1 --model miniature --lengths 2K,8K --out rows.jsonl
    nemolab longctx score rows.jsonl
    nemolab longctx plan --lengths 128K,1M --n 256 --model nano-bf16 --gpu h200 --rate 3
    """


@longctx.command("tasks")
def list_tasks() -> None:
    """List the tasks."""
    from nemolab.cli.text import table
    from nemolab.longctx.tasks import TASKS

    rows = [{"task": name, "as RULER's": t.ruler, "own text": t.document, "asks": t.help} for name, t in TASKS.items()]
    click.echo(table(rows))


@longctx.command()
@click.option("--task", default="niah_single_1", show_default=True, help="One of `nemolab longctx tasks`.")
@click.option("--tokens", required=True, help="Length, template included: 8192, 128K, 1M.")
@click.option("--tokenizer", default="miniature", show_default=True, help="Path of a tokenizer.json, or miniature.")
@click.option("--overhead", type=click.IntRange(0), default=0, help="Tokens that the server's template adds, if known.")
@click.option("--base-url", default="", help="Server to measure the overhead on, and to confirm the length.")
@click.option("--model", default="", help="Its model; default: the only one that is served.")
@click.option("--api-key-env", default="", help="Environment variable that holds its key.")
@click.option("--thinking/--no-thinking", default=False, help="Changes the template of a server.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--depth", "depths", type=click.FloatRange(0, 1), multiple=True, help="Of a needle; repeat for several.")
@click.option("--question", type=click.IntRange(0), default=0, help="Which of the text's questions.")
@click.option("--questions", type=click.IntRange(1), default=1, show_default=True, help="How many the text has.")
@click.option("--document", "documents", multiple=True, type=click.Path(dir_okay=False), help="Text to hide in.")
@click.option("--fast", type=click.Choice(["auto", "off", "fastokens", "tokie"]), default="auto", show_default=True)
@click.option("--recipe", "recipe_path", type=click.Path(dir_okay=False), help="Make the prompt of this recipe again.")
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="File for the prompt.")
@_JSON
def build(
    task: str, tokens: str, tokenizer: str, overhead: int, base_url: str, model: str, api_key_env: str,
    thinking: bool, seed: int,
    depths: tuple[float, ...], question: int, questions: int, documents: tuple[str, ...], fast: Any,
    recipe_path: str | None, out: str, as_json: bool,
) -> int:  # fmt: skip
    """Build one prompt of exact length; its recipe goes to OUT.recipe.json, one line.

    With --base-url the server's template is measured with two tiny requests, and the server counts the prompt: exit
    code 1 when it counts another length. vLLM, SGLang and llama.cpp count at /tokenize; elsewhere it costs one prefill.
    """
    import time

    from nemolab.client.attach import attach
    from nemolab.core.files import write_atomic
    from nemolab.longctx import Builder, Counter
    from nemolab.longctx.calibrate import confirm, measure
    from nemolab.longctx.recipe import Recipe, prepare, read
    from nemolab.longctx.suite import tokenizer_path
    from nemolab.models import length

    started = time.process_time()
    builder = Builder(Counter(tokenizer_path(tokenizer), fast))
    extra = {"chat_template_kwargs": {"enable_thinking": thinking}}
    endpoint = attach(base_url, model, api_key_env=api_key_env or None) if base_url else None
    if endpoint is not None:
        overhead = measure(endpoint, builder.counter, extra)
    wanted = length(tokens, where="--tokens")
    recipe = Recipe(
        task,
        seed,
        wanted,
        overhead,
        depths or (0.5,),
        questions,
        question,
        builder.counter.sha256,
        documents,
    )
    if recipe_path:
        recipe = read(_text(Path(recipe_path)))
    builder.counter.expect(recipe.tokens)
    ready = time.process_time()
    prompt = prepare(recipe, builder)
    cpu = time.process_time() - ready
    recipe = replace(recipe, sha256=prompt.sha256)
    write_atomic(Path(out), prompt.text)
    write_atomic(Path(f"{out}.recipe.json"), recipe.line() + "\n")
    counted = confirm(endpoint, prompt.text, extra) if endpoint is not None else None
    document = {
        "tokens": prompt.tokens + recipe.overhead,
        "overhead": recipe.overhead,
        "server_tokens": counted.tokens if counted else None,
        "server_counted_by": counted.by if counted else None,
        "needles": [{"depth": n.depth, "wanted": n.wanted, "offset": n.offset, "line": n.line} for n in prompt.needles],
        "expected": list(prompt.question.expected),
        "sha256": prompt.sha256,
        "bytes": len(prompt.text.encode()),
        "counter": builder.counter.name,
        "cpu_seconds": round(cpu, 4),
        "setup_cpu_seconds": round(ready - started, 4),
        "peak_memory_mib": _peak_mib(),
        "recipe": f"{out}.recipe.json",
    }
    code = ExitCode.PASSED if counted is None or counted.tokens == document["tokens"] else ExitCode.FAILED
    if as_json:
        click.echo(json.dumps(document, indent=1))
        return code
    click.echo(f"{out}: {document['tokens']:,} tokens, exact, counted with {builder.counter.name} in {cpu:.2f} CPU-s")
    for needle in prompt.needles:
        click.echo(f"  {needle.offset:>9,}  {100 * needle.depth:6.2f} %  {needle.line}")
    click.echo(f"  expected: {', '.join(prompt.question.expected) or 'a refusal'}; sha256 {prompt.sha256}")
    if counted is not None:
        off = counted.tokens - prompt.tokens - recipe.overhead
        click.echo(f"  the server counts {counted.tokens:,} ({off:+d}), by {_COUNTED_BY[counted.by]}")
    return code


def _peak_mib() -> float:
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read: {error}", where=str(path)) from None


longctx.add_command(run)
longctx.add_command(score)
longctx.add_command(plan)
