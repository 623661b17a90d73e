"""Dynamo with vLLM workers: what its log says. The worker's lines are vLLM's; the runtime adds its own."""

from __future__ import annotations

import re
from dataclasses import replace

from nemolab.engines.log_rules import Symptom
from nemolab.engines.vllm import LOG as VLLM

LOG = replace(
    VLLM,
    engine="dynamo",
    banner=re.compile(r"\bdynamo[._](?:vllm|frontend|runtime|llm)|dynamo\.sdk|DYN_[A-Z_]+"),
    failures=(
        Symptom(
            "L-601",
            re.compile(r"(?i)unknown (?P<kind>reasoning|tool[ -]call) parser(?: type)?[:, ]*'?(?P<name>[\w-]+)?"),
            "this Dynamo does not know the {kind} parser {name}",
            "--dyn-reasoning-parser nemotron3 exists from dynamo#7225 on; --dyn-tool-call-parser qwen3_coder",
            "ai-dynamo/dynamo#7225",
        ),
        Symptom(
            "L-602",
            re.compile(r"exit(?:ed)?(?: with)?(?: code)?[ :]+42\b"),
            "the manifest's own check: config.json of the model cannot be read",
            "mount the model's volume, and finish the download into it",
            "ai-dynamo/dynamo 1.4.0 recipes",
        ),
        Symptom(
            "L-603",
            re.compile(r"exit(?:ed)?(?: with)?(?: code)?[ :]+43\b"),
            "the manifest's own check: the parser plugin cannot be read",
            "the plugin file lies in the model's folder; mount it",
            "ai-dynamo/dynamo 1.4.0 recipes",
        ),
        *VLLM.failures,
    ),
)
