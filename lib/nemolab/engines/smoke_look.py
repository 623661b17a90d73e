"""How the stack check is shown: rows and sentences of `29_engine_smoke`."""

from __future__ import annotations

from nemolab.client.outcome import check_rows
from nemolab.engines.smoke import SmokeReport


def step_rows(report: SmokeReport) -> list[dict[str, object]]:
    """The stages, one row each, with what came of it."""
    probe, stop = report.probe, report.stop
    rows: list[dict[str, object]] = [
        {
            "stage": "flags and start",
            "passed": report.started,
            "what came of it": _started(report),
        }
    ]
    if report.started:
        checks = (
            f"{sum(str(c.status) == 'passed' for c in probe.checks)} of {len(probe.checks)} checks" if probe else "-"
        )
        rows.append(
            {
                "stage": "API, parsers, counts, metrics",
                "passed": bool(probe and probe.passed),
                "what came of it": report.problem or checks,
            }
        )
        found = report.found
        rows.append(
            {"stage": "needles", "passed": bool(found.n) and found.successes == found.n, "what came of it": str(found)}
        )
    if stop:
        gpu = "" if stop.gpu_mib_missing is None else f", {stop.gpu_mib_missing:,} MiB of GPU memory missing"
        left = "nothing left" if stop.process_gone and stop.port_closed else "something is left"
        rows.append(
            {"stage": "stop", "passed": stop.clean, "what came of it": f"{left} after {stop.seconds:.1f} s{gpu}"}
        )
    return rows


def needle_rows(report: SmokeReport) -> list[dict[str, object]]:
    """One row a length."""
    rows: list[dict[str, object]] = []
    for length in dict.fromkeys(needle.length for needle in report.needles):
        asked = [needle for needle in report.needles if needle.length == length]
        rows.append(
            {
                "length": length,
                "prompt": max(needle.prompt_tokens for needle in asked),
                "needles": len(asked),
                "found": sum(needle.found for needle in asked),
                "with thinking": sum(needle.thinking for needle in asked),
                "said instead": next((needle.said for needle in asked if not needle.found), "-"),
            }
        )
    return rows


def probe_rows(report: SmokeReport) -> list[dict[str, object]]:
    """One row a check of the API."""
    return check_rows(report.probe) if report.probe else []


def sentence(report: SmokeReport) -> str:
    """How it ended, in one sentence."""
    name = f"{report.engine} {report.version}".strip()
    if not report.started:
        return f"{name} did not start: {report.failure[0].message}" if report.failure else f"{name} did not start."
    if report.passed:
        return f"{name} serves this architecture as it should: flags, parsers, streaming, counts, needles, stop."
    failed = [str(row["stage"]) for row in step_rows(report) if not row["passed"]]
    return f"{name} starts, but not everything is right: {', '.join(failed)}."


def _started(report: SmokeReport) -> str:
    if report.attached:
        return "it ran already"
    if report.started:
        return f"ready after {report.ready_s:.1f} s"
    return report.failure[0].message.partition(": ")[0] if report.failure else "it did not start"
