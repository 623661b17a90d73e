"""TensorRT-LLM: what the log of `trtllm-serve` (PyTorch backend) says. Lines from its source and from public logs."""

from __future__ import annotations

import re
from datetime import datetime

from nemolab.engines.log_rules import EngineLog, Marker, Symptom, Value

_SOURCE = "TensorRT-LLM 1.3 source and public logs"
_TIME = re.compile(r"^\[(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\]")


def _stamp(line: str) -> float | None:
    return datetime.strptime(match[1], "%m/%d/%Y-%H:%M:%S").timestamp() if (match := _TIME.match(line)) else None


LOG = EngineLog(
    engine="trtllm",
    banner=re.compile(r"\[TRT-LLM\] \[|\[TensorRT-LLM\]|\[TRT-LLM\]|tensorrt_llm/_torch|TensorRT[- ]LLM version"),
    stamp=_stamp,
    first_phase="imports and configuration",
    markers=(
        Marker(
            "weights",
            re.compile(
                r"Loading checkpoint shards|Prefetching [\d.]+GB checkpoint files|Start(?:ed|ing)? loading weights"
            ),
            re.compile(r"Model init total -- (?P<s>[\d.]+)s"),
            "keep the weights on a local disk",
        ),
        Marker("KV cache estimate", re.compile(r"max_seq_len=\d+, max_num_requests=\d+, max_num_tokens=\d+")),
        Marker(
            "autotuning",
            re.compile(r"Autotuning process starts"),
            saves="TLLM_AUTOTUNER_CACHE_PATH on a mounted folder keeps what was tuned",
        ),
        Marker(
            "CUDA graphs",
            re.compile(r"Creating CUDA graph instances for \d+ batch sizes|generation.only CUDA graph warmup"),
            saves="fewer batch sizes in cuda_graph_config",
        ),
        Marker("API server", re.compile(r"Started server process|Waiting for application startup")),
    ),
    ready=re.compile(r"Application startup complete\.|Uvicorn running on"),
    version=re.compile(r"TensorRT[- ]LLM version:? (?P<v>\d+\.\d+\.\d+\S*)"),
    values=(
        Value("weights", "GB", re.compile(r"Rank \d+ uses (?P<v>[\d.]+) GB for model weights")),
        Value("kv_cache", "GiB", re.compile(r"Allocated (?P<v>[\d.]+) GiB for max tokens in paged KV cache")),
        Value("kv_tokens", "tokens", re.compile(r"for max tokens in paged KV cache \((?P<v>\d+)\)")),
        Value("block_tokens", "tokens", re.compile(r"(?:Number of tokens per block: |tokens per block=)(?P<v>\d+)")),
        Value("max_model_len", "tokens", re.compile(r"\bmax_seq_len=(?P<v>\d+), max_num_requests")),
        Value("max_num_batched_tokens", "tokens", re.compile(r"max_num_requests=\d+, max_num_tokens=(?P<v>\d+)")),
        Value("max_batch_size", "requests", re.compile(r"max_batch_size=(?P<v>\d+)")),
    ),
    warnings=(
        Symptom(
            "L-450",
            re.compile(r"self\.max_seq_len=(?P<want>\d+) is larger than what the model can support \((?P<have>\d+)\)"),
            "max_seq_len {want} was cut to the checkpoint's own {have}, and the server starts all the same",
            "set TLLM_ALLOW_LONG_MAX_MODEL_LEN=1 beside --max_seq_len",
            "TensorRT-LLM source, model_engine.py",
        ),
        Symptom(
            "L-451",
            re.compile(r"max_seq_len is not specified, using inferred value (?P<have>\d+)"),
            "no --max_seq_len: the checkpoint's own {have} counts, whatever TLLM_ALLOW_LONG_MAX_MODEL_LEN says",
            "--max_seq_len as long as you need",
            "TensorRT-LLM source, model_engine.py",
        ),
        Symptom(
            "L-452",
            re.compile(r"num_nextn_predict_layers.*deprecated|use max_draft_len"),
            "num_nextn_predict_layers is the old name",
            "max_draft_len (authoritative from 1.3.0rc16)",
            "Nemotron 3 model cards",
        ),
    ),
    failures=(
        Symptom(
            "L-401",
            re.compile(r"run out of mamba cache blocks"),
            "every running sequence needs a block of Mamba state, and none is left",
            "a smaller max_batch_size, or a larger kv_cache_config.free_gpu_memory_fraction",
            "NVIDIA/TensorRT-LLM#13179",
        ),
        Symptom(
            "L-402",
            re.compile(r"Segmentation fault|Signal: ?(?:Segmentation fault|11)|signal 11|SIGSEGV"),
            "the server crashed; at long contexts near 256K this is kv_cache_config.avg_seq_len left unset",
            "set kv_cache_config.avg_seq_len to the prompts' usual length (9000 passed at 800K)",
            "NVIDIA/TensorRT-LLM#17926",
        ),
        Symptom(
            "L-403",
            re.compile(
                r"Failed to initialize cutlass (?:TMA WS )?grouped gemm|Error Internal no error|"
                r"shared memory.*(?:exceed|insufficient)|insufficient shared memory"
            ),
            "a kernel wants more shared memory than this GPU has (GB10, sm_12x), usually with MTP",
            "switch MTP off there, or take an image from 1.3.0rc9 on with the official configuration",
            "NVIDIA/TensorRT-LLM#14575, NVIDIA/TensorRT-LLM#11368",
        ),
        Symptom(
            "L-404",
            re.compile(r"cvt\.rs\.f16x2|Feature .*?\.rs.* not supported on \.target '?(?P<target>sm_\w+)"),
            "stochastic rounding of the Mamba state uses an instruction that exists from SM100 only",
            "mamba_ssm_stochastic_rounding: false",
            "NVIDIA/TensorRT-LLM#14575",
        ),
        Symptom(
            "L-405",
            re.compile(r"Extra inputs are not permitted|unexpected keyword argument|extra fields not permitted"),
            "the options file has a key that this version does not know",
            "compare the file with this version's keys: nemolab lint FILE",
            "trtllm-serve, strict options file",
        ),
        Symptom(
            "L-406",
            re.compile(r"No such option:? '?(?P<what>--\S+)"),
            "this version does not know {what}",
            "trtllm-serve takes underscores and no abbreviations: `trtllm-serve --help`",
            "trtllm-serve's command line",
        ),
        Symptom(
            "L-407",
            re.compile(r"multi_stream_moe"),
            "the crash lies in overlapped MoE streams of AutoDeploy",
            "multi_stream_moe: enabled: false",
            "NVIDIA/TensorRT-LLM#10417",
        ),
        Symptom(
            "L-490",
            re.compile(r"Executor worker returned error|Executor worker died|MPI_ABORT was invoked"),
            "a worker process died; its own error stands above",
            "read the first traceback",
            _SOURCE,
            aftermath=True,
        ),
    ),
)
