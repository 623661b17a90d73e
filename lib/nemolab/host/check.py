"""Hold requirements against facts. Pure: facts in, findings out; a fact that is missing is *unknown*, never fine."""

from __future__ import annotations

from nemolab.core.finding import Finding, Severity
from nemolab.host import check_gpu, check_health, check_machine
from nemolab.host.facts import HostFacts
from nemolab.host.requirements import Requirements
from nemolab.host.say import warning
from nemolab.host.storage import DiskSpeed

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.DISAGREE: 2, Severity.UNKNOWN: 3, Severity.INFO: 4}


def check(host: HostFacts, need: Requirements) -> tuple[Finding, ...]:
    """What this host lacks for these requirements, gravest first."""
    checks = (*check_machine.CHECKS, *check_gpu.CHECKS, *check_health.CHECKS)
    found = [finding for one in checks for finding in one(host, need)]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def check_speed(speed: DiskSpeed | None, need: Requirements) -> tuple[Finding, ...]:
    """What a measured disk speed means for loading."""
    if speed is None or not need.disk_read or speed.read >= need.disk_read:
        return ()
    return (
        warning(
            "H-DISK-SPEED",
            f"{speed.read / 1e6:,.0f} MB/s sequential, {need.disk_read / 1e6:,.0f} MB/s wanted: "
            f"100 GB of weights take {100e9 / speed.read / 60:.0f} min to read",
            "use local NVMe, or raise the engine's start-up time-outs",
            where=f"disk of {speed.role}",
        ),
    )


def verdict(findings: tuple[Finding, ...]) -> str:
    """`"fit"`, `"fit, with remarks"`, `"unknown"` or `"unfit"`."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return "unfit"
    if Severity.UNKNOWN in severities:
        return "unknown"
    return "fit, with remarks" if Severity.WARNING in severities else "fit"
