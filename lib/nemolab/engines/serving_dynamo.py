"""What only Dynamo has to be told of: a frontend before workers, parsers named twice, a router that counts blocks."""

from __future__ import annotations

from nemolab.engines.command import Place, command
from nemolab.engines.profile import Profile

Row = dict[str, str]


def about(profile: Profile) -> list[Row]:
    """Processes, parsers, router and length of this launch."""
    made = command(profile, Place(model="MODEL"))
    args, front = profile.args, profile.frontend
    dyn = {name: args.get(f"dyn-{name}", "not set") for name in ("reasoning-parser", "tool-call-parser")}
    switch = "set" if profile.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") in ("1", "true") else "not set"
    return [
        {
            "about": "frontend",
            "here": " ".join(made.frontend[:3]),
            "know": "takes the requests, tokenises, parses and routes; one for all workers",
        },
        {
            "about": "worker",
            "here": f"{' '.join(made.argv[:3])} with {len(args)} flags",
            "know": "vLLM inside: its flags, its log, its failures",
        },
        {
            "about": "parsers",
            "here": f"--dyn-reasoning-parser {dyn['reasoning-parser']}, "
            f"--dyn-tool-call-parser {dyn['tool-call-parser']}",
            "know": "the frontend parses: nemotron3 here, nemotron_v3 for the worker's own (dynamo#7225)",
        },
        {
            "about": "router",
            "here": f"mode {front.get('router-mode', '-')}, worker blocks of {args.get('block-size', '-')} tokens",
            "know": "routing by cached prefix needs the same block size on both sides",
        },
        {
            "about": "hybrid cache manager",
            "here": "kept on" if args.get("disable-hybrid-kv-cache-manager") is False else "not said",
            "know": "a KV connector switches it off, and then this model does not start (dynamo#10741)",
        },
        {
            "about": "context",
            "here": f"--max-model-len {args.get('max-model-len', 'not set')}; the variable is {switch}",
            "know": "the 1M manifests are separate files, without speculation",
        },
        {
            "about": "checks of the manifest",
            "here": "exit 42, exit 43",
            "know": "config.json, or the parser plugin, cannot be read in the model volume",
        },
    ]
