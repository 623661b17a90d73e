"""What a ladder does: its stages, the shape of a request, and the limits that call a request good enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from nemolab.core.errors import UsageError

Mode = Literal["closed", "open"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One rung.

    Attributes:
        mode: "closed" keeps `level` requests in flight; "open" sends `level` requests a second whatever comes back.
        level: streams, or requests a second.
        requests: how many in all.
    """

    mode: Mode
    level: float
    requests: int

    def __str__(self) -> str:
        return f"{self.level:g} streams" if self.mode == "closed" else f"{self.level:g} requests/s"


@dataclass(frozen=True, slots=True)
class Slo:
    """Service level: limits in milliseconds; None does not limit."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None

    def __str__(self) -> str:
        limits = (("TTFT", self.ttft_ms), ("TPOT", self.tpot_ms), ("end to end", self.e2e_ms))
        return ", ".join(f"{name} <= {limit:g} ms" for name, limit in limits if limit is not None) or "no limit"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a ladder sends.

    Attributes:
        stages: in order; the ladder stops early when a stage fails.
        prompt_tokens: wanted length; words are calibrated on the server, the true count comes from `usage`.
        output_tokens: tokens to generate; `ignore_eos` holds engines that know it to exactly this.
        shared_prefix: share of the prompt that every request has in common; 0 defeats the prefix cache.
        warmup: requests sent and thrown away before the first stage.
        seed: of prompts and arrivals.
        stall_s: a stream without a byte for so long is an error.
        total_s: a request that takes longer is an error.
        max_error_share: a stage with a larger share of errors ends the ladder.
        poisson: open loop: exponential gaps between arrivals, or equal ones.
        extra_body: merged into every request, such as `{"chat_template_kwargs": {"enable_thinking": False}}`.
    """

    stages: tuple[Stage, ...]
    prompt_tokens: int = 256
    output_tokens: int = 64
    shared_prefix: float = 0.0
    warmup: int = 1
    seed: int = 0
    stall_s: float = 60.0
    total_s: float = 600.0
    max_error_share: float = 0.1
    poisson: bool = True
    extra_body: dict[str, Any] = field(default_factory=dict)


def stages(text: str, mode: Mode = "closed", requests: int = 12) -> tuple[Stage, ...]:
    """Stages from `"1,2,4"`. A closed stage takes at least three requests a stream: fewer never fill it.

    Raises:
        UsageError: not a rising list of positive numbers.
    """
    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError:
        levels = []
    whole = mode == "open" or all(level == int(level) for level in levels)
    if not levels or levels[0] <= 0 or levels != sorted(set(levels)) or not whole:
        wanted = "streams as whole numbers" if mode == "closed" else "requests a second"
        raise UsageError(f"not stages: {text!r}", where="stages", fix=f'{wanted}, rising, such as "1,2,4"')
    least = 3 if mode == "closed" else 0
    return tuple(Stage(mode, level, max(requests, int(least * level))) for level in levels)
