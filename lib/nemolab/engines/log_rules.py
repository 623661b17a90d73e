"""How an engine's log reads, as data: phases, numbers, symptoms. Each engine's module holds its own (`LOG`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marker:
    """A line that begins a phase, and, if the engine prints it, the line that tells how long it took.

    Attributes:
        phase: name for people, in the engine's own words.
        begins: pattern of its first line.
        took: pattern with a group `s`, seconds. It overrides the time between lines.
        saves: what would make the phase shorter next time, "" if nothing does.
    """

    phase: str
    begins: re.Pattern[str]
    took: re.Pattern[str] | None = None
    saves: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A number that the engine prints; the pattern has a group `v`. The last one printed counts."""

    name: str
    unit: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Symptom:
    """A line that means something: what it comes from and what to do.

    Attributes:
        code: stable id of the symptom.
        pattern: matched against single lines.
        cause, fix: `{name}` in them is filled from the pattern's groups.
        source: issue, document or measurement that says so.
        fatal: the server will not become usable, even if its process lives on.
    """

    code: str
    pattern: re.Pattern[str]
    cause: str
    fix: str
    source: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class EngineLog:
    """How one engine's log reads.

    Attributes:
        engine: name of the engine, as in `Endpoint.engine`.
        banner: matches a line that only this engine prints.
        stamp: a line's own time in seconds (any zero), None without one.
        first_phase: what goes on before the first marker.
        markers: phases; an engine may begin them in any order, each counts once.
        ready: the line after which requests are taken. It proves little: send one.
        version, port: patterns with groups `v` and `port`, where the engine prints them.
        failures: the most specific first, for the first that is found is the cause.
    """

    engine: str
    banner: re.Pattern[str]
    stamp: Callable[[str], float | None]
    first_phase: str
    markers: tuple[Marker, ...]
    ready: re.Pattern[str]
    values: tuple[Value, ...] = ()
    warnings: tuple[Symptom, ...] = ()
    failures: tuple[Symptom, ...] = ()
    version: re.Pattern[str] | None = None
    port: re.Pattern[str] | None = None


# Failures that any engine can die of.
COMMON: tuple[Symptom, ...] = (
    Symptom(
        "L-001",
        re.compile(r"(?i)address already in use|couldn't bind HTTP server socket|bind.*failed.*in use"),
        "another process listens on the port",
        "choose another port, or stop the process that holds it",
        "errno EADDRINUSE",
    ),
    Symptom(
        "L-002",
        re.compile(r"(?i)no space left on device|\[Errno 28\]"),
        "a disk is full (weights, compile cache or /dev/shm)",
        "free space; in a container give /dev/shm more room (--shm-size)",
        "errno ENOSPC",
    ),
    Symptom(
        "L-003",
        re.compile(r"(?i)CUDA out of memory|cudaMalloc failed: out of memory|CUDA error: out of memory"),
        "the GPU has no memory left",
        "end leftover processes, then lower the memory share, the batch token budget or the context",
        "PyTorch and CUDA error text",
    ),
    Symptom(
        "L-004",
        re.compile(r"(?i)(?<!like `OSError: )(?:\[Errno 24\]|(?<!\[Errno 24\] )too many open files)"),
        "the limit of open files is too low",
        "raise nofile (ulimit -n 65536)",
        "errno EMFILE",
    ),
    Symptom(
        "L-005",
        re.compile(r"(?i)CUDA driver version is insufficient|forward compatibility was attempted"),
        "the NVIDIA driver is older than the engine's CUDA",
        "a newer driver, or the engine's build for the older CUDA",
        "CUDA error text",
    ),
    Symptom(
        "L-006",
        re.compile(r"(?i)permission denied: ?['\"]?(?P<path>[^'\"\s]+)"),
        "{path} may not be read or written",
        "give the engine's user access to {path}",
        "errno EACCES",
    ),
    Symptom(
        "L-007",
        re.compile(r"ModuleNotFoundError: No module named '(?P<module>[^']+)'"),
        "the Python package {module} is not installed in the engine's environment",
        "install the engine from its lock into an environment of its own",
        "Python error text",
    ),
)
