"""What a ladder leaves: one row a request, one record a stage. Raw, so that statistics can be done again from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from nemolab.load.plan import Plan, Stage


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the client saw it; times in seconds from the stage's start, durations in seconds.

    Attributes:
        due_s: when it should have been sent; later than that and the wait counts as latency (open loop).
        tpot_s: (last token - first token) / (completion tokens - 1), tokens from `usage`; never from chunk gaps.
        gap_s: longest wait between two chunks: what a reader sees, not a token time.
        lag_s: largest lateness of the client's event loop meanwhile: the error bar of the times.
    """

    due_s: float
    sent_s: float
    ok: bool
    total_s: float
    ttft_s: float | None = None
    tpot_s: float | None = None
    gap_s: float | None = None
    lag_s: float = 0.0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    chunks: int = 0
    finish_reason: str | None = None
    error_class: str | None = None
    error: str | None = None

    @property
    def late_s(self) -> float:
        """How much later than due the client sent it."""
        return max(0.0, self.sent_s - self.due_s)


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage as it happened.

    Attributes:
        wall_s: from the first request sent to the last one ended.
        cpu_share: share of one core that the client took meanwhile; near 1 it was the limit.
        server: the change of every server counter that moved.
        stopped: why the stage ended early, "" if it did not.
    """

    stage: Stage
    requests: tuple[Request, ...]
    wall_s: float
    cpu_share: float
    server: dict[str, float] = field(default_factory=dict)
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class LadderResult:
    """A whole ladder.

    Attributes:
        plan: what was asked for.
        stages: what happened; shorter than the plan's when the ladder was stopped.
        ignore_eos: whether the server took the option that holds outputs to their full length.
        notes: what a reader must know, in sentences.
    """

    plan: Plan
    stages: tuple[StageRun, ...]
    ignore_eos: bool
    notes: tuple[str, ...] = ()
