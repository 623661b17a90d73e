"""NIM: what the log of the container says. It starts vLLM, so vLLM's lines are all there too."""

from __future__ import annotations

import re
from dataclasses import replace

from nemolab.engines.log_rules import Symptom
from nemolab.engines.vllm import LOG as VLLM

LOG = replace(
    VLLM,
    engine="nim",
    banner=re.compile(r"NVIDIA Inference Microservice|Could not match a profile in manifest|\bnimlib\b|nim_llm"),
    first_phase="profile and model cache",
    failures=(
        Symptom(
            "L-501",
            re.compile(r"Could not match a profile in manifest|No (?:compatible|valid) profile"),
            "the image has no profile for this GPU, precision and number of GPUs",
            "run the image with `list-model-profiles`, then set NIM_MODEL_PROFILE to one that it calls compatible",
            "NVIDIA-AI-Blueprints/nemotron-voice-agent#89",
        ),
        Symptom(
            "L-502",
            re.compile(r"currently not runnable due to low free GPU memory"),
            "a profile fits this GPU, but its memory is taken",
            "end the process that holds it (nvidia-smi names it)",
            "NIM's own message",
        ),
        Symptom(
            "L-503",
            re.compile(
                r"(?i)(?:authentication error|401 unauthorized|403 forbidden|invalid api key).*(?:ngc|nvcr)|"
                r"NGC_API_KEY.*(?:not set|missing|invalid)"
            ),
            "NGC refused the key, or there is none",
            "pass NGC_API_KEY by name (-e NGC_API_KEY), with access to this model",
            "NIM for LLMs documentation",
        ),
        *VLLM.failures,
    ),
    warnings=(
        Symptom(
            "L-551",
            re.compile(r"(?i)prefix caching.*(?:disabled|not enabled).*hybrid|KV cache reuse.*disabled"),
            "NIM leaves prefix caching off for hybrid models unless told",
            "NIM_ENABLE_KV_CACHE_REUSE=1",
            "NVIDIA-AI-Blueprints/retail-shopping-assistant#217",
        ),
        *VLLM.warnings,
    ),
)
