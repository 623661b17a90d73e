#!/usr/bin/env bash
# Ultra BF16 on 16 x H100, two nodes, vLLM
# Made by `nemolab render ultra_bf16_16xh100_vllm --to ray`.
# Change the profile, not this file.
# Serves on the head, inside vllm/vllm-openai:v0.22.0, once all 16 GPUs have joined. 1,121.0 GB of weights at
# 1 GB/s take 1122 s, compilation and warm-up 165 s (measured: Nano, vLLM 0.22.0, H200); 2 times the sum is
# waited for: 2580 s
set -euo pipefail
for _ in $(seq 60); do
  if docker exec ultra-bf16-16xh100-vllm-ray python3 -c 'import ray, sys; ray.init(address='"'"'auto'"'"', log_to_driver=False); sys.exit(ray.cluster_resources().get('"'"'GPU'"'"', 0) < 16)'; then joined=1; break; fi
  sleep 5
done
if [ -z "${joined:-}" ]; then echo "not all GPUs have joined the Ray cluster" >&2; exit 1; fi
exec docker exec --env VLLM_ENGINE_READY_TIMEOUT_S=7200 \
  --env VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=7200 \
  ultra-bf16-16xh100-vllm-ray vllm serve nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16 \
  --reasoning-parser nemotron_v3 \
  --enable-auto-tool-choice \
  --tool-call-parser qwen3_coder \
  --served-model-name nvidia/nemotron-3-ultra \
  --kv-cache-dtype fp8 \
  --max-model-len 262144 \
  --gpu-memory-utilization 0.9 \
  --max-num-seqs 16 \
  --max-num-batched-tokens 8192 \
  --async-scheduling \
  --tensor-parallel-size 8 \
  --pipeline-parallel-size 2 \
  --mamba-ssm-cache-dtype float32 \
  --mamba-backend triton \
  --distributed-timeout-seconds 7200 \
  --distributed-executor-backend ray \
  --host 127.0.0.1 \
  --port 8000
