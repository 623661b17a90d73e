#!/usr/bin/env bash
# Runs on every node, inside vllm/vllm-openai:v0.22.0; started by job.sbatch.
set -euo pipefail
export HF_HOME=/models
export TRITON_CACHE_DIR=/models/cache/triton
export VLLM_CACHE_ROOT=/models/cache/vllm
export VLLM_ENGINE_READY_TIMEOUT_S=7200
export VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=7200
follower=()
if [ "$SLURM_NODEID" -gt 0 ]; then follower=(--headless); fi
exec vllm serve nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16 \
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
  --nnodes 2 \
  --node-rank "$SLURM_NODEID" \
  --master-addr "$HEAD_ADDRESS" \
  --master-port 29501 \
  --host 127.0.0.1 \
  --port 8000 \
  "${follower[@]}"
