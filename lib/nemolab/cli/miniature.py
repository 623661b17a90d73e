"""`nemolab miniature`: train, eval, export."""

from __future__ import annotations

from pathlib import Path

import click

from nemolab.core.errors import ExitCode, UsageError


@click.group()
def miniature() -> None:
    """Train, evaluate or export the miniature model.

    \b
    nemolab miniature export --out miniature.gguf     for any llama.cpp
    nemolab miniature export --out folder/            for transformers, vLLM and SGLang
    nemolab miniature eval --base-url http://127.0.0.1:8080/v1
    nemolab miniature train --smoke                   30 s on a CPU, to see that training works
    """


@miniature.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("miniature"), show_default=True, help="Folder.")
@click.option("--smoke", is_flag=True, help="Ten small steps on the CPU; the result knows nothing.")
@click.option("--workers", type=click.IntRange(min=0), default=None, help="Processes that write conversations.")
def train(out: Path, smoke: bool, workers: int | None) -> int:
    """Train the miniature into a folder that transformers and vLLM load.

    Takes about seven minutes on one H200 and needs the extra `train` (uv sync --extra train). The same seed gives the
    same conversations. Interrupted, it goes on from its last checkpoint when called again.
    """
    from nemolab.miniature import training

    training.require("smoke" if smoke else "full")
    with click.progressbar(length=1000, label="train", item_show_func=_shown) as bar:

        def show(step: int, steps: int, line: str) -> None:
            bar.update(int(1000 * step / steps) - bar.pos, f"step {step}: {line}")

        training.run(out, smoke=smoke, workers=workers, progress=show)
    click.echo(f"{out}: config, weights, tokenizer, template; training.jsonl has the curve")
    return ExitCode.PASSED


def _shown(note: str | None) -> str | None:
    """What stands behind the progress bar, on a terminal."""
    return note


@miniature.command("eval")
@click.option(
    "--base-url", default="", help="Any OpenAI-compatible server; default: the embedded engine, for this run."
)
@click.option("--model", default="nemolab-miniature", show_default=True)
@click.option("--api-key-env", default="", help="Environment variable that holds the key.")
@click.option("--lengths", default="512,2048,8192", show_default=True, help="Prompt lengths in tokens.")
@click.option("--texts", type=click.IntRange(min=1), default=4, show_default=True, help="Haystacks of each length.")
@click.option("--seed", type=int, default=1, show_default=True)
def evaluate(base_url: str, model: str, api_key_env: str, lengths: str, texts: int, seed: int) -> int:
    """Ask the miniature questions with one right answer each; exit 1 below its limits.

    Limits: 99 % exact match up to 8,192 tokens, 95 % at 32,768, 95 % refusals of absent keys.
    """
    from pydantic import ValidationError

    from nemolab.cli import text
    from nemolab.engines import llamacpp, process
    from nemolab.miniature import evaluate as examination
    from nemolab.miniature import look
    from nemolab.miniature.params import EvaluateParams

    try:
        every = ",".join(str(texts) for _ in lengths.split(","))
        asked = EvaluateParams(model=model, lengths=lengths, texts=every, short=10, seed=seed)
    except ValidationError as error:
        raise UsageError(error.errors()[0]["msg"], where="--lengths") from None
    what = asked.examination()
    server = None
    try:
        if not base_url:
            server = llamacpp.serve(llamacpp.Options(ctx=max(what.lengths) + 1024, parallel=1))
            base_url, model = server.base_url, server.model
        with click.progressbar(length=what.count, label="ask", item_show_func=_shown) as bar:

            def show(done: float, total: float | None, note: str | None) -> None:
                bar.update(int(done) - bar.pos, note)

            outcomes = examination.examine(
                base_url, model, what, timeout_s=asked.timeout_s, api_key_env=api_key_env, progress=show
            )
    finally:
        if server:
            process.stop(server)
    click.echo(text.table(look.share_rows(examination.by_length(outcomes), "length")) + "\n")
    click.echo(text.table(look.share_rows(examination.by_ability(outcomes), "ability")))
    if wrong := look.wrong_rows(outcomes):
        click.echo("\n" + text.table(wrong))
    values = look.evaluation_results(outcomes)
    click.echo(f"\n{look.sentence(values)}")
    return ExitCode.PASSED if values.good else ExitCode.FAILED


@miniature.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A .gguf file, or a folder.")
@click.option("--checkpoint", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Default: shipped.")
@click.option("--file-type", type=click.Choice(["Q8_0", "F16", "F32"]), default="Q8_0", show_default=True)
def export(out: Path, checkpoint: Path | None, file_type: str) -> int:
    """Write the miniature as GGUF, or copy its checkpoint folder, from the same tensors."""
    import shutil
    from typing import cast

    from nemolab.miniature import checkpoint_folder
    from nemolab.miniature.export import FileType, write_gguf

    source = checkpoint or checkpoint_folder()
    if out.suffix == ".gguf":
        write_gguf(source, out, cast(FileType, file_type))
    elif out.exists():
        raise UsageError("already there", where=str(out), fix="name a new folder, or a file that ends in .gguf")
    else:
        shutil.copytree(source, out, ignore=shutil.ignore_patterns("checkpoint.pt", "*.part"))
    click.echo(str(out))
    return ExitCode.PASSED
