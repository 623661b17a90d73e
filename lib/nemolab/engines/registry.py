"""The engines that nemolab knows, each a module of this package; imported only when asked for."""

from __future__ import annotations

import importlib

from nemolab.core.errors import UsageError
from nemolab.engines.log_rules import EngineLog
from nemolab.engines.logs import LogReport, read_log

# Engine -> module with its `LOG: EngineLog`. The order decides between equal matches: NIM and Dynamo, which print
# vLLM's lines too, come before it.
_LOGS: dict[str, str] = {
    "llamacpp": "llamacpp_log",
    "nim": "logs_nim",
    "dynamo": "logs_dynamo",
    "vllm": "vllm",
    "sglang": "logs_sglang",
    "trtllm": "logs_trtllm",
}
ENGINES: tuple[str, ...] = tuple(_LOGS)


def log_rules(engine: str) -> EngineLog:
    """How the log of `engine` reads.

    Raises:
        UsageError: no such engine.
    """
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}", fix=f"one of: {', '.join(ENGINES)}")
    rules: EngineLog = importlib.import_module(f"nemolab.engines.{_LOGS[engine]}").LOG
    return rules


def explain(text: str) -> LogReport:
    """What a log of an unknown engine says: the engine is found by what only it prints."""
    reports = [read_log(text, log_rules(engine)) for engine in ENGINES]
    known = [report for report in reports if report.engine]
    # Without a banner (a pasted excerpt), the engine whose symptoms fit best; failures of any engine are found anyway.
    return max(known or reports, key=lambda r: (len(r.failures), len(r.phases), len(r.warnings)))
