"""llama.cpp, the embedded engine: its own server from the `xllamacpp` wheel, in a process of its own.

Options have the names of llama-server's command line (`llama-server --help`, README of tools/server).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.engines.launch import Launch, Owner
from nemolab.engines.llamacpp_log import LOG
from nemolab.engines.process import Progress, Server, start

__all__ = ["LOG", "MINIATURE", "Options", "cores", "default_threads", "launch", "model_path", "serve"]

MINIATURE = "miniature"
_GGUF_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Options:
    """How llama.cpp serves a model.

    Attributes:
        model: `miniature`, or the path of a GGUF file.
        ctx: tokens that one request can have, prompt and answer; llama-server's `--ctx-size` is ctx x parallel.
        port: 0 lets the engine take a free one.
        threads: for decoding and for prompts; 0: all cores but one. The spinning threads of llama.cpp need their
            cores: on two shared cores, two threads decoded 1 to 5 tokens a second where one did over 1,000.
        parallel: slots, so requests at the same time.
        cache_reuse: shortest chunk in tokens to reuse from the prompt cache by shifting; 0 for none.
        cache_ram: MiB of memory for prompts of idle slots; 0 for none.
        reasoning_format: `deepseek` gives thoughts as `reasoning_content`, `none` leaves them in the content.
    """

    model: str = MINIATURE
    ctx: int = 16384
    port: int = 0
    threads: int = 0
    parallel: int = 2
    cache_reuse: int = 0
    cache_ram: int = 256
    reasoning_format: str = "deepseek"


def cores() -> int:
    """Cores that this process may use: the affinity mask, and a container's CPU quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(count, int(int(quota) / int(period))))
    except (OSError, ValueError):
        return count


def default_threads() -> int:
    """All cores but one, which is left to the client."""
    return max(1, cores() - 1)


def model_path(model: str) -> Path:
    """The GGUF file that `model` means.

    Raises:
        UsageError: there is no such file, or it is no GGUF file.
    """
    if model == MINIATURE:
        from nemolab.miniature import gguf_path

        return gguf_path()
    path = Path(model).expanduser().resolve()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UsageError(
            f"no model there: {error.strerror}", where=str(path), fix="`miniature`, or the path of a GGUF file"
        ) from None
    if magic != _GGUF_MAGIC:
        raise UsageError(
            "not a GGUF file", where=str(path), fix="convert the checkpoint with llama.cpp's convert_hf_to_gguf.py"
        )
    return path


def launch(options: Options | None = None) -> Launch:
    """The launch of `options`.

    Raises:
        UsageError: the model is not there.
    """
    options = options or Options()
    path = model_path(options.model)
    name = MINIATURE if options.model == MINIATURE else path.stem
    threads = options.threads or default_threads()
    arguments = {
        "--model": path,
        "--alias": name,
        "--host": "127.0.0.1",
        "--port": options.port,
        "--ctx-size": options.ctx * options.parallel,
        "--parallel": options.parallel,
        "--threads": threads,
        "--threads-batch": threads,
        "--reasoning-format": options.reasoning_format,
        "--cache-reuse": options.cache_reuse,
        "--cache-ram": options.cache_ram,
    }
    argv = [sys.executable, "-P", "-m", "nemolab.engines.llamacpp_server"]
    argv += [text for name, value in arguments.items() for text in (name, str(value))]
    return Launch(
        engine="llamacpp",
        title=f"{name} on llama.cpp",
        model=name,
        argv=tuple(argv),
        log=LOG,
        port=options.port,
    )


def serve(
    options: Options | None = None,
    owner: Owner | None = None,
    *,
    timeout_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Server:
    """Start llama.cpp with `options` and wait until it answers; see `nemolab.engines.process.start`."""
    return start(launch(options), owner, timeout_s=timeout_s, progress=progress)
