"""Load: a staged ladder against an endpoint, with service levels, statistics and the client's own limits."""

from nemolab.load.ladder import run_ladder
from nemolab.load.plan import Plan, Slo, Stage, stages
from nemolab.load.rows import LadderResult, Request, StageRun
from nemolab.load.server import server_counters
from nemolab.load.summary import Knee, Summary, knee, summarise

__all__ = [
    "Knee",
    "LadderResult",
    "Plan",
    "Request",
    "Slo",
    "Stage",
    "StageRun",
    "Summary",
    "knee",
    "run_ladder",
    "server_counters",
    "stages",
    "summarise",
]
