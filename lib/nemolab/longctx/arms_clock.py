"""When things happened: by the client's clock, and by the engine's own, one request between two scrapes of its metrics.

A client's clock is no judge of decode steps after a long prompt: vLLM 0.22.0 sent 64 tokens in 2 chunks there.
"""

from __future__ import annotations

from typing import Literal

from nemolab.client.collect import StreamResult
from nemolab.client.prometheus import Metrics

# vLLM 0.22.0, v1/metrics/loggers.py: from scheduling to the first token, and on to the last, by the engine core.
_CLOCKS = {
    "prefill": "vllm:request_prefill_time_seconds",
    "decode": "vllm:request_decode_time_seconds",
}


def first_token(got: StreamResult) -> float:
    """Seconds to the first token.

    Tokens without a text, as random weights choose them, come without a chunk in vLLM, and several can come in one.
    Where fewer than half of the tokens have a chunk, the stream's first byte counts: engines open it with the first
    token (vLLM 0.22.0, chat_completion/serving.py: the role's chunk).
    """
    silent = got.ttft_s is None or got.chunks < (got.completion_tokens or 0) / 2
    return (got.first_byte_s if silent else got.ttft_s) or got.ttft_s or 0.0


def spent(before: Metrics | None, after: Metrics | None, what: Literal["prefill", "decode"]) -> float | None:
    """Seconds of the one request between two scrapes, by the engine's own clock."""
    if before is None or after is None:
        return None
    name = _CLOCKS[what]
    count = after.sums.get(f"{name}_count", 0.0) - before.sums.get(f"{name}_count", 0.0)
    spent = after.sums.get(f"{name}_sum", 0.0) - before.sums.get(f"{name}_sum", 0.0)
    return spent if count == 1 and spent > 0 else None


def hits(before: Metrics | None, after: Metrics | None) -> int | None:
    """Prompt tokens from a cache between two scrapes."""
    if before is None or after is None or before.cached_prompt_tokens is None or after.cached_prompt_tokens is None:
        return None
    return round(after.cached_prompt_tokens - before.cached_prompt_tokens)
