"""Why a rung failed: by its class, which part of the way to look at and what to change."""

from __future__ import annotations

from nemolab.core.finding import Finding, Severity
from nemolab.longctx.failures import FORM, MODEL, Outcome
from nemolab.longctx.rows import Row

_SWITCH = "the engine's maximum: both switches, the length and the variable, and room for the answer below it"
_WHERE: dict[Outcome, tuple[str, str]] = {
    Outcome.REFUSED_LENGTH: ("the engine refuses the length", _SWITCH),
    Outcome.NOT_SENT: (
        "the prompt did not get through",
        "the size limit of bodies at every proxy and server: 4.3 MB of text at 1M tokens",
    ),
    Outcome.CLIENT_TIMEOUT: (
        "the client gave up",
        "the prefill is slower than shorter prompts let expect: look at the engine's queue and chunk size",
    ),
    Outcome.IDLE_CUT: (
        "something closed the silent connection",
        "idle limits of proxies and load balancers above the prefill; a keep-alive of streams where the engine has one",
    ),
    Outcome.EMPTY_200: ("success without an answer", "a queue or proxy that ends requests with 200: its time-out"),
    Outcome.SERVER_ERROR: ("the server reports an error", "its log: memory of the step, time-out of the executor"),
    Outcome.ENGINE_DIED: (
        "the engine is gone",
        "its log: out of memory in the step (a smaller batch-token budget) or an illegal access (chunked prefill on)",
    ),
    Outcome.RETRIED: ("the prompt was computed more than once", "retries off in every hop"),
    Outcome.TRUNCATED: ("the server got less than was sent", "--allow-auto-truncate and limits of proxies off"),
    Outcome.LENGTH_MISMATCH: ("the server counts other tokens", "the tokenizer.json and template of the served model"),
    Outcome.CACHE_SUSPECT: (
        "right without the prefix cache, wrong with it",
        "prefix caching off, or Mamba mode align; report it to the engine",
    ),
    Outcome.GARBAGE: (
        "the answer is no text",
        "a kernel or state fault: another chunk size, prefix caching off, another attention or MoE backend",
    ),
}
_FORM = ("the answer has another form than asked for", "reasoning parser and answer budget; 30_probe_api tells which")
_MODEL = (
    "the needle was not found although the prompt arrived whole",
    "one answer proves little: 51_validate_long_context at this length and the one before; a cliff between them is a "
    "kernel, a slope the model",
)


def explain(row: Row) -> Finding:
    """The failure of a rung as a finding."""
    if row.outcome in MODEL:
        what, fix = _MODEL
    elif row.outcome in FORM - {Outcome.GARBAGE}:
        what, fix = _FORM
    else:
        what, fix = _WHERE.get(row.outcome, (str(row.outcome), "the server's log"))
    text = f"{row.outcome} at {row.length:,} tokens: {what}. {row.why}".rstrip(" .") + "."
    return Finding("X-CLIMB", Severity.ERROR, text, fix, where=f"{row.length:,} tokens")
