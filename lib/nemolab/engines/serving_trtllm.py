"""What only TensorRT-LLM has to be told of: an options file that wins over the command line."""

from __future__ import annotations

from collections.abc import Mapping

from nemolab.engines.profile import Profile

Row = dict[str, str]
_BOTH = ("max_batch_size", "max_num_tokens", "max_seq_len", "tensor_parallel_size", "moe_expert_parallel_size")


def about(profile: Profile) -> list[Row]:
    """Which of command line and options file counts, key by key; then what is easy to forget."""
    options: dict[str, object] = {}
    for content in profile.files.values():
        options |= dict(content)
    rows = [
        {
            "about": name,
            "here": f"command line {profile.args.get(name, 'not said')}, options file {options.get(name, 'not said')}",
            "know": "the options file counts" if name in options else "the command line counts",
        }
        for name in _BOTH
        if name in profile.args or name in options
    ]
    kv = options.get("kv_cache_config")
    kv = kv if isinstance(kv, Mapping) else {}
    switch = "set" if profile.env.get("TLLM_ALLOW_LONG_MAX_MODEL_LEN") in ("1", "true") else "not set"
    return [
        *rows,
        {
            "about": "long context",
            "here": f"TLLM_ALLOW_LONG_MAX_MODEL_LEN {switch}, avg_seq_len {kv.get('avg_seq_len', 'not set')}",
            "know": "without avg_seq_len the server crashed near 256K (TensorRT-LLM#17926)",
        },
        {
            "about": "memory",
            "here": f"free_gpu_memory_fraction {kv.get('free_gpu_memory_fraction', 'not set')}",
            "know": "a share of what is free after the weights, not of the GPU as in vLLM",
        },
        {
            "about": "prefix reuse",
            "here": f"enable_block_reuse {_word(kv.get('enable_block_reuse'))}",
            "know": "off in the published files for this family; measure hits first (TensorRT-LLM#12185)",
        },
        {
            "about": "model name",
            "here": "any",
            "know": "the server answers to every model name: a wrong one in a client is not noticed",
        },
    ]


def _word(value: object) -> str:
    return "not set" if value is None else "on" if value else "off"
