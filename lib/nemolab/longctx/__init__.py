"""Long context: prompts exact to the token, tasks, scoring, statistics, and one class for every request."""

from nemolab.longctx.build import Builder, Prompt
from nemolab.longctx.compare import pair_rows
from nemolab.longctx.failures import Outcome
from nemolab.longctx.rows import Row, Suite, SuiteResult
from nemolab.longctx.suite import run_suite
from nemolab.longctx.summary import by_depth, by_length
from nemolab.longctx.tokens import Counter

__all__ = [
    "Builder",
    "Counter",
    "Outcome",
    "Prompt",
    "Row",
    "Suite",
    "SuiteResult",
    "by_depth",
    "by_length",
    "pair_rows",
    "run_suite",
]
