#!/usr/bin/env bash
# The miniature on SGLang
# Made by `nemolab render miniature_sglang --to process`.
# Change the profile, not this file.
# Needs sglang==0.5.15.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec python3 \
  -m sglang.launch_server \
  --model-path ./miniature \
  --served-model-name miniature \
  --reasoning-parser nemotron_3 \
  --tool-call-parser qwen3_coder \
  --context-length 65536 \
  --mem-fraction-static 0.3 \
  --max-running-requests 16 \
  --mamba-radix-cache-strategy extra_buffer \
  --moe-runner-backend triton \
  --sampling-backend pytorch \
  --enable-metrics \
  --host 127.0.0.1 \
  --port 8000
