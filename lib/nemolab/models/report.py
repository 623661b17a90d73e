"""Plans and checkpoint folders as rows and findings that people read; used by notebooks 11 and 12."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.core.sizes import GIB, gib
from nemolab.models.files import Checkpoint
from nemolab.models.listed import Judged
from nemolab.models.model import Model
from nemolab.models.planner import Plan
from nemolab.models.remedies import Remedy
from nemolab.models.roofline import Decode, Prefill


def plan_rows(found: Plan) -> list[dict[str, str]]:
    """Every value of a plan with its formula."""
    return [
        {
            "value": value.name.removesuffix("_bytes").replace("_", " "),
            "amount": amount(value.value, value.unit),
            "kind": "estimate" if value.estimate else "exact",
            "formula": value.formula,
            "source": value.source,
        }
        for value in found.values
    ]


def time_rows(first: Prefill, step: Decode) -> list[dict[str, str]]:
    """Times of a prefill and of a decode step."""
    return [
        {
            "what": f"prefill of {first.tokens:,} tokens",
            "work": f"{first.linear_flops + first.attention_flops:.3g} FLOP, "
            f"{first.attention_flops / (first.linear_flops + first.attention_flops):.0%} attention",
            "no faster than": f"{first.bound_seconds:,.2f} s",
            "assumed": f"{first.seconds:,.2f} s",
            "assumption": first.assumption,
        },
        {
            "what": f"decode step, {step.batch} x {step.context:,} tokens",
            "work": f"{(step.weight_bytes + step.cache_bytes) / GIB:,.1f} GiB a GPU",
            "no faster than": f"{step.bound_seconds * 1e3:,.2f} ms",
            "assumed": f"{step.seconds * 1e3:,.2f} ms, {step.tokens_per_second:,.0f} tokens/s",
            "assumption": step.assumption,
        },
    ]


def remedy_rows(changes: Iterable[Remedy]) -> list[dict[str, Any]]:
    """Changes that make a launch fit."""
    return [
        {
            "change": change.what,
            "left (GiB)": round(change.plan.headroom / GIB, 1),
            "requests": round(change.plan.concurrency, 2),
            "fit": str(change.plan.fit),
        }
        for change in changes
    ]


def listed_rows(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """Combinations on official pages, with what arithmetic says."""
    return [
        {
            "model": item.listing.model,
            "layout": item.listing.layout,
            "weights (GiB)": round(item.plan.weights.total / GIB, 1),
            "budget (GiB)": round(item.plan.budget / GIB, 1),
            "needed utilisation": round(item.needed, 2),
            "verdict": item.verdict,
            "listed by": ", ".join(item.listing.who),
        }
        for item in judged
    ]


def plan_findings(found: Plan, min_concurrency: float) -> tuple[Finding, ...]:
    """What keeps a launch from being served as asked."""
    asked, where = found.request, f"{found.request.gpus} x {found.request.gpu.name}"
    if not found.fits:
        return (
            Finding(
                "M-MEMORY",
                Severity.ERROR,
                f"{asked.model.name}: {gib(found.weights.total)} of weights and {gib(found.overhead.total)} of "
                f"overhead leave {gib(found.available_kv)} of {gib(found.budget)}; one request of "
                f"{asked.length:,} tokens takes {gib(found.request_bytes)}",
                "one of the single changes in the table above, or a smaller checkpoint",
                "arithmetic of this notebook",
                where=where,
            ),
        )
    if found.concurrency < min_concurrency:
        return (
            Finding(
                "M-CONCURRENCY",
                Severity.ERROR,
                f"{found.concurrency:.2f} requests of {asked.length:,} tokens at once, {min_concurrency:g} wanted",
                "more GPUs, a shorter max_model_len, FP8 KV cache",
                "arithmetic of this notebook",
                where=where,
            ),
        )
    if found.fit == "tight":
        return (
            Finding(
                "M-TIGHT",
                Severity.WARNING,
                f"{gib(found.headroom)} are left, less than the estimates are good for",
                "leave more room, or measure once and plan with the log's available KV memory",
                "arithmetic of this notebook",
                where=where,
            ),
        )
    return ()


def sentence(found: Plan, min_concurrency: float) -> str:
    """The verdict in one sentence."""
    asked = found.request
    used = asked.parallel.gpus
    share = f"{used} of {asked.gpus}" if used < asked.gpus else f"{asked.gpus}"
    what = f"{asked.model.name} on {share} x {asked.gpu.name}"
    if not found.fits:
        return f"{what} does not hold one request of {asked.length:,} tokens."
    enough = "" if found.concurrency >= min_concurrency else f", fewer than the {min_concurrency:g} wanted"
    tight = ", tightly" if found.fit == "tight" else ""
    return f"{what} holds {found.concurrency:.2f} requests of {asked.length:,} tokens{tight}{enough}."


def folder_rows(found: Checkpoint, model: Model | None) -> list[dict[str, str]]:
    """What a checkpoint folder holds."""
    whole = sum(shard.complete for shard in found.shards)
    shown = {
        "recognised as": model.name if model else "unknown",
        "repository": model.repo if model and model.repo else "none",
        "shards complete": f"{whole} of {len(found.shards)}",
        "tensors": f"{sum(shard.tensors for shard in found.shards):,}",
        "size there": f"{found.present / 1e9:,.3f} GB",
        "size expected": _expected(found, model),
        "bytes by type": ", ".join(f"{name} {size / 1e9:,.3f} GB" for name, size in found.dtypes.items()) or "unknown",
        "quantisation": found.quantisation or "none named",
        "chat template": "yes" if found.chat_template else "no",
        "tokenizer": found.tokenizer_error or "complete",
        "tokenizer limit": f"{found.tokenizer_limit:,} tokens" if found.tokenizer_limit else "none",
        "revision": found.revision or "unknown",
        "licence": found.licence or "not named",
        "disk free": f"{found.disk_free / 1e9:,.1f} GB",
    }
    return [{"fact": name, "value": value} for name, value in shown.items()]


def shard_rows(found: Checkpoint) -> list[dict[str, Any]]:
    """Shards, those with a problem first."""
    ordered = sorted(found.shards, key=lambda shard: (shard.complete, shard.name))
    return [
        {
            "shard": shard.name,
            "state": "complete" if shard.complete else "missing" if shard.size is None else "cut short",
            "bytes": shard.size,
            "expected": shard.expected,
            "tensors": shard.tensors or None,
        }
        for shard in ordered
    ]


def folder_sentence(found: Checkpoint, model: Model | None, complete: bool) -> str:
    """The verdict on a folder in one sentence."""
    name = model.name if model else "an unknown checkpoint"
    if complete:
        return f"{name} is complete and can be loaded."
    bad = len(found.incomplete)
    what = f"{bad} of {len(found.shards)} shards are missing or cut short" if bad else "the findings name what is wrong"
    return f"{name} cannot be loaded: {what}."


def _expected(found: Checkpoint, model: Model | None) -> str:
    size = found.index_size or (model.size if model is not None and model.architecture is not None else None)
    return "unknown" if size is None else f"{size / 1e9:,.3f} GB"


def amount(value: Any, unit: str) -> str:
    """A value of a plan for people."""
    if unit == "bytes" and abs(value) >= GIB // 10:
        return gib(value, 2)
    return f"{value:,} {unit}".rstrip()
