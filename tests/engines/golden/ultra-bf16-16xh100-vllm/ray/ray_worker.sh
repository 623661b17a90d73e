#!/usr/bin/env bash
# Ultra BF16 on 16 x H100, two nodes, vLLM
# Made by `nemolab render ultra_bf16_16xh100_vllm --to ray`.
# Change the profile, not this file.
# Joins the head: ray_worker.sh ADDRESS_OF_THE_HEAD ADDRESS_OF_THIS_MACHINE
set -euo pipefail
head=${1:?address of the head}
own=${2:?address of this machine}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$here"/models
exec docker run \
  --name ultra-bf16-16xh100-vllm-ray \
  --detach \
  --restart unless-stopped \
  --gpus 8 \
  --shm-size 16g \
  --ulimit memlock=-1 \
  --ulimit nofile=65536:65536 \
  --security-opt no-new-privileges:true \
  --log-opt max-size=100m \
  --log-opt max-file=3 \
  --stop-timeout 60 \
  --network host \
  --entrypoint ray \
  --volume "$here"/models:/models \
  --env HF_HOME=/models \
  --env TRITON_CACHE_DIR=/models/cache/triton \
  --env VLLM_CACHE_ROOT=/models/cache/vllm \
  --env VLLM_ENGINE_READY_TIMEOUT_S=7200 \
  --env VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=7200 \
  --env HF_TOKEN \
  --env VLLM_HOST_IP="$own" \
  vllm/vllm-openai:v0.22.0@sha256:0fec7ec5f3e6bc168e54899935fb0557da908a4832a1dbc88e2debcf2f889416 \
  start \
  --block --address "$head":6379 --node-ip-address "$own"
