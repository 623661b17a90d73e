"""llama.cpp, the embedded engine: its own server from the `xllamacpp` wheel, in a process of its own.

Options have the names of llama-server's command line (`llama-server --help`, README of tools/server).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.engines.launch import Launch, Owner
from nemolab.engines.logs import EngineLog, Marker, Symptom, Value
from nemolab.engines.process import Progress, Server, start

MINIATURE = "miniature"
_GGUF_MAGIC = b"GGUF"
_STAMP = re.compile(r"^(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) [A-Z] ")


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


def _stamp(line: str) -> float | None:
    """llama.cpp stamps minutes, seconds, milliseconds and microseconds since its start."""
    if not (match := _STAMP.match(line)):
        return None
    minutes, seconds, milli, micro = map(int, match.groups())
    return minutes * 60 + seconds + milli / 1e3 + micro / 1e6


def _mib(what: str) -> re.Pattern[str]:
    return re.compile(what + r" *= *(?P<v>[\d.]+) MiB")


LOG = EngineLog(
    engine="llamacpp",
    banner=re.compile(r"nemolab: xllamacpp |build_info: |llama_model_loader: |srv +load_model: "),
    stamp=_stamp,
    first_phase="process start",
    markers=(
        Marker("fit to memory", re.compile(r"fitting params to device memory")),
        Marker("model file", re.compile(r"llama_model_loader: loaded meta data")),
        Marker("weights", re.compile(r"load_tensors: loading model tensors"), saves="a file in the page cache"),
        Marker("context", re.compile(r"constructing llama_context")),
        Marker("warm-up", re.compile(r"warming up the model with an empty run")),
        Marker("slots", re.compile(r"load_model: initializing, n_slots")),
    ),
    ready=re.compile(r"listening on http"),
    version=re.compile(r"nemolab: xllamacpp (?P<v>\S+)"),
    port=re.compile(r"listening on https?://[^\s:]+:(?P<port>\d+)"),
    values=(
        Value("weights", "MiB", re.compile(r"print_info: file size *= *(?P<v>[\d.]+) MiB")),
        Value("parameters", "million", re.compile(r"print_info: model params *= *(?P<v>[\d.]+) M")),
        Value("n_ctx", "tokens", re.compile(r"llama_context: n_ctx +=\s*(?P<v>\d+)")),
        Value("n_ctx_slot", "tokens", re.compile(r"n_ctx_slot = (?P<v>\d+)")),
        Value("slots", "requests", re.compile(r"n_slots = (?P<v>\d+)")),
        Value("kv_cache", "MiB", _mib(r"llama_kv_cache: size")),
        Value("recurrent_state", "MiB", _mib(r"llama_memory_recurrent: size")),
        Value("compute", "MiB", _mib(r"compute buffer size")),
        Value("threads", "threads", re.compile(r"llama threadpool init, n_threads = (?P<v>\d+)")),
    ),
    warnings=(
        Symptom(
            "L-251",
            re.compile(r"n_ctx_seq \((?P<have>\d+)\) > n_ctx_train \((?P<want>\d+)\)"),
            "the context ({have} tokens) is longer than the model was made for ({want})",
            "a smaller ctx, unless the model is known to reach further",
            "llama.cpp source, llama-context.cpp",
        ),
        Symptom(
            "L-252",
            re.compile(r"special_eos_id is not in special_eog_ids|control-looking token: .*? was not control-type"),
            "the tokenizer in the file is not marked up as usual",
            "look whether answers stop by themselves; convert the checkpoint again if they do not",
            "llama.cpp source, llama-vocab.cpp",
        ),
    ),
    failures=(
        Symptom(
            "L-201",
            re.compile(r"tensor '(?P<name>[^']+)' data is not within the file bounds"),
            "the GGUF file is cut off: tensor {name} lies beyond its end",
            "download or write the file again; compare its size with the source",
            "llama.cpp's own message",
        ),
        Symptom(
            "L-202",
            re.compile(r"unknown model architecture: '(?P<arch>[^']+)'"),
            "this llama.cpp does not know the architecture {arch}",
            "a newer xllamacpp",
            "llama.cpp source, llama-model.cpp",
        ),
        Symptom(
            "L-203",
            re.compile(r"key not found in model: (?P<key>\S+)|(?P<tensor>missing tensor '[^']+')"),
            "the GGUF file lacks what its architecture needs: {key}{tensor}",
            "convert the checkpoint with a converter of the engine's age",
            "llama.cpp source, llama-model-loader.cpp",
        ),
        Symptom(
            "L-204",
            re.compile(r"failed to allocate buffer|unable to allocate|failed to fit params|std::bad_alloc"),
            "not enough memory for weights and context",
            "a smaller ctx or fewer slots; see the memory lines above",
            "llama.cpp's own message",
        ),
        Symptom(
            "L-205",
            re.compile(r"failed to load model from (?P<path>\S+)|invalid magic characters|failed to read magic"),
            "the file cannot be read as GGUF",
            "check that it is whole and that it is a GGUF file",
            "llama.cpp's own message",
        ),
        Symptom(
            "L-206",
            re.compile(r"GGML_ASSERT\((?P<what>.+?)\) failed|ggml_abort"),
            "llama.cpp stopped at a check of its own",
            "try the smallest ctx and one slot; report it with the log",
            "llama.cpp source, ggml.c",
        ),
    ),
)
