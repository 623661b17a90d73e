"""What a start and its answers are held against: the plan, number by number; without weights, what noise can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nemolab.client.outcome import CheckStatus, ProbeReport
from nemolab.core.finding import Finding, Severity
from nemolab.engines.logs import Quantity


def against(expected: Mapping[str, float], capacity: Mapping[str, Quantity]) -> list[dict[str, object]]:
    """Numbers of a plan beside those of a log, for every name that both have."""
    rows: list[dict[str, object]] = []
    for name, planned in expected.items():
        printed = capacity.get(name)
        if printed is not None:
            value = float(printed.value)
            rows.append(
                {
                    "value": name.replace("_", " "),
                    "unit": printed.unit,
                    "planned": planned,
                    "in the log": value,
                    "off by": f"{(planned - value) / value:+.2%}" if value else "-",
                }
            )
    return rows


_ALIKE = {"weights": 0.01, "attention_block": 0.0, "kv_cache": 0.05}  # share; the cache hangs on estimates


def unlike(expected: Mapping[str, float], capacity: Mapping[str, Quantity]) -> list[Finding]:
    """Numbers of the log that are further from the plan than the plan is good for. With other weights the cache is
    another one too, and says nothing by itself."""
    found: list[Finding] = []
    for name, share in _ALIKE.items():
        planned, printed = expected.get(name), capacity.get(name)
        if planned is None or printed is None or abs(planned - float(printed.value)) <= share * float(printed.value):
            continue
        if name == "kv_cache" and found:
            continue
        seen = float(printed.value)
        what = f"{name.replace('_', ' ')}: {planned:,.10g} {printed.unit} planned, {seen:,.10g} in the log"
        fix = (
            "another process held memory, or the activation estimate is off for this size: plan again with "
            f"--available-kv-gib {seen:g}, which makes the rest exact"
            if name == "kv_cache"
            else "the checkpoint, the flags or the release are not those that were planned"
        )
        found.append(Finding("S-202", Severity.WARNING, what, fix, "planner; the log of this start"))
    return found


# Checks that hear what a model says, not only how the server passes it on.
_WORDS = frozenset(f"A-{name}" for name in ("chat", "stream", "thinking", "no-thinking", "stop", "unicode", "tools"))


def of_noise(said: list[Finding]) -> list[Finding]:
    """Findings on a server without weights: what hangs on the words of the model is no fault of the launch."""
    return [
        replace(each, severity=Severity.INFO, message=f"without weights: {each.message}", fix="")
        if each.code in _WORDS
        else each
        for each in said
    ]


def passed(probed: ProbeReport | None, noise: bool) -> bool:
    """Whether no check failed; of a model without weights, none that does not hang on its words."""
    if probed is None:
        return False
    failed = {f"A-{check.name}" for check in probed.checks if check.status is CheckStatus.FAILED}
    return bool(probed.count(CheckStatus.PASSED)) and not (failed - _WORDS if noise else failed)
