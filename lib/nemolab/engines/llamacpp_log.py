"""llama.cpp: what its log says. Lines read in real logs of xllamacpp 2026.10 at verbosity 4."""

from __future__ import annotations

import re

from nemolab.engines.log_rules import EngineLog, Marker, Symptom, Value

_STAMP = re.compile(r"^(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) [A-Z] ")


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
    banner=re.compile(r"nemolab: xllamacpp |llamacpp_server: |build_info: |llama_model_loader: |srv +load_model: "),
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
            "L-207",
            re.compile(r"llamacpp_server: error: (?P<what>.+)"),
            "the embedded server does not take this: {what}",
            "it knows the options of llama-server that `nemolab serve` uses",
            "nemolab's own command line",
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
