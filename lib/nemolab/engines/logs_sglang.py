"""SGLang: what its log says. Lines read in 0.5.13 and 0.5.23 sources; where those differ, both are matched.

The start of 0.5.13 and L-312 were held against logs of our own (the miniature on one H200, 2026-11-30).
"""

from __future__ import annotations

import re
from datetime import datetime

from nemolab.engines.log_rules import EngineLog, Marker, Symptom, Value

# Read in the sources of both versions (model_runner, scheduler, server_args).
_SOURCE = "SGLang 0.5.13 and 0.5.23 source"
_TIME = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: [A-Z]+\d+)*\]")


def _stamp(line: str) -> float | None:
    return datetime.fromisoformat(match[1]).timestamp() if (match := _TIME.match(line)) else None


LOG = EngineLog(
    engine="sglang",
    banner=re.compile(r"server_args=ServerArgs\(|sglang[./](?:srt|launch_server)|The server is fired up"),
    stamp=_stamp,
    first_phase="imports and configuration",
    markers=(
        Marker(
            "process group",
            re.compile(r"Init torch distributed begin"),
            re.compile(r"Init torch distributed ends\. elapsed=(?P<s>[\d.]+) s"),
        ),
        Marker(
            "weights",
            re.compile(r"Load weight begin\. avail mem="),
            re.compile(r"Load weight end\. elapsed=(?P<s>[\d.]+) s"),
            "keep the weights on a local disk; a multi-threaded loader (--model-loader-extra-config) reads faster",
        ),
        Marker(
            "KV and Mamba pools", re.compile(r"Mamba Cache is allocated|KV Cache is allocated|VA upper bound\. dtype")
        ),
        Marker(
            "autotuning",
            re.compile(r"Running FlashInfer autotune"),
            saves="mount FlashInfer's cache (~/.cache/flashinfer)",
        ),
        Marker(
            "CUDA graphs",
            re.compile(r"Capture (?!piecewise).*?(?:cuda|CUDA) graph begin"),
            re.compile(
                r"Capture (?!piecewise).+? end\. (?:bs=\[[^\]]*\], )?(?:Time elapsed: |elapsed=)(?P<s>[\d.]+) s"
            ),
            "kernels are compiled here at the first start: mount ~/.cache/tvm-ffi (TVM_FFI_CACHE_DIR) and Triton's "
            "cache; fewer sizes (--cuda-graph-max-bs, 0.5.23: --cuda-graph-max-bs-decode)",
        ),
        Marker(
            "piecewise CUDA graphs",
            re.compile(r"Capture piecewise CUDA graph begin"),
            re.compile(r"Capture piecewise CUDA graph end\. (?:Time elapsed: |elapsed=)(?P<s>[\d.]+) s"),
            "fewer sizes (--piecewise-cuda-graph-max-tokens), or none (--disable-piecewise-cuda-graph)",
        ),
        Marker("first request of its own", re.compile(r"Uvicorn running on|Application startup complete")),
    ),
    ready=re.compile(r"The server is fired up and ready to roll!"),
    echo=re.compile(r"server_args=ServerArgs\("),
    version=re.compile(r"sglang (?:version )?v?(?P<v>\d+\.\d+\.\d+\S*)", re.IGNORECASE),
    values=(
        Value("weights", "GB", re.compile(r"Load weight end\. .*?mem usage=(?P<v>-?[\d.]+) GB")),
        Value("kv_tokens", "tokens", re.compile(r"max_total_num_tokens=(?P<v>\d+)")),
        Value("max_running_requests", "requests", re.compile(r"max_running_requests=(?P<v>\d+)")),
        Value("max_model_len", "tokens", re.compile(r"context_len=(?P<v>\d+)")),
        Value("chunked_prefill_size", "tokens", re.compile(r"chunked_prefill_size=(?P<v>-?\d+)")),
        Value("mamba_slots", "states", re.compile(r"max_mamba_cache_size: (?P<v>\d+)")),
        Value("ssm_state", "GB", re.compile(r"ssm_state size: (?P<v>[\d.]+) ?GB")),
        Value("conv_state", "GB", re.compile(r"conv_state size: (?P<v>[\d.]+) ?GB")),
        Value("left", "GB", re.compile(r"available_[cg]pu_mem=(?P<v>[\d.]+) GB")),
    ),
    warnings=(
        Symptom(
            "L-350",
            re.compile(
                r"(?:Warning: )?User-specified context_length \((?P<want>\d+)\) is greater than the derived "
                r"context_length \((?P<have>\d+)\)(?!.*To allow overriding)"
            ),
            "context length {want} is above the checkpoint's own limit ({have})",
            "wanted for 1M contexts; the warning about positions does not apply to attention without positions",
            f"{_SOURCE}, model_config.py",
        ),
        Symptom(
            "L-351",
            re.compile(r"--mamba-scheduler-strategy.*(?:deprecated|renamed)"),
            "--mamba-scheduler-strategy has a new name since 0.5.14",
            "--mamba-radix-cache-strategy",
            "sglang#31094, sglang#27418",
        ),
        Symptom(
            "L-352",
            re.compile(
                r"Disabling (?:overlap schedule|radix cache):|overlap schedule (?:is|will be) (?:disabled|turned off)"
            ),
            "no_buffer switched overlapped scheduling or the radix cache off",
            "--mamba-radix-cache-strategy extra_buffer (before 0.5.14: --mamba-scheduler-strategy)",
            "sglang#27418",
        ),
        Symptom(
            "L-353",
            re.compile(r"smaller than mamba_cache_chunk_size|smaller than (?:the )?mamba.*chunk"),
            "the prefill chunk is smaller than the Mamba checkpoint interval, so prefixes are not stored",
            "a larger --chunked-prefill-size",
            f"{_SOURCE}, mamba arguments",
        ),
    ),
    failures=(
        Symptom(
            "L-301",
            re.compile(
                r"User-specified context_length \((?P<want>\d+)\) is greater than the derived context_length "
                r"\((?P<have>\d+)\).*To allow overriding this maximum"
            ),
            "context length {want} is above the checkpoint's own limit ({have})",
            "set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 beside --context-length, or ask for less",
            f"{_SOURCE}, model_config.py",
        ),
        Symptom(
            "L-302",
            re.compile(r"Not enough memory\. Please try to increase --mem-fraction-static"),
            "the weights fill the static share: nothing is left for the pools",
            "more tensor parallel or a smaller checkpoint; a larger --mem-fraction-static only if memory is free",
            f"{_SOURCE}, pool_configurator.py",
        ),
        Symptom(
            "L-303",
            re.compile(r"extra_buffer.*disable.?radix.?cache|disable.?radix.?cache.*extra_buffer"),
            "extra_buffer serves the radix cache, which is disabled",
            "drop --disable-radix-cache, or take no_buffer",
            "sglang#19169",
        ),
        Symptom(
            "L-304",
            re.compile(r"[Ss]pec(?:ulative|) decoding for (?P<arch>\w+) (?:is not compatible|incompatible) with"),
            "speculation needs extra_buffer beside the radix cache",
            "--mamba-radix-cache-strategy extra_buffer (before 0.5.14: --mamba-scheduler-strategy extra_buffer)",
            "sglang#27418, QwenLM/Qwen3.8#108",
        ),
        Symptom(
            "L-305",
            re.compile(r"Unknown quantization method|quant_algo.*MIXED_PRECISION"),
            "this version does not know the checkpoint's quantisation",
            "a version with modelopt_mixed (after sglang#20407)",
            "sglang#20375, sglang#20407",
        ),
        Symptom(
            "L-306",
            re.compile(
                r"Stochastic rounding for the Mamba SSM cache (?:with .*requires SM100|requires --mamba-ssm-dtype)"
            ),
            "stochastic rounding of the Mamba state does not fit this GPU, backend or type",
            "--mamba-backend flashinfer --mamba-ssm-dtype float16, or leave it out",
            f"{_SOURCE}, mamba arguments; NVIDIA-NeMo/Nemotron#289",
        ),
        Symptom(
            "L-307",
            re.compile(r"error: (?:unrecognized arguments|ambiguous option): (?P<what>.+)"),
            "this version does not know, or not uniquely: {what}",
            "`python -m sglang.launch_server --help` of the same version; several flags were renamed after 0.5.13",
            "SGLang's argument parser, 0.5.13 and 0.5.23",
        ),
        Symptom(
            "L-308",
            re.compile(r"error: argument (?P<flag>\S+?): invalid choice: '?(?P<value>[^'\s]+)"),
            "{flag} does not take {value} in this version",
            "nemotron_3 is the reasoning parser here; fp8_e4m3 the cache type",
            "SGLang's argument parser, 0.5.13 and 0.5.23",
        ),
        Symptom(
            "L-309",
            re.compile(
                r"'NoneType' object has no attribute '?mamba|mamba_scheduler_strategy'? *$|"
                r"AttributeError: .*mamba_(?:scheduler|radix_cache)_strategy"
            ),
            "an old name of the Mamba strategy flag met its successor",
            "--mamba-radix-cache-strategy; update to a version where its error path works",
            "sglang#31094",
        ),
        Symptom(
            "L-310",
            re.compile(r"not supported on \.target '?(?P<target>sm_\w+)|cvt\.rs\.f16x2"),
            "stochastic rounding of the Mamba state uses an instruction that exists from SM100 only",
            "--mamba-backend flashinfer, or leave --enable-mamba-cache-stochastic-rounding out",
            "NVIDIA-NeMo/Nemotron#289",
        ),
        Symptom(
            "L-311",
            re.compile(r"Model architectures? \[.*?\] (?:are|is) not supported"),
            "this version cannot run the checkpoint's architecture",
            "a version that names the architecture in its list of supported models",
            "SGLang error text",
        ),
        Symptom(
            "L-312",
            re.compile(r"start \(\d+\) \+ length \(\d+\) exceeds dimension size"),
            "a weight is smaller than the layer that was built for it; for a Nemotron-H of other than 8 Mamba groups, "
            "config.json lacks mamba_n_groups, which this engine reads in place of n_groups",
            "in config.json, mamba_n_groups equal to n_groups; else a checkpoint that belongs to its config.json",
            "SGLang 0.5.13, configs/nemotron_h.py; measured: the miniature, 2 groups, one H200",
        ),
        Symptom(
            "L-313",
            re.compile(r"no_buffer (?:do not support overlap schedule|only supports page_size=1)"),
            "the Mamba strategy no_buffer goes neither with the overlap schedule nor with pages of several tokens",
            "leave --mamba-radix-cache-strategy out (extra_buffer), or --disable-overlap-schedule and no --page-size",
            "SGLang 0.5.14 server_args.py, 0.5.23 arg_groups/mamba_hook.py",
        ),
        Symptom(
            "L-390",
            re.compile(r"Received sigquit from a child process|Scheduler hit an exception"),
            "a worker process died; its own error stands above",
            "read the first traceback",
            f"{_SOURCE}, engine.py",
            aftermath=True,
        ),
    ),
)
