"""`nemolab longctx plan`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from nemolab.core.errors import UsageError

if TYPE_CHECKING:
    from nemolab.longctx.price import Price, Seconds

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_MONEY = "Money for one GPU and hour, in any currency."
_WANTED = click.option(
    "--wanted", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.8, show_default=True,
    help="Share of right answers that a length must prove.",
)  # fmt: skip


@click.command()
@click.option("--lengths", default="128K,1M", show_default=True, help="K and M are binary.")
@click.option("--tasks", "tasks", type=click.IntRange(1), default=1, show_default=True, help="How many tasks.")
@click.option("--n", type=click.IntRange(1), default=256, show_default=True, help="Answers for each task and length.")
@click.option("--questions", type=click.IntRange(1, 64), default=8, show_default=True, help="On each text.")
@click.option("--model", default="", help="Catalogue name, for the prefill's FLOPs.")
@click.option("--gpu", default="", help="Kind of GPU, with --model.")
@click.option("--gpus", type=click.IntRange(1), default=1, show_default=True, help="That the server holds (--tp).")
@click.option("--measured", default="", help="A measured prefill instead: TOKENS=SECONDS, such as 128K=3.24.")
@click.option("--rate", type=click.FloatRange(0), default=None, help=_MONEY)
@_WANTED
@_JSON
def plan(
    lengths: str, tasks: int, n: int, questions: int, model: str, gpu: str, gpus: int, measured: str,
    rate: float | None, wanted: float, as_json: bool,
) -> None:  # fmt: skip
    """Say what a suite will prove, and what it costs in time, GPU-hours and money.

    \b
    nemolab longctx plan --lengths 128K,1M --n 256 --model nano-bf16 --gpu h200 --rate 3
    nemolab longctx plan --lengths 8K --n 32 --measured 8K=6.5
    """
    from nemolab.cli.text import table
    from nemolab.longctx import price
    from nemolab.longctx.params import lengths as read_lengths

    if rate is not None and not math.isfinite(rate):
        raise UsageError(f"not an amount of money: {rate}", where="--rate", fix="a number, such as 3")
    texts = tasks * math.ceil(n / questions)
    seconds = _seconds(model, gpu, gpus, measured)
    prices = price.plan(read_lengths(lengths), texts, questions, wanted, seconds, gpus, rate)
    if as_json:
        click.echo(json.dumps([asdict(p) for p in prices], indent=1))
        return
    click.echo(table([_price_row(p, wanted) for p in prices]))
    click.echo("\nFrom the cache: the prefix cache serves all questions on a text but its first; without it, none.")


def _price_row(p: Price, wanted: float) -> dict[str, object]:
    row: dict[str, object] = {
        "length": p.tokens,
        "texts": p.texts,
        "answers": p.answers,
        "worth": round(p.worth, 1),
        "all right proves": f">= {p.proves:.1%}",
        f"needed for {wanted:.0%}": p.needed,
        "difference shown": f"{p.detects:.1%}" if p.detects is not None else "none",
    }
    if p.prefill_s is not None and p.seconds is not None and p.seconds_uncached is not None:
        row["prefill"] = _time(p.prefill_s)
        row["from the cache"] = _cost(p.seconds, p.gpu_hours, p.money, 0)
        row["without it"] = _cost(p.seconds_uncached, p.gpu_hours, p.money, 1)
    return row


def _cost(seconds: float, hours: tuple[float, float] | None, money: tuple[float, float] | None, which: int) -> str:
    parts = [_time(seconds)]
    parts += [f"{hours[which]:.1f} GPU-h"] if hours else []
    parts += [f"{money[which]:,.2f}"] if money else []
    return ", ".join(parts)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _seconds(model: str, gpu: str, gpus: int, measured: str) -> Seconds | None:
    """Prefill time by length: measured, or the roofline's, or unknown."""
    from nemolab import models
    from nemolab.longctx import price

    if measured:
        tokens, _, took = measured.partition("=")
        try:
            return price.from_measured(models.length(tokens), float(took))
        except ValueError:
            raise UsageError(f"not a measured prefill: {measured!r}", where="--measured", fix="128K=3.24") from None
    if not model and not gpu:
        return None
    if not (model and gpu):
        raise UsageError("--model and --gpu go together", where="plan", fix="give both, or --measured")
    from nemolab.models.roofline import prefill

    asked = models.request(model, gpu, tensor_parallel_size=gpus)
    return lambda tokens: prefill(asked, tokens).seconds
