"""Time-outs on the way of a long prompt: what each hop must allow, from the planner's prefill, and what it does allow.

Nothing flows back before the first token, so every hop before the engine waits for the whole prefill; the engine's own
limits are for one step, which takes one chunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nemolab.core.finding import Finding, Severity
from nemolab.longctx.enable_case import Launched, Row
from nemolab.longctx.timeouts import limit

# JSON of 1,048,576 tokens of a vocabulary of 131,072, at most: text measured 2.4 to 4.3 MB, ids 4.7 to 5.0 MB as they
# are sent here, 5.7 to 6.1 MB by a client that writes a blank after each comma.
BODY_BYTES, _IDS_BYTES = 4.3e6, 5.0e6
_PER_TOKEN = BODY_BYTES / (1 << 20)
_PLANNER = "planner: FLOPs of the prefill at 40 % of the peak"


@dataclass(frozen=True, slots=True)
class Hop:
    """One limit on the way.

    Attributes:
        limit: what it is called there.
        needed_s: seconds it must allow; None where it is no matter of seconds.
        given_s: what it allows, set here or by default; None where nobody said.
        set_here: whether this launch, or whoever runs this, said it.
        note: what to know.
    """

    hop: str
    limit: str
    needed_s: float | None
    given_s: float | None
    set_here: bool
    note: str
    source: str

    @property
    def short(self) -> bool:
        """Whether it is known to cut a prompt of this length."""
        return self.needed_s is not None and self.given_s is not None and self.given_s < self.needed_s

    @property
    def row(self) -> Row:
        """The hop as a row of the table."""
        given = (
            "not said" if self.given_s is None else f"{self.given_s:,.0f} s" + ("" if self.set_here else " (default)")
        )
        judged = "-" if self.needed_s is None else "unknown" if self.given_s is None else "enough"
        return {
            "hop": self.hop,
            "limit": self.limit,
            "needs": f"{self.needed_s:,.0f} s" if self.needed_s is not None else "-",
            "has": given,
            "verdict": "too short" if self.short else judged,
            "know": self.note,
            "source": self.source,
        }


def prefill_s(here: Launched, tokens: int) -> float | None:
    """Planned seconds of a prompt alone on the launch's GPUs; None without a plan."""
    if here.plan is None:
        return None
    from nemolab.models.roofline import prefill

    return prefill(here.plan.request, tokens).seconds


def step_s(here: Launched) -> float | None:
    """Planned seconds of the longest step: the last chunk, which attends to everything before it."""
    whole, before = prefill_s(here, here.length), prefill_s(here, max(1, here.length - here.chunk))
    if whole is None or before is None:
        return None
    return whole if here.chunk >= here.length else whole - before


def hops(here: Launched, client_limit_s: float = 0.0, proxy_idle_s: float = 0.0) -> tuple[Hop, ...]:
    """Every limit on the way to this launch, from the client inwards.

    Args:
        client_limit_s: what the client allows a request; 0: not said.
        proxy_idle_s: how long a proxy in front lets a connection be silent; 0: not said, or there is none.
    """
    whole, step = prefill_s(here, here.length), step_s(here)
    total = _up(limit(whole)) if whole is not None else None
    one = _up(limit(step)) if step is not None else None
    every = here.case.number("sse_keep_alive_interval")
    megabytes = here.length * _PER_TOKEN / 1e6
    found = [
        Hop(
            "client", "total of a request", total, client_limit_s or None, client_limit_s > 0,
            "4 x the planned prefill and a minute; without retries, or it is computed again (openai: 600 s, 2)",
            f"{_PLANNER}; vllm-project/vllm#20520",
        ),
        Hop(
            "proxy", "idle limit (nginx: proxy_read_timeout)", 2.0 * every if every else total,
            proxy_idle_s or None, proxy_idle_s > 0, _silence(here, every),
            "nginx defaults to 60 s; vllm-project/vllm#47647",
        ),
        Hop(
            "proxy", "size of a body (nginx: client_max_body_size)", None, None, False,
            f"{megabytes:.1f} MB of text, {megabytes * _IDS_BYTES / BODY_BYTES:.1f} MB as token ids; "
            "nginx takes 1 MB by default",
            "measured over three kinds of text; sgl-project/sglang#6622",
        ),
    ]  # fmt: skip
    if here.engine == "vllm":
        found += _vllm(here, one)
    elif here.engine == "sglang":
        found.append(_flag(here, "engine", "watchdog_timeout", 300, one,
                           "one forward step; when it takes longer the server ends itself"))  # fmt: skip
    elif here.engine == "trtllm":
        found.append(
            Hop(
                "engine",
                "none known",
                one,
                None,
                False,
                "no limit of a step in this version's options",
                f"trtllm {here.case.version}, keys of the options file",
            )
        )
    return tuple(found)


def findings(found: tuple[Hop, ...]) -> list[Finding]:
    """A warning for every limit that is known to be too short."""
    return [
        Finding(
            "X-HOP",
            Severity.WARNING,
            f"{hop.hop}: {hop.limit} allows {hop.given_s:,.0f} s, and {hop.needed_s:,.0f} s may be needed",
            f"raise it to {hop.needed_s:,.0f} s or more",
            hop.source,
        )
        for hop in found
        if hop.short
    ]


def _vllm(here: Launched, one: float | None) -> list[Hop]:
    told = here.case.env("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS")
    label = f"vLLM {here.case.version or ''}".strip()
    execute = "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"
    loading = "only over several machines; collectives wait for the slowest rank, also while weights load"
    return [
        Hop(
            "engine", execute, one, float(told) if told else float(here.default(execute, 300)), bool(told),
            f"one step of {here.chunk:,} tokens, not the whole prompt", f"{label}, envs.py",
        ),
        Hop(
            "engine", "VLLM_HTTP_TIMEOUT_KEEP_ALIVE", None, float(here.default("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", 5)),
            False, "idle connections between requests: a client that keeps one longer meets a reset",
            f"{label}, envs.py",
        ),
        Hop(
            "Ray", "RAY_CGRAPH_get_timeout", one, _env(here, "RAY_CGRAPH_get_timeout") or 300.0,
            _env(here, "RAY_CGRAPH_get_timeout") is not None,
            "only with the Ray executor, which sets 300 s when it is not set", "vLLM ray_distributed_executor.py",
        ),
        _flag(here, "Ray", "distributed_timeout_seconds", 600, one, loading),
    ]  # fmt: skip


def _flag(here: Launched, hop: str, dest: str, otherwise: float, needed: float | None, note: str) -> Hop:
    told = here.case.value(dest)
    given = float(told) if isinstance(told, int | float) else float(here.default(dest, otherwise))
    name = here.case.spelled(dest) or "--" + dest.replace("_", "-")
    return Hop(hop, name, needed, given, told is not None, note, f"{here.engine} {here.case.version}, command line")


def _silence(here: Launched, every: int | None) -> str:
    if every:
        return f"--sse-keep-alive-interval {every}: a comment flows every {every} s"
    if here.case.schema and "sse_keep_alive_interval" in here.case.schema.by_dest:
        return "no byte flows before the first token; --sse-keep-alive-interval 15 would change that"
    return "no byte flows before the first token, and this version has no keep-alive for streams"


def _env(here: Launched, name: str) -> float | None:
    text = here.case.env(name)
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _up(seconds: float) -> float:
    """Rounded up to a number that people write: whole tens."""
    return math.ceil(seconds / 10) * 10.0
