"""What a suite means: the sentence for a stakeholder, whether it passed, findings, and the results."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.core.intervals import percent, settles
from nemolab.longctx.cliff import cliff
from nemolab.longctx.failures import TRANSPORT, Outcome
from nemolab.longctx.rows import Row
from nemolab.longctx.stats import claim
from nemolab.longctx.summary import Length, holds_to, suspect, tells, unanswered

_WHOLE, _SLOW_S = 0.99, 1.0  # share of a prompt from the cache, and a wait that is worth a word
_PROMPT_FIX = {
    Outcome.REFUSED_LENGTH: "raise the engine's maximum length, or ask for less",
    Outcome.TRUNCATED: "find who cuts: a server default, a proxy, a client's history limit",
    Outcome.LENGTH_MISMATCH: "give the tokenizer.json and template of the model that is served",
    Outcome.RETRIED: "turn retries off in every hop; a prompt of this size must not be computed twice",
    Outcome.CACHE_SUSPECT: "serve without prefix caching and compare; report it to the engine",
    Outcome.GARBAGE: "look for a kernel or state fault: other chunk sizes, cache off",
    Outcome.THINKING_ATE_BUDGET: "raise thinking_tokens, or turn thinking off",
}


def verdict(lengths: Sequence[Length], wanted: float) -> str:
    """The sentence for a stakeholder: how far it holds, and what is not settled beyond."""
    if not lengths:
        return "Nothing was answered."
    held = holds_to(lengths, wanted)
    first = next((length for length in lengths if length.tokens > held), None)
    parts = []
    if held:
        last = next(length for length in lengths if length.tokens == held)
        parts.append(f"holds to {held:,} at {last.right}")
    if first is not None:
        parts.append(_beyond(first, wanted))
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _beyond(length: Length, wanted: float) -> str:
    failing = [f"{task} at {found}" for task, found in length.failing(wanted)]
    if not failing or len(failing) == len(length.tasks):
        return claim(length.tokens, length.right, wanted)
    return f"fails at {length.tokens:,} in {', '.join(failing)}; all together {length.right}"


def passed(rows: Sequence[Row], lengths: Sequence[Length], wanted: float) -> bool:
    """Whether nothing is shown to fail: no length and no task below the wanted share for sure, no transport or prompt
    fault."""
    if not lengths or unanswered(rows) or suspect(rows):
        return False
    return all(length.right.share.high >= wanted and not length.failing(wanted) for length in lengths)


def findings(rows: Sequence[Row], lengths: Sequence[Length], wanted: float, notes: Sequence[str] = ()) -> list[Finding]:
    """What a reader must know before believing the figures."""
    out = [Finding("X-NOTE", Severity.INFO, note) for note in notes]
    for outcome in Outcome:
        here = [row for row in rows if row.outcome is outcome]
        if here and (outcome in TRANSPORT or outcome in _PROMPT_FIX):
            fix = _PROMPT_FIX.get(outcome, "look at proxy, client and server limits, not at the model")
            text = f"{len(here)} x {outcome}, first at {here[0].length:,} tokens: {here[0].why}"
            out.append(Finding("X-FAULT", Severity.ERROR, text, fix, where=here[0].id))
    leaks = [row for row in rows if row.outcome is Outcome.LEAK]
    if leaks:
        text = f"{len(leaks)} questions were answered right without their text, so their answers prove nothing."
        out.append(Finding("X-LEAK", Severity.ERROR, text, "another task or seed", where=leaks[0].id))
    if found := cliff(rows):
        place = "tokens of prompt" if found.of == "length" else "tokens before the needle"
        text = (
            f"Right answers end between {found.after:,} and {found.before:,} {place}, from "
            f"{percent(found.before_share)} to {percent(found.after_share)}: a cliff, as overflowing kernels make it, "
            "not the slope of a model."
        )
        fix = "ask around it with other chunk sizes and with the cache off; report it to the engine"
        out.append(Finding("X-CLIFF", Severity.ERROR, text, fix))
    for length in lengths:
        where = f"{length.tokens:,} tokens"
        missed = dict(length.controls).get("wrong key")
        if missed and missed.successes < missed.n:
            text = f"Asked for a key that is not there, it invents a value: declined {missed}."
            out.append(Finding("X-ABSENT", Severity.WARNING, text, "do not trust an answer by itself", where=where))
        share = length.right.share
        if share.n and share.low < wanted <= share.high and not length.failing(wanted):
            text = f"{length.right} does not settle {percent(wanted)}."
            need = f"with every answer right, {settles(wanted)} independent ones would"
            out.append(Finding("X-UNPROVEN", Severity.WARNING, text, f"more texts: {need}", where=where))
    out += _reading(rows, lengths)
    assumed: dict[float, list[str]] = {}
    for length in lengths:
        if length.right.assumed:
            assumed.setdefault(length.right.rho, []).append(f"{length.tokens:,}")
    for rho, at in assumed.items():
        text = f"How alike answers on one text are was assumed ({rho}), not measured."
        out.append(Finding("X-ASSUMED", Severity.INFO, text, where=f"{', '.join(at)} tokens"))
    return out


def _reading(rows: Sequence[Row], lengths: Sequence[Length]) -> list[Finding]:
    """What a cache cannot spare: the server cuts a text into tokens each time. A million take a core some seconds
    (vllm-project/vllm#24910; measured: 3.7 s, vLLM 0.22.0). Not told of ids, nor where computing the rest of the prompt
    takes as long: at the end of a prompt a token costs up to twice the usual."""
    for length in reversed(lengths):
        known = [
            (row.ttft_s, row.cached / row.counted)
            for row in rows
            if row.length == length.tokens and row.ttft_s and row.cached is not None and row.counted and not row.by_ids
        ]
        hits = [seconds for seconds, share in known if share >= _WHOLE]
        computed = max((seconds for seconds, share in known if share < 1 - _WHOLE), default=0.0)
        left = 1 - min((share for _, share in known if share >= _WHOLE), default=1.0)
        if hits and (usual := median(hits)) - 2 * left * computed >= _SLOW_S:
            text = (
                f"With {percent(_WHOLE)} of the prompt and more from the cache, a question still waits {usual:.1f} s: "
                "the server reads the text and cuts it into tokens."
            )
            fix = "send=ids, which leaves that to the client"
            where = f"{length.tokens:,} tokens"
            return [Finding("X-TEXT", Severity.INFO, text, fix, "vllm-project/vllm#24910", where=where)]
    return []


def results(rows: Sequence[Row], lengths: Sequence[Length], wanted: float) -> dict[str, Any]:
    """The values of `ContextResults`."""
    longest = lengths[-1] if lengths else None
    share = longest.right.share if longest else None
    absent = [row for row in rows if row.control == "wrong key" and tells(row)]
    errors = [abs(row.counted - row.built) for row in rows if row.counted is not None]
    return {
        "holds_to_tokens": holds_to(lengths, wanted),
        "longest_tokens": longest.tokens if longest else 0,
        "correct_share": round(share.value, 4) if share and share.n else None,
        "correct_low": round(share.low, 4) if share and share.n else None,
        "answers": share.n if share else 0,
        "wrong_key_share": round(sum(row.correct for row in absent) / len(absent), 4) if absent else None,
        "leaks": sum(row.outcome is Outcome.LEAK for row in rows),
        "not_answered": unanswered(rows),
        "suspect": suspect(rows),
        "length_error_tokens": max(errors, default=None),
        "ttft_cold_s": round(longest.cold.value, 3) if longest and longest.cold.n else None,
        "ttft_warm_s": round(longest.warm.value, 3) if longest and longest.warm.n else None,
    }
