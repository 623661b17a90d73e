"""vLLM: what its log says. Lines read in 0.22.0 and 0.33.0 sources and in real logs of 0.22.0 on an H200."""

from __future__ import annotations

import re
from datetime import datetime

from nemolab.engines.log_rules import EngineLog, Marker, Symptom, Value
from nemolab.engines.logs_vllm_failures import FAILURES, WARNINGS

_TIME = re.compile(r"(?:INFO|WARNING|ERROR|DEBUG) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) \[")
_MEASURED = "measured: vLLM 0.22.0 on one H200, 2026-11"


def _stamp(line: str) -> float | None:
    """Seconds of a line's time; vLLM prints no year, so a leap year stands in."""
    if not (match := _TIME.search(line)):
        return None
    month, day, hour, minute, second = map(int, match.groups())
    return datetime(2024, month, day, hour, minute, second).timestamp()


_CACHE = "mount vLLM's cache (~/.cache/vllm): a warm cache took 2.1 s where a cold one took 18.2 s (Nano, H200)"

LOG = EngineLog(
    engine="vllm",
    banner=re.compile(r"Initializing a V1 LLM engine \(v|vLLM API server version|\[api_server\.py:\d+\]|/vllm/v1/"),
    stamp=_stamp,
    first_phase="imports and configuration",
    markers=(
        Marker("engine process", re.compile(r"Initializing a V1 LLM engine")),
        Marker(
            "weights",
            re.compile(r"Starting to load model"),
            re.compile(r"Model loading took [\d.]+ GiB(?: memory)? and (?P<s>[\d.]+) seconds"),
            "keep the weights on a local disk; a multi-threaded loader (--model-loader-extra-config) reads faster",
        ),
        Marker(
            "torch.compile",
            re.compile(r"for vLLM's torch\.compile|Dynamo bytecode transform time"),
            re.compile(r"torch\.compile took (?P<s>[\d.]+) s in total"),
            _CACHE,
        ),
        Marker(
            "Mamba kernel warm-up and profiling",
            re.compile(r"Warming up Mamba2 SSD Triton kernels"),
            re.compile(r"Initial profiling/warmup run took (?P<s>[\d.]+) s"),
            "mount Triton's cache (~/.triton); 60 to 128 s of silence here are normal",
        ),
        Marker("KV cache and graph memory", re.compile(r"Initial profiling/warmup run took")),
        Marker(
            "CUDA graphs",
            re.compile(r"Maximum concurrency for|Capturing CUDA graphs"),
            re.compile(r"Graph capturing finished in (?P<s>\d+) secs"),
            "fewer capture sizes (a smaller --max-num-seqs)",
        ),
        Marker("API server", re.compile(r"init engine \(profile, create kv cache, warmup model\) took")),
    ),
    ready=re.compile(r"Application startup complete\."),
    echo=re.compile(r"non-default args: \{|Initializing a V1 LLM engine \(v\S+ with config: "),
    version=re.compile(r"(?:LLM engine \(v|server version |\bversion )(?P<v>\d+\.\d+\.\d+[^\s)]*)"),
    values=(
        Value("weights", "GiB", re.compile(r"Model loading took (?P<v>[\d.]+) GiB")),
        Value("kv_cache", "GiB", re.compile(r"Available KV cache memory: (?P<v>-?[\d.]+) GiB")),
        Value("kv_tokens", "tokens", re.compile(r"KV cache size: (?P<v>[\d,]+) tokens")),
        Value("max_concurrency", "x", re.compile(r"Maximum concurrency for [\d,]+ tokens per request: (?P<v>[\d.]+)x")),
        Value("max_model_len", "tokens", re.compile(r"Using max model len (?P<v>\d+)")),
        Value("max_num_batched_tokens", "tokens", re.compile(r"enabled with max_num_batched_tokens=(?P<v>\d+)")),
        Value("attention_block", "tokens", re.compile(r"Setting attention block size to (?P<v>\d+) tokens")),
        Value("mamba_page_padding", "%", re.compile(r"Padding mamba page size by (?P<v>[\d.]+)%")),
        Value("padding_layers", "layers", re.compile(r"Add (?P<v>\d+) padding layers")),
        Value("cuda_graphs", "GiB", re.compile(r"Graph capturing finished in \d+ secs, took (?P<v>-?[\d.]+) GiB")),
        Value("cuda_graphs_estimate", "GiB", re.compile(r"Estimated CUDA graph memory: (?P<v>[\d.]+) GiB")),
        Value(
            "compile_cache",
            "s",
            re.compile(r"Directly load the compiled graph\(s\).*from the cache, took (?P<v>[\d.]+) s"),
        ),
        Value("init_engine", "s", re.compile(r"init engine \(.*?\) took (?P<v>[\d.]+) s")),
    ),
    warnings=(
        Symptom(
            "L-150",
            re.compile(r"Using default MoE config.*?(?P<file>E=[^/\s]+\.json)"),
            "no tuned MoE kernel configuration for this GPU ({file})",
            "tune it with vLLM's benchmark_moe.py, or choose another --moe-backend; output is right, speed is not",
            _MEASURED,
        ),
        Symptom(
            "L-151",
            re.compile(r"Using default Mamba SSU config"),
            "no tuned Mamba state update configuration for this GPU",
            "--mamba-backend flashinfer where it is available; output is right, speed is not",
            _MEASURED,
        ),
        Symptom(
            "L-152",
            re.compile(r"Triton kernel JIT compilation during inference: (?P<kernel>\w+)"),
            "a kernel ({kernel}) was compiled inside a request, so the first requests are slow",
            "send warm-up requests before timing; about 5.5 s went into the first 1,000 tokens",
            _MEASURED,
        ),
        Symptom(
            "L-153",
            re.compile(r"Found ulimit of (?P<n>\d+) and failed to automatically increase"),
            "the limit of open files ({n}) could not be raised",
            "raise nofile (ulimit -n 65536)",
            _MEASURED,
        ),
        Symptom(
            "L-154",
            re.compile(
                r"User-specified max_model_len \((?P<want>\d+)\) is greater than the derived"
                r" .*?config\.json\)\. VLLM_ALLOW_LONG"
            ),
            "max_model_len {want} is above the checkpoint's own limit",
            "wanted for 1M contexts; the warning about positions does not apply to attention without positions",
            "vLLM 0.22.0 source; Nemotron 3 model cards",
        ),
        Symptom(
            "L-155",
            re.compile(r"Prefix caching in Mamba cache 'align' mode is currently enabled"),
            "prefix caching of Mamba state is experimental in this version",
            "measure hits before relying on it",
            "vllm#45238, vllm#43628",
        ),
        *WARNINGS,
    ),
    failures=(
        Symptom(
            "L-101",
            re.compile(
                r"Free memory on device \S* ?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired"
                r" GPU memory utilization \((?P<share>[\d.]+), (?P<want>[\d.]+) GiB\)"
            ),
            "only {free} of {total} GiB of the GPU are free, {want} GiB are wanted: another process holds the rest",
            "end the leftover process (nvidia-smi names it), or lower --gpu-memory-utilization below {share}",
            _MEASURED,
        ),
        Symptom(
            "L-102",
            re.compile(r"AttributeError: '_IncludedRouter' object has no attribute 'path'"),
            "every request answers 500: the installed fastapi does not fit prometheus-fastapi-instrumentator",
            "fastapi 0.136.3 works; install from a lock of the release's date, or use the release's image",
            _MEASURED,
            fatal=True,
        ),
        Symptom(
            "L-103",
            re.compile(r"max_num_seqs \((?P<want>\d+)\) exceeds available Mamba cache blocks \((?P<have>\d+)\)"),
            "each running sequence needs a block of Mamba state: {want} wanted, {have} there",
            "--max-num-seqs {have} or less, or more memory for the cache",
            "retail-shopping-assistant#95, NVIDIA-NeMo/RL#2620",
        ),
        Symptom(
            "L-104",
            re.compile(
                r"align mode, block_size \((?P<block>\d+)\) must be <= max_num_batched_tokens \((?P<have>\d+)\)"
            ),
            "a prefill step ({have} tokens) must cover one aligned block ({block} tokens)",
            "--max-num-batched-tokens {block} or more",
            "vllm#36734",
        ),
        Symptom(
            "L-105",
            re.compile(
                r"models?'?s? max seq len \((?P<len>\d+)\), \((?P<need>[\d.]+) GiB KV.*?"
                r"available KV cache memory \((?P<have>[\d.]+) GiB\)(?:.*?maximum model length is (?P<fits>\d+))?"
            ),
            "one request of {len} tokens needs {need} GiB of KV cache, {have} GiB are there",
            "--max-model-len {fits}, or more memory for the cache (fp8 KV, more tensor parallel, higher utilization)",
            "vLLM 0.22.0 source, kv_cache_utils.py",
        ),
        Symptom(
            "L-106",
            re.compile(r"No available memory for the cache blocks"),
            "weights and activations leave nothing for the KV cache",
            "more tensor parallel or a smaller checkpoint; a higher --gpu-memory-utilization only if memory is free",
            "vLLM 0.22.0 source, kv_cache_utils.py",
        ),
        Symptom(
            "L-107",
            re.compile(
                r"User-specified max_model_len \((?P<want>\d+)\) is greater than the derived max_model_len"
                r" \(max_position_embeddings=(?P<have>[\d.]+).*?set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN"
            ),
            "max_model_len {want} is above the checkpoint's own limit ({have})",
            "set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 beside --max-model-len, or ask for less",
            "vLLM 0.22.0 source; model cards",
        ),
        Symptom(
            "L-108",
            re.compile(r"No NvFp4 MoE backend supports the deployment configuration"),
            "no NVFP4 MoE kernel fits this GPU and layer shape",
            "another precision of the checkpoint, or a version with kernels for this architecture",
            "vllm#35065",
        ),
        Symptom(
            "L-109",
            re.compile(
                r"cvt\.rs\.f16x2|Feature .*?(?:\.rs|cvt with).*? not supported on \.target '?(?P<target>sm_\w+)"
            ),
            "stochastic rounding of the Mamba state uses an instruction that exists from SM100 only",
            "drop --enable-mamba-cache-stochastic-rounding, or use --mamba-backend flashinfer",
            "NVIDIA-NeMo/Nemotron#289",
        ),
        Symptom(
            "L-110",
            re.compile(r"error: unrecognized arguments: (?P<what>.+)"),
            "this version does not know: {what}",
            "`vllm serve --help` of the same version; options come and go between releases",
            "anyscale/templates#1086",
        ),
        Symptom(
            "L-111",
            re.compile(r"error: argument (?P<flag>\S+?): invalid choice: '?(?P<value>[^'\s]+)"),
            "{flag} does not take {value} in this version",
            "take a name from `vllm serve --help` of the same version",
            "vLLM 0.22.0 argument parser",
        ),
        Symptom(
            "L-112",
            re.compile(r"(?:is not a local folder and is not a valid model identifier|Repository Not Found for url)"),
            "the model is neither a folder here nor a repository that can be reached",
            "check the path or the name, HF_TOKEN for gated models, and HF_HUB_OFFLINE",
            "huggingface_hub error text",
        ),
        Symptom(
            "L-113",
            re.compile(r"Model architectures? \[.*?\] (?:are|is) not supported|failed to be inspected"),
            "this version cannot run the checkpoint's architecture",
            "a version that names the architecture in its list of supported models",
            "vLLM error text",
        ),
        Symptom(
            "L-114",
            re.compile(r"Cannot find any model weights with"),
            "the model folder holds no weights",
            "finish the download; compare the folder with model.safetensors.index.json",
            "vLLM 0.22.0 source, default_loader.py",
        ),
        Symptom(
            "L-115",
            re.compile(r"Timed out waiting for engine|VLLM_ENGINE_READY_TIMEOUT_S"),
            "the engine was not ready in VLLM_ENGINE_READY_TIMEOUT_S (600 s by default)",
            "raise it; a kernel build on the spot (no flashinfer-cubin package) took more than 6 minutes",
            _MEASURED,
        ),
        *FAILURES,
        Symptom(
            "L-190",
            re.compile(r"Engine core initialization failed"),
            "the engine process died; its own error stands above",
            "read the first error of the EngineCore lines",
            "vLLM 0.22.0 source",
            aftermath=True,
        ),
    ),
)
