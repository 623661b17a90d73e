"""vLLM: further ways to fail, from public issues with this model family and with hybrid models in general.

Each is worded as the engine words it in the issue named as its source. The symptoms that were measured or read in the
source stand in `nemolab.engines.vllm`.
"""

from __future__ import annotations

import re

from nemolab.engines.log_rules import Symptom

FAILURES: tuple[Symptom, ...] = (
    Symptom(
        "L-116",
        re.compile(r"kernel does not support current device"),
        "an NVFP4 MoE backend does not know this GPU",
        "a version with kernels for it, or another --moe-backend",
        "vllm#33417, vllm#33416",
    ),
    Symptom(
        "L-117",
        re.compile(r"size_(?P<axis>[nk]) = (?P<size>\d+),? is not divisible by (?P<by>[\w.()]+) = (?P<tile>\d+)"),
        "Marlin cannot split a layer so thin: {size} values a rank, no multiple of {tile}",
        "half the tensor parallel size, another backend, or a version that pads",
        "vllm#43908, vllm#41947, vllm#36807, vllm#49949",
    ),
    Symptom(
        "L-118",
        re.compile(r"ModelOpt currently only supports|quant_algo.*MIXED_PRECISION|MIXED_PRECISION.*not supported"),
        "this version does not read mixed-precision ModelOpt checkpoints (FP8 and NVFP4 in one)",
        "vLLM 0.17.1 or newer; NGC's vllm image 26.05 or newer",
        "vllm#37854, NVIDIA/dgx-spark-playbooks#77",
    ),
    Symptom(
        "L-119",
        re.compile(r"kernel does not support no act_and_mul"),
        "the chosen MoE backend cannot run a layer without gating; VLLM_FLASHINFER_MOE_BACKEND=latency forces it",
        "unset VLLM_FLASHINFER_MOE_BACKEND; with prefix caching and MTP also --mamba-cache-mode align",
        "vllm#39809",
    ),
    Symptom(
        "L-120",
        re.compile(
            r"Use num_speculative_tokens=\w*block_size or larger|num_speculative_tokens.*(?:<|smaller).*block_size"
        ),
        "fewer speculative tokens than the drafter's block",
        "num_speculative_tokens at least the drafter's block size (its config.json)",
        "vllm#50012, vllm#47419",
    ),
    Symptom(
        "L-121",
        re.compile(r"'GPUModelRunner' object has no attribute 'drafter'"),
        "speculation with pipeline parallelism: only the last stage has a drafter",
        "--pipeline-parallel-size 1, or no --speculative-config",
        "vllm#30436",
    ),
    Symptom(
        "L-122",
        re.compile(
            r"(?P<kind>[Rr]easoning|[Tt]ool) parser:? '?(?P<name>[\w-]+)'? (?:not found|has not been registered)"
        ),
        "this version has no {kind} parser {name}",
        "nemotron_v3 is built in since 0.17.1; ultra_v3, super_v3 and nano_v3 need --reasoning-parser-plugin FILE",
        "eugr/spark-vllm-docker#234; vLLM 0.22.0 source",
    ),
    Symptom(
        "L-123",
        re.compile(r"Failed to load module '(?P<name>[^']+)' from (?P<path>\S+)"),
        "the parser plugin {path} cannot be loaded",
        "mount the file into the container, readable for the engine's user",
        "eugr/spark-vllm-docker#234",
    ),
    Symptom(
        "L-124",
        re.compile(r"err 715 != CUDA_SUCCESS|CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER|Plan index \d+ is invalid"),
        "an FP8 matrix product for SM100 was tried on another Blackwell (GB10)",
        "leave out --kv-cache-dtype fp8 there; a FlashInfer that keeps cuDNN's FP8 path off SM12x",
        "NVIDIA/dgx-spark-playbooks#107, vllm-project/recipes#836, flashinfer#3566",
    ),
    Symptom(
        "L-125",
        re.compile(r"Error in memory profiling"),
        "another process took or freed GPU memory while vLLM measured it",
        "start servers of one GPU one after the other, and give each its share",
        "vllm#38489; vLLM 0.22.0 source, gpu_worker.py",
    ),
    Symptom(
        "L-126",
        re.compile(r"Hybrid KV cache manager is disabled but failed to convert the KV cache specs"),
        "a KV connector switched the hybrid cache manager off, and this model cannot do without it",
        "--no-disable-hybrid-kv-cache-manager with a connector that supports it, or no --kv-transfer-config",
        "ai-dynamo/dynamo#10741, ai-dynamo/dynamo#7216",
    ),
    Symptom(
        "L-127",
        re.compile(r"Connector (?P<name>\w+) does not support HMA but HMA is enabled"),
        "the connector {name} cannot move a hybrid model's caches",
        "NixlConnector of a recent version, or no connector",
        "ai-dynamo/dynamo#13755, vllm#36687",
    ),
    Symptom(
        "L-128",
        re.compile(r"(?:Nixl\w* (?:does not|doesn't|not) support.*|[Pp]ipeline.?[Pp]arallel\w*.*not supported.*Nixl)"),
        "NixlConnector of this version refuses pipeline parallelism or hybrid models",
        "--pipeline-parallel-size 1, or a newer version",
        "vllm#43366, vllm#40674",
    ),
    Symptom(
        "L-129",
        re.compile(r"Available KV cache memory: -(?P<gib>[\d.]+) GiB"),
        "weights, drafter and activations are {gib} GiB more than the memory share allows",
        "a larger share; servers of one GPU one after the other, since what another takes meanwhile is counted too; on "
        "unified memory drop the page cache first; count the drafter, or set --kv-cache-memory-bytes",
        "NVIDIA/NemoClaw#7127, NVIDIA/xr-ai#462; measured: two vLLM 0.22.0 started side by side on one H200",
    ),
    Symptom(
        "L-130",
        re.compile(
            r"currently does not support '?all'? prefix caching|mamba.?cache.?mode.*all.*(?:not supported|spec)"
        ),
        "Mamba cache mode all does not go with speculation",
        "--mamba-cache-mode align",
        "vllm#39809, vllm#34865",
    ),
    Symptom(
        "L-131",
        re.compile(r"(?P<name>\w+) reasoning parser could not locate think start/end tokens in the tokenizer"),
        "the tokenizer has no <think> and </think>, which {name} looks for",
        "the tokenizer of the checkpoint that is served; without reasoning: no --reasoning-parser",
        "vLLM 0.22.0 source, reasoning/basic_parsers.py",
    ),
)

WARNINGS: tuple[Symptom, ...] = (
    Symptom(
        "L-156",
        re.compile(r"SpecDecoding metrics: .*Avg Draft acceptance rate: 0\.0%"),
        "no drafted token was accepted: speculation costs time and gains nothing",
        "compare drafter and model; on this platform serve without speculation",
        "vllm#52107",
    ),
    Symptom(
        "L-157",
        re.compile(r"The model `(?P<name>[^`]+)` does not exist"),
        "clients ask for {name}, which is not the served name",
        "--served-model-name {name}, or the right name in the client",
        "NVIDIA/NemoClaw#11045",
    ),
    Symptom(
        "L-158",
        re.compile(r"Using KV cache scaling factor 1\.0 for fp8"),
        "the FP8 cache is scaled by 1.0: the checkpoint's k and v scales were not loaded",
        "compare answers with an unquantised cache before relying on it",
        "NVIDIA/NemoClaw#7899; vLLM source, quantization/kv_cache.py",
    ),
    Symptom(
        "L-159",
        re.compile(r"Mamba cache mode is set to 'none' when prefix caching is disabled"),
        "--mamba-cache-mode has no effect, because prefix caching is off",
        "--enable-prefix-caching beside it, or leave both out",
        "syv-ai/qwen38-27b-rtx3090#25; vLLM source, models/config.py",
    ),
    Symptom(
        "L-160",
        re.compile(r"Your GPU does not have native support for FP4 computation"),
        "NVFP4 weights are unpacked by Marlin: this GPU has no FP4 arithmetic",
        "right on Hopper; on Blackwell it means a build without kernels for this GPU",
        "vllm#50925",
    ),
    Symptom(
        "L-161",
        re.compile(r"Mamba cache mode is set to 'all' for (?P<arch>\w+) by default"),
        "prefix caching without a mode took `all`: 5 to 6 times the memory at 1M tokens",
        "--mamba-cache-mode align",
        "vLLM 0.22.0 source, models/config.py",
    ),
    Symptom(
        "L-162",
        re.compile(r"Skipping tactic|Failed to initialize cutlass TMA WS grouped gemm"),
        "some kernel variants do not run on this GPU and were skipped",
        "on GB10 look at the answers: other variants gave NaN there",
        "FlashInfer autotuner text; NVIDIA/TensorRT-LLM#14575",
    ),
)
