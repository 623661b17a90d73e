#!/usr/bin/env bash
# Ultra NVFP4 on 4 x B200, vLLM, long-context
# Made by `nemolab render ultra_nvfp4_4xb200_vllm:long-context --to docker`.
# Change the profile, not this file.
# 351.9 GB of weights at 1 GB/s take 352 s, compilation and warm-up 165 s (measured: Nano, vLLM 0.22.0, H200);
# 2 times the sum is waited for: 1080 s
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$here"/models
exec docker run \
  --name ultra-nvfp4-4xb200-vllm-long-context \
  --detach \
  --restart unless-stopped \
  --gpus 4 \
  --shm-size 16g \
  --ulimit memlock=-1 \
  --ulimit nofile=65536:65536 \
  --security-opt no-new-privileges:true \
  --log-opt max-size=100m \
  --log-opt max-file=3 \
  --stop-timeout 60 \
  --health-start-period 1080s \
  --health-cmd 'python3 -c '"'"'import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=15)'"'"' http://127.0.0.1:8000/health' \
  --health-interval 30s \
  --health-timeout 20s \
  --publish 127.0.0.1:8000:8000 \
  --volume "$here"/models:/models \
  --env HF_HOME=/models \
  --env TRITON_CACHE_DIR=/models/cache/triton \
  --env VLLM_CACHE_ROOT=/models/cache/vllm \
  --env VLLM_ENGINE_READY_TIMEOUT_S=3600 \
  --env VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 \
  --env VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=1800 \
  --env HF_TOKEN \
  vllm/vllm-openai:v0.22.0@sha256:0fec7ec5f3e6bc168e54899935fb0557da908a4832a1dbc88e2debcf2f889416 \
  nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4 \
  --reasoning-parser nemotron_v3 \
  --enable-auto-tool-choice \
  --tool-call-parser qwen3_coder \
  --served-model-name nvidia/nemotron-3-ultra \
  --kv-cache-dtype fp8 \
  --max-model-len 1048576 \
  --gpu-memory-utilization 0.9 \
  --max-num-seqs 16 \
  --max-num-batched-tokens 32768 \
  --async-scheduling \
  --tensor-parallel-size 4 \
  --mamba-backend flashinfer \
  --mamba-ssm-cache-dtype float16 \
  --enable-mamba-cache-stochastic-rounding \
  --mamba-cache-philox-rounds 5 \
  --enable-prefix-caching \
  --mamba-cache-mode align \
  --revision 252a02f921642313abde19b29a723a16602fe25e \
  --host 0.0.0.0 \
  --port 8000
