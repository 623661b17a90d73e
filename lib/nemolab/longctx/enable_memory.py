"""What a long context costs: memory and time by length, and what is given up against the native length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nemolab.longctx.enable_case import Launched, Row
from nemolab.longctx.enable_hops import prefill_s

NATIVE = 262_144
LENGTHS = (4_096, 65_536, NATIVE, 524_288, 1_048_576)  # the rungs of the climb, and the step between its last two
_COLUMNS = ("length", "cache of one", "cache holds", "at once", "first token, alone", "decode step, alone")
_PLANNER = "planner: closed form of the engine's cache"
_ROOFLINE = "planner: roofline, 40 % of the peak in prefill, 60 % of the bandwidth in decode"
CAPTION = "Cost by length, planned; times at 40 % of the peak in prefill, 60 % of the bandwidth in decode"


@dataclass(frozen=True, slots=True)
class Cost:
    """One length on this launch's GPUs.

    Attributes:
        request_gib: cache of one request, GiB on each GPU.
        held: requests of this length that the cache holds.
        at_once: those that the launch's limit of sequences lets run together.
        prefill_s, step_ms: planned first token of one prompt alone, and one decode step after it.
    """

    tokens: int
    request_gib: float
    held: float
    at_once: float
    prefill_s: float
    step_ms: float


def costs(here: Launched) -> tuple[Cost, ...]:
    """Cost at the rungs of the climb, at 512K, and at the launch's own length; nothing without a plan."""
    if here.plan is None:
        return ()
    return tuple(_cost(here, tokens) for tokens in sorted({*LENGTHS, here.length}))


def rows(found: tuple[Cost, ...]) -> list[Row]:
    """The costs as a table."""
    return [
        {
            "length": f"{cost.tokens:,}",
            "cache of one": f"{cost.request_gib:.2f} GiB a GPU",
            "cache holds": f"{cost.held:.1f}",
            "at once": f"{cost.at_once:.1f}",
            "first token, alone": _time(cost.prefill_s, "s"),
            "decode step, alone": _time(cost.step_ms, "ms"),
        }
        for cost in found
    ] or [dict.fromkeys(_COLUMNS, "-")]


def lost(here: Launched, found: tuple[Cost, ...]) -> list[Row]:
    """What the long launch gives up: against its own shorter requests, and against the profile it is a variant of."""
    out: list[Row] = []
    native = next((cost for cost in found if cost.tokens == NATIVE), None)
    whole = next((cost for cost in found if cost.tokens == here.length), None)
    if native and whole and whole.tokens > native.tokens:
        out += [
            _row("requests that the cache holds", f"{native.held:.1f}", f"{whole.held:.1f}", _PLANNER),
            _row("first token, alone", _time(native.prefill_s, "s"), _time(whole.prefill_s, "s"), _ROOFLINE),
            _row("decode step, alone", _time(native.step_ms, "ms"), _time(whole.step_ms, "ms"), _ROOFLINE),
        ]
    out += _published(here)
    if here.engine == "sglang":
        out.append(
            _row("a prompt of the whole length", "-", "refused: it must be shorter, with its answer",
                 "SGLang 0.5.23 request validation")
        )  # fmt: skip
    return [*out, *_changes(here)] or [_row("nothing", "-", "-", "-")]


def _changes(here: Launched) -> list[Row]:
    """Settings that the variant has otherwise than its profile, with the profile's own source."""
    if here.base is None:
        return []
    before, now = (_flat(side.profile.args, side.profile.files) for side in (here.base, here))
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [
        _row(name, _text(before.get(name)), _text(now.get(name)), here.reason(name, name.partition(".")[0])[1])
        for name in names
    ]


def _published(here: Launched) -> list[Row]:
    from nemolab import models
    from nemolab.longctx import published

    beside = published.beside(models.find(here.profile.model).repo)
    by_checkpoint: dict[str, dict[int, str]] = {}
    for row in beside:
        by_checkpoint.setdefault(str(row["checkpoint"]), {})[int(row["length"])] = str(row["RULER string match"])
    return [
        _row(f"RULER of {name}", at.get(NATIVE, "not published"), at[LENGTHS[-1]], "model card or technical report")
        for name, at in by_checkpoint.items()
        if LENGTHS[-1] in at and "quantisation" not in name
    ]


def _cost(here: Launched, tokens: int) -> Cost:
    from nemolab import models
    from nemolab.models.roofline import decode
    from nemolab.models.units import gib

    assert here.plan is not None
    asked = here.plan.request.but(max_model_len=tokens)
    found = models.plan(asked)
    limit = asked.max_running_requests
    held = found.concurrency if found.cache else found.kv_tokens / tokens
    return Cost(
        tokens,
        gib(found.request_bytes),
        round(held, 2),
        round(min(held, limit or held, found.concurrency), 2),
        _rounded(prefill_s(here, tokens) or 0.0),
        _rounded(decode(asked, 1, tokens).seconds * 1000),
    )


def _time(value: float, unit: str) -> str:
    return f"{value:,.1f} {unit}" if value >= 0.05 or not value else f"{value:.2g} {unit}"


def _rounded(value: float) -> float:
    """Two decimals, or two digits where those are later: a small model's first token comes in milliseconds."""
    return round(value, 2) if value >= 0.1 else float(f"{value:.2g}")


def _row(what: str, native: str, long: str, source: str) -> Row:
    return {"what": what, "at 256K": native, "here": long, "source": source or "-"}


def _flat(args: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    found = dict(args)
    for content in files.values():
        found |= _leaves(content, "")
    return found


def _leaves(content: Mapping[str, Any], above: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{above}{key}"
        found |= _leaves(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    return "not set" if value is None else "on" if value is True else "off" if value is False else str(value)
