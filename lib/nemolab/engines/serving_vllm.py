"""What only vLLM has to be told of: which of its two long-context switches are set, and what its caches keep."""

from __future__ import annotations

from nemolab.engines.cold_start import CACHES
from nemolab.engines.profile import Profile

Row = dict[str, str]


def about(profile: Profile) -> list[Row]:
    """Context, prefix caching and caches of this launch."""
    length = profile.args.get("max-model-len", "the checkpoint's own")
    switch = "set" if profile.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") in ("1", "true") else "not set"
    prefix, mode = profile.args.get("enable-prefix-caching"), profile.args.get("mamba-cache-mode")
    rows = [
        {
            "about": "context",
            "here": f"--max-model-len {length}; VLLM_ALLOW_LONG_MAX_MODEL_LEN {switch}",
            "know": "above the checkpoint's own length both are needed; the variable alone changes nothing",
        },
        {
            "about": "prefix caching",
            "here": f"{'on' if prefix else 'off' if prefix is False else 'not said'}, Mamba mode {mode or 'not said'}",
            "know": "off by default for hybrids in 0.22; on without a mode it takes `all`, 5 to 6 times the memory",
        },
        {
            "about": "speculation",
            "here": str(profile.args.get("speculative-config", "none")),
            "know": "with prefix caching the Mamba mode must be align (vllm#39809)",
        },
    ]
    return rows + [
        {
            "about": f"cache: {cache.phase}",
            "here": f"{cache.folder} ({cache.variable})",
            "know": "mount it, or every start pays again" if cache.left else "mount it, or every start downloads again",
        }
        for cache in CACHES["vllm"]
    ]
