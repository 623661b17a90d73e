# ruff: noqa: E501  tables, one entry a line
"""Claims that circulate about deploying the family, judged as their verdicts say.

A row gives the number of a claim, its verdict, a launch or script that acts on it in our own words, and what lint must
say of it: code and severity pairs that must be there, and with `-CODE` what must not be. A true claim has no error.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from nemolab.lint import Context, Severity, lint_text

ULTRA = "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4"
BF16 = "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"
LIGHTNING = "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4"
SGL = f"python3 -m sglang.launch_server --model-path {BF16}"
E, W, D, I = (str(s) for s in (Severity.ERROR, Severity.WARNING, Severity.DISAGREE, Severity.INFO))  # noqa: E741


class Claim(NamedTuple):
    id: str
    verdict: str
    text: str
    expect: tuple[str, ...]  # "CODE severity", or "-CODE" for a code that must be absent
    context: Context = Context()


V22, V33 = Context(engine_version="0.22.0"), Context(engine_version="0.33.0")
S13, S23 = Context(engine_version="0.5.13"), Context(engine_version="0.5.23")
T = Context(engine="trtllm", engine_version="1.4.0rc1")
MTP = """--speculative-config '{"method": "nemotron_h_mtp", "num_speculative_tokens": 5}'"""

CLAIMS = [
    Claim("C002", "false", f"# patches its MHGSA layers\nvllm serve {ULTRA} -tp 8", (f"F-NEVER {E}",), V22),
    Claim("C004", "false", f"docker run --gpus all vllm/vllm-openai:v0.6.3 {BF16}", (f"R-MINVER {E}",)),
    Claim("C005", "false", "vllm serve nvidia/nemotron-3-ultra-32b", (f"R-MODEL {E}",), V22),
    Claim("C009", "false", "python3 -c 'print(model.preference_score(x))'", (f"F-NEVER {E}",)),
    Claim("C012", "false", "vllm serve /teacher -tp 4", (f"R-MEM {E}",), Context(model="teacher-stem", gpu="b200", gpus=4, engine_version="0.22.0")),
    Claim("C013", "true with changes", f"vllm serve {BF16} -tp 8 --max-model-len 1M", (f"R-LONG {E}",), V22),
    Claim("C015", "true", f"vllm serve {ULTRA} -tp 8 --enable-expert-parallel", (f"R-EP {D}", "-F-UNKNOWN"), V22),
    Claim("C015", "true", f"{SGL} --tp-size 4 --ep-size 4", ("-F-UNKNOWN", "-R-EP"), S13),
    Claim("C015", "true", "trtllm-serve m --tp_size 4 --ep_size 4", ("-F-UNKNOWN",), T),
    Claim("C016", "true with changes", f"vllm serve {ULTRA} -tp 8 "
    "--mamba-cache-philox-rounds 5", (f"R-SR-ARCH {W}",), V22),
    Claim("C020", "false", "vllm serve "
    "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16", (f"R-MEM {E}",), Context(gpu="rtx-4090", gpus=1, engine_version="0.27.1")),
    Claim("C020", "false", f"vllm serve {LIGHTNING}", (f"R-MEM {E}",), Context(gpu="rtx-4080", gpus=1, engine_version="0.27.1")),
    Claim("C022", "false", f"""vllm serve {BF16} -tp 8 --hf-overrides '{{"rope_theta": 1000000}}'""", (f"R-ROPE {W}",), V22),
    Claim("C022", "false", f"vllm serve {BF16} -tp 8 --rope-theta 1000000", (f"R-DEPRECATED {E}",), V22),
    Claim("C029", "false", "# needs nvmlDeviceGetMemoryInfoEx from the driver\nnvidia-smi", (f"F-NEVER {E}",)),
    Claim("C032", "version-bound", "sh NVIDIA-Linux-x86_64-550.54.14.run --no-x-check", (f"R-DRIVER {E}",)),
    Claim("C033", "false", "wget cuda_12.4.1_535.104.05_linux.run", (f"R-DRIVER {E}",)),
    Claim("C042", "false", f"vllm serve {BF16} --tensor-parallel-size 2", (f"R-MEM {E}",), Context(gpu="a100", gpus=2, engine_version="0.22.0")),
    Claim("C044", "false", "vllm serve nvidia/NVIDIA-Nemotron-Labs-Teacher-STEM "
    "-tp 4", (f"R-MEM {E}",), Context(model="teacher-stem", gpu="b200", gpus=4, engine_version="0.22.0")),
    Claim("C047", "false", "[Service]\nType=oneshot\nExecStart=/usr/bin/nvidia-smi -i 0 -pl "
    "225\nExecStart=/usr/bin/nvidia-smi -i 0 -r\n", (f"R-HOST {E}",)),
    Claim("C051", "false", "[nvidia-container-cli]\nenv = [\"NVIDIA_DISABLE_REQUIRE=true\"]\ndevices "
    "= [\"/dev/nvidia0\"]\n", (f"R-HOST {E}", f"R-HOST {W}")),
    Claim("C052", "false", "sudo systemctl restart nvidia-container-runtime", (f"R-HOST {E}",)),
    Claim("C058", "false", "python3 convert_hf_to_vllm.py --model x", (f"F-NEVER {E}",)),
    Claim("C061", "false", "git clone https://huggingface.co/nvidia/Nemotron-3.5-Lightning", (f"R-MODEL {E}",)),
    Claim("C063", "false", "vllm serve m --quantization awq --awq-ckpt-path /x", (f"F-NEVER {E}",), V22),
    Claim("C063", "false", f"vllm serve {ULTRA} -tp 8 --quantization awq", (f"R-QUANT {E}",), V22),
    Claim("C064", "false", f"SAFETENSORS_FAST_GPU=1 vllm serve {ULTRA} -tp 8", (f"E-INERT {I}",), V22),
    Claim("C065", "true", f"""vllm serve {ULTRA} -tp 8 --model-loader-extra-config '{{"enable_multithread_load": true, "num_threads": 96}}'""", ("-F-JSON",), V33),
    Claim("C066", "version-bound", "python -m vllm.entrypoints.api_server --model m", (f"R-ENTRY {E}",), V22),
    Claim("C067", "version-bound", "vllm serve m --swap-space 16", (f"R-DEPRECATED {E}",), V22),
    Claim("C067", "version-bound", "vllm serve m --swap-space 16", ("-R-DEPRECATED",), Context(engine_version="0.17.1")),
    Claim("C068", "false", "vllm serve m --kv-cache-dtype fp16", (f"F-CHOICE {E}",), V22),
    Claim("C069", "false", f"vllm serve {ULTRA} -tp 8 --enforce-eager", (f"R-EAGER {W}",), V22),
    Claim("C072", "false", "pip install vllm==0.6.3.post1 'pydantic<2' --no-deps", (f"R-MINVER {E}", f"M-DRIFT {E}")),
    Claim("C073", "version-bound", "export VLLM_ATTENTION_BACKEND=FLASHINFER\nvllm "
    f"serve {ULTRA} -tp 8", (f"E-UNKNOWN {W}",), V22),
    Claim("C074", "version-bound", "vllm serve m --disable-log-requests "
    "--disable-log-stats", (f"R-DEPRECATED {E}", f"R-STATS {W}"), V22),
    Claim("C074", "version-bound", "vllm serve m --disable-log-requests", ("-R-DEPRECATED",), V33),
    Claim("C076", "true", "docker run --gpus all --ipc=host vllm/vllm-openai:v0.22.0 /model --tensor-parallel-size "
    "4 --enable-expert-parallel --kv-cache-dtype fp8 --max-model-len 262144 --gpu-memory-utilization "
    "0.90 --enable-chunked-prefill --reasoning-parser nemotron_v3 --enable-auto-tool-choice "
    "--tool-call-parser qwen3_coder --mamba-backend flashinfer", (f"-{E}",)),
    Claim("C077", "false", "docker run --gpus all --ipc=host vllm/vllm-openai:v0.22.0 /model --tensor-parallel-size "
    "4 --enable-mamba-cache-stochastic-rounding --mamba-cache-philox-rounds 5", (f"R-SR-ARCH {E}",)),
    Claim("C078", "true with changes", f"vllm serve {BF16} -tp 8 --enable-prefix-caching "
    f"{MTP}", (f"R-PC-MODE {W}",), V22),
    Claim("C079", "true with changes", f"vllm serve {BF16} -tp 8 {MTP}", (f"R-DEPRECATED {W}", "-F-JSON"), V22),
    Claim("C080", "version-bound", "VLLM_FLASHINFER_ALLREDUCE_BACKEND=trtllm VLLM_FLASHINFER_MOE_BACKEND=latency "
    f"vllm serve {BF16} -tp 8 {MTP}", (f"R-MOE-BACKEND {E}", "-E-UNKNOWN"), V22),
    Claim("C080", "version-bound", "VLLM_FLASHINFER_MOE_BACKEND=throughput vllm "
    f"serve {BF16} -tp 8", (f"E-UNKNOWN {W}",), V33),
    Claim("C081", "unverifiable", "VLLM_WORKER_MULTIPROC_METHOD=spawn NVIDIA_TF32_OVERRIDE=1 "
    f"vllm serve {BF16} -tp 8", ("-E-UNKNOWN", "-E-VALUE"), V22),
    Claim("C083", "false", f"vllm serve {ULTRA} -tp 8 --kv-cache-dtype nvfp4", (f"R-QUANT {W}",), V22),
    Claim("C084", "true with changes", "docker run --gpus all --ipc=host --network=host --shm-size=16g --ulimit "
    f"memlock=-1 vllm/vllm-openai:v0.22.0 {BF16} -tp 8", (f"R-CONTAINER {W}", f"R-EXPOSE {W}")),
    Claim("C085", "true with changes", f"vllm serve {BF16} -tp 8 "
    "--trust-remote-code", (f"R-TRUST {W}", f"R-PIN {W}"), V22),
    Claim("C086", "false", f"{SGL} --tp-size 8 --enable-flashinfer", (f"F-PREFIX-WRONG {E}",), S13),
    Claim("C088", "true with changes", f"{SGL} --tp 2 --mem-fraction-static 0.85", (f"F-PREFIX {W}", f"R-MEM {E}"), Context(gpu="h200", gpus=2, engine_version="0.5.13")),
    Claim("C089", "false", f"sglang launch-server --model-path {BF16}", (f"R-ENTRY {E}",), S13),
    Claim("C090", "false", f"{SGL} --tp-size 8 --enable-prefill-engine --reward-model-only", (f"F-NEVER {E}",), S13),
    Claim("C091", "version-bound", f"{SGL} --tp-size 8 --disable-flashinfer", (f"F-AMBIGUOUS {E}",), S13),
    Claim("C091", "version-bound", f"{SGL} --tp-size 8 --disable-cuda-graph", (f"R-DEPRECATED {W}",), S23),
    Claim("C092", "true with changes", f"docker run --gpus all --ipc=host lmsysorg/sglang:v0.5.13 {SGL} --tp-size 8 "
    "--mamba-scheduler-strategy extra_buffer --mem-fraction-static 0.85 --context-length 262144", (f"-{E}",)),
    Claim("C092", "true with changes", f"{SGL} --tp-size 8 --mamba-scheduler-strategy "
    "extra_buffer", (f"R-DEPRECATED {E}",), S23),
    Claim("C093", "true", f"{SGL} --tp-size 8 --attention-backend trtllm_mha --mamba-scheduler-strategy extra_buffer "
    "--speculative-algorithm EAGLE --speculative-num-steps 5 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 6 --reasoning-parser "
    "nemotron_3 --tool-call-parser qwen3_coder", (f"-{E}", "-R-SPEC"), Context(gpu="b200", gpus=8, engine_version="0.5.13")),
    Claim("C093", "true", f"{SGL} --tp-size 8 --attention-backend "
    "trtllm_mha", (f"R-SGL-BLACKWELL {E}",), Context(gpu="h200", gpus=8, engine_version="0.5.13")),
    Claim("C095", "version-bound", "trtllm-build --checkpoint_dir c --output_dir e", (f"R-REMOVED {E}",)),
    Claim("C096", "false", "trtllm-build --model_type nemotron --enable_context_fmha "
    "--use_paged_context_fmha enable", (f"R-REMOVED {E}",)),
    Claim("C097", "false", "trtllm-build --use_gpt_attention_plugin float16 --layernorm_plugin "
    "float32 --use_draft_logits --world_size 2", (f"R-REMOVED {E}",)),
    Claim("C098", "false", "python3 - <<X\nm = "
    "AutoModelForSequenceClassification.from_pretrained(p)\ntorch.onnx.export(m)\nX\n", (f"R-REMOVED {E}",)),
    Claim("C099", "true with changes", "trtllm-build --checkpoint_dir c", (f"R-REMOVED {E}",)),
    Claim("C100", "version-bound", "python3 -c 'ModelRunner.from_dir(engine_dir, rank=0)'", (f"R-REMOVED {E}",)),
    Claim("C102", "false", "trtllm-serve m --enable-context-fmha --paged-kv-cache "
    "--inflight-batching", (f"R-REMOVED {E}",), T),
    Claim("C104", "false", "trtllm-server --engine_dir e", (f"F-NEVER {E}",)),
    Claim("C105", "true with changes", "max_batch_size: 16\nenable_attention_dp: true\nmoe_config:\n  backend: "
    "CUTEDSL\nspeculative_config:\n  decoding_type: "
    "MTP\n  max_draft_len: 3\n", (f"R-TRT {W}", f"-{E}"), Context(engine="trtllm", engine_version="1.4.0rc1", gpu="h100", gpus=8, model="ultra-nvfp4")),
    Claim("C106", "true with changes", "cat > o.yaml <<X\nmax_batch_size: 8\nX\ntrtllm-serve ckpt "
    "--backend pytorch --max_batch_size "
    "16 --tp_size 4 --ep_size 4 --reasoning_parser nano-v3 "
    "--extra_llm_api_options o.yaml", (f"R-DEPRECATED {W}", f"F-YAML {W}", f"-{E}"), T),
    Claim("C107", "false", "docker run --gpus all nvcr.io/nvidia/tensorrt-llm:latest "
    "bash", (f"R-IMAGE {E}", f"R-PIN {W}")),
    Claim("C110", "false", "docker run --gpus all "
    "nvcr.io/nvidia/nim/nemotron-3.5-lightning-nim:latest", (f"R-IMAGE {E}", f"R-PIN {W}")),
    Claim("C111", "true with changes", "docker run --gpus all -it --rm -p 8000:8000 -e NGC_API_KEY "
    "-v /m:/opt/nim/model_cache "
    "nvcr.io/nim/nvidia/nemotron-3.5-lightning-30b-a3b:2.0.9", (f"R-NIM {W}",)),
    Claim("C115", "false", "docker run --gpus all --shm-size=16GB "
    "nvcr.io/nim/nvidia/nemotron-3.5-lightning-30b-a3b:2.0.9 --dtype int8", (f"R-NIM {E}",)),
    Claim("C117", "false", f"vllm serve {ULTRA} -tp 4 --nnodes 2 --node-rank "
    "0 --master-addr 10.0.0.1", ("-R-NODES",), V22),
    Claim("C119", "true with changes", f"{SGL} --tp-size 16 --nnodes 2 --node-rank 0", (f"R-NODES {E}",), S13),
    Claim("C121", "true", f"vllm serve {BF16} -tp 8 -pp 2 --distributed-executor-backend "
    "ray --distributed-timeout-seconds 3600", (f"R-RAY {W}", "-F-UNKNOWN"), V22),
    Claim("C122", "true with changes", f"vllm serve {BF16} -tp 4 --pipeline-parallel-size 2 "
    f"--distributed-executor-backend ray {MTP}", (f"R-SPEC {E}",), V22),
    Claim("C123", "false", f"{SGL} --tp-size 2 --reward-engine-gpu-id 1", (f"F-NEVER {E}",), S13),
    Claim("C124", "false", "sglang run --backend pd --model-path m", (f"R-ENTRY {E}", f"F-NEVER {E}"), S13),
    Claim("C126", "true", f"VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve {BF16} "
    "-tp 8 --max-model-len 1048576", ("-R-LONG",), V22),
    Claim("C126", "true", f"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 {SGL} --tp-size 8 "
    "--context-length 1048576 --max-running-requests 8", (f"-R-LONG {E}", f"-R-LONG {W}"), S13),
    Claim("C126", "true", f"TLLM_ALLOW_LONG_MAX_MODEL_LEN=1 trtllm-serve {BF16} --tp_size 8", (f"R-LONG {W}",), T),
    Claim("C129", "false", "# keeps a Stateful KV Cache with a state_id\npython3 -m "
    "sglang.launch_server --model-path m", (f"F-NEVER {E}",), S13),
    Claim("C131", "true", """curl localhost:8000/v1/chat/completions -d '{"model": "m", "messages": [], "chat_template_kwargs": {"low_effort": true, "reasoning_budget": 100}}'""", (f"R-CLIENT {W}",)),
    Claim("C132", "true with changes", f"vllm serve {ULTRA} -tp 8 --reasoning-parser-plugin "
    "ultra_v3_reasoning_parser.py "
    "--reasoning-parser nemotron_v3", (f"R-PARSER {I}",), V22),
    Claim("C135", "true with changes", r"""curl localhost:8000/v1/chat/completions -d '{"model": "m", "messages": [], "max_new_tokens": 5, "temperature": 0.2, "stop": ["\n\n"]}'""", (f"R-CLIENT {W}",)),
    Claim("C136", "true with changes", f"vllm serve {ULTRA} -tp 8 --tool-call-parser "
    "qwen3_coder", (f"R-PARSER {E}",), V22),
    Claim("C138", "false", "ls /tmp/sglang_images", (f"F-NEVER {E}",)),
    Claim("C139", "false", "vllm serve m --allowed-local-media-path /", (f"R-EXPOSE {W}",), V22),
    Claim("C150", "false", "trtllm-serve m --kv_cache_free_gpu_memory_fraction 0.3", (f"R-RANGE {W}",), T),
    Claim("C154", "false", "nvidia-smi dmon -s u -c 1 | awk '{ if ($4 >= 90) print \"ok\" }'", (f"R-METRIC {W}",)),
    Claim("C157", "true with changes", "locust -f t.py --headless -u 100 -r 10 -t 5m --csv out", (f"R-LOADTEST {W}",)),
    Claim("C159", "false", "sed -i 's/max_num_seqs=.*/max_num_seqs=256/' "
    "/usr/lib/python3/site-packages/vllm/entrypoints/api_server.py", (f"R-PATCHED {W}",)),
    Claim("C162", "true with changes", "docker run --gpus all "
    "nvcr.io/nim/nvidia/nemotron-3.5-lightning-nim:24.05", (f"R-IMAGE {E}",)),
    Claim("C163", "true with changes", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: "
    "vllm/vllm-openai:v0.22.0\n    args: [m]\n    resources: {limits: {nvidia.com/gpu: "
    "1, memory: 16Gi}, requests: {memory: 8Gi}}\n", (f"R-CONTAINER {W}",)),
    Claim("C164", "true with changes", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: "
    f"vllm/vllm-openai:v0.22.0\n    args: [{BF16}, -tp, '8']\n    startupProbe: "
    f"{{periodSeconds: 10, failureThreshold: 6}}\n", (f"M-READY {W}",)),
    Claim("C181", "false", f"{SGL.replace(BF16, ULTRA)} --tp-size 8", (f"R-SUPPORT {D}",), Context(gpu="h100", gpus=8, engine_version="0.5.15")),
    Claim("C188", "true with changes", f"vllm serve {BF16} -tp 4 --gpu-memory-utilization "
    "0.80 --kv-cache-dtype fp8", (f"R-MEM {E}",), Context(gpu="b200", gpus=4, engine_version="0.22.0")),
    Claim("C188", "true with changes", f"{SGL} --tp-size 8 --kv-cache-dtype fp8", (f"F-CHOICE {E}",), S13),
    Claim("C194", "true with changes", f"vllm serve {BF16} -tp 8 --no-enable-chunked-prefill", (f"R-CHUNK {W}",), V22),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.id} {claim.verdict}")
def test_claim_is_judged_as_its_verdict_says(claim: Claim) -> None:
    findings = lint_text(claim.text, claim.context)
    have = {f"{f.code} {f.severity}" for f in findings}
    codes = {f.code for f in findings}
    said = [(f.code, str(f.severity), f.message) for f in findings]
    for expected in claim.expect:
        if not expected.startswith("-"):
            assert expected in have, said
        elif expected == f"-{E}":
            assert not [f for f in findings if f.severity is Severity.ERROR], said
        elif " " in expected:
            assert expected[1:] not in have, said
        else:
            assert expected[1:] not in codes, said


def test_every_row_with_a_lint_check_is_here() -> None:
    """84 of the 199 claims name lint as a check."""
    assert len({claim.id for claim in CLAIMS}) == 84
