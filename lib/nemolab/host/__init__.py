"""Facts of the host, and requirements held against them."""

from nemolab.host.check import check, check_speed, verdict
from nemolab.host.collect import facts
from nemolab.host.facts import HostFacts
from nemolab.host.figure import headroom_figure
from nemolab.host.fix import Fix
from nemolab.host.fix_power import power_limit
from nemolab.host.fixes import fixes_for
from nemolab.host.headroom import Headroom, headroom
from nemolab.host.present import disk_rows, gpu_rows, rows
from nemolab.host.requirements import Requirements, for_engine, for_launch
from nemolab.host.storage import DiskSpeed, measure_speed, roles, speed_of

__all__ = [
    "DiskSpeed",
    "Fix",
    "Headroom",
    "HostFacts",
    "Requirements",
    "check",
    "check_speed",
    "disk_rows",
    "facts",
    "fixes_for",
    "for_engine",
    "for_launch",
    "gpu_rows",
    "headroom",
    "headroom_figure",
    "measure_speed",
    "power_limit",
    "roles",
    "rows",
    "speed_of",
    "verdict",
]
