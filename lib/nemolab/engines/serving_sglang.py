"""What only SGLang has to be told of: three pools share one budget, and the request table grows with the context."""

from __future__ import annotations

from nemolab.engines.profile import Profile
from nemolab.models.units import version

Row = dict[str, str]
_SLOT_BYTES = 4  # bytes a token of context in ReqToTokenPool: SGLang 0.5.23 source, 4 MiB a slot at 1M
_DEFAULT_SLOTS = 2048  # at least so many without --max-running-requests
_RENAMED = (0, 5, 14)  # --mamba-scheduler-strategy became --mamba-radix-cache-strategy


def about(profile: Profile) -> list[Row]:
    """Pools, request table and strategy of this launch."""
    context = int(str(profile.args.get("context-length") or 262_144))
    given = profile.args.get("max-running-requests")
    slots = int(str(given)) if given else _DEFAULT_SLOTS
    table = slots * context * _SLOT_BYTES / 2**30
    new = version(profile.engine_version) >= _RENAMED
    flag = "mamba-radix-cache-strategy" if new else "mamba-scheduler-strategy"
    strategy = profile.args.get(flag, "not said")
    draft = profile.args.get("speculative-algorithm", "none")
    return [
        {
            "about": "request table",
            "here": f"{slots:,} slots x {context:,} tokens = {table:.1f} GiB of every GPU",
            "know": "outside the pools; --max-running-requests makes it small where requests are long",
        },
        {
            "about": "pools",
            "here": f"--mem-fraction-static {profile.args.get('mem-fraction-static', 'chosen by the engine')}",
            "know": "weights, KV cache and Mamba states share it; about 47 % of the pools go to states by default",
        },
        {
            "about": "states",
            "here": f"--{flag} {strategy}; speculation {draft}",
            "know": "extra_buffer is needed for the radix cache beside speculation (sglang#27418)",
        },
        {
            "about": "length",
            "here": f"--context-length {context:,}",
            "know": "a prompt must be shorter than this by at least one token; 1M means 1,000,000 here, 1Mi 1,048,576",
        },
        {
            "about": "parser",
            "here": f"--reasoning-parser {profile.args.get('reasoning-parser', 'none')}",
            "know": "nemotron_3 here, nemotron_v3 in vLLM; thoughts come as reasoning_content",
        },
    ]
