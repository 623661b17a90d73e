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
        aftermath: says only that something else went wrong before.
    """

    code: str
    pattern: re.Pattern[str]
    cause: str
    fix: str
    source: str
    fatal: bool = False
    aftermath: bool = False


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
        echo: lines that print the launch's own settings: the names in them are no symptoms.
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
    echo: re.Pattern[str] | None = None


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
    Symptom(
        "L-008",
        re.compile(r"(?i)illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS"),
        "a kernel wrote or read outside its memory; with long prompts it is often a 32-bit offset",
        "try a smaller prefill step (--max-num-batched-tokens, --chunked-prefill-size) and a version with the fixes;"
        " set CUDA_LAUNCH_BLOCKING=1 to find the kernel",
        "vllm#49041, state-spaces/mamba#503, state-spaces/mamba#1038, sglang#33665, vllm#35275",
    ),
    Symptom(
        "L-009",
        re.compile(r"has no attribute '?num_hidden_layers|KeyError: '?num_hidden_layers"),
        "the engine does not read the newer config.json, which lists its layers and has no num_hidden_layers",
        "a version that reads layers_block_type, or add num_hidden_layers to a copy of config.json",
        "huggingface/transformers#48017, huggingface/transformers#48021",
    ),
    Symptom(
        "L-010",
        re.compile(r"NV_ERR_NO_MEMORY|NVRM: .*0x51\b|RM 0x51"),
        "the driver is out of memory: on unified memory the page cache and the engine share it",
        "a lower memory share; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False; no --enable-flashinfer-autotune",
        "NVIDIA/NemoClaw#7127, NVIDIA/dgx-spark-playbooks#97",
    ),
    Symptom(
        "L-011",
        re.compile(r"undefined symbol: nccl\w+|NCCL version mismatch|ncclSystemError|ncclInvalidUsage"),
        "the NCCL library does not fit the engine, or the GPUs cannot reach each other",
        "a pinned image in place of latest; for several nodes NCCL_SOCKET_IFNAME and NCCL_DEBUG=INFO",
        "NVIDIA-NeMo/Nemotron#262",
    ),
    Symptom(
        "L-012",
        re.compile(r"NVMLError_NotSupported|valid GPU memory telemetry"),
        "the driver tells no memory numbers here, as on unified memory; nothing is wrong with the GPU",
        "a version that takes N/A for unknown",
        "NVIDIA/NemoClaw#10082, NVIDIA/NemoClaw#10524",
    ),
    Symptom(
        "L-013",
        re.compile(r"(?i)oom-kill|out of memory: killed process|\bOOMKilled\b|killed process \d+ .*anon-rss"),
        "the kernel killed the process: the machine, or the container's limit, has no memory left",
        "a higher memory limit; fewer loading workers (--max-parallel-loading-workers 1)",
        "Linux kernel and Kubernetes text",
    ),
    Symptom(
        "L-014",
        re.compile(r"no kernel image is available for execution on the device"),
        "the build has no kernels for this GPU",
        "a build for this compute capability (GB10 is sm_121)",
        "CUDA error text",
    ),
    Symptom(
        "L-015",
        re.compile(r"(?:401 Client Error|403 Client Error|GatedRepoError|Cannot access gated repo)"),
        "the model's repository is gated, and the token may not read it",
        "accept the licence on its page and pass HF_TOKEN by name",
        "huggingface_hub error text",
    ),
)
