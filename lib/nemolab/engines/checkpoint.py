"""Whether a folder holds the model that a profile is for."""

from __future__ import annotations

import json
from pathlib import Path

from nemolab import models
from nemolab.core.errors import NemolabError, UsageError
from nemolab.engines.profile import Profile
from nemolab.models import config

# Parsers of vLLM that look their tags up among the tokens when the server starts (0.22.0, reasoning/basic_parsers.py).
_TAGGED = ("nemotron_v3", "deepseek_r1", "qwen3")
_TAGS = ("<think>", "</think>")


def of_profile(profile: Profile, folder: Path) -> None:
    """Refuse what cannot work before an engine takes half a minute, or an hour of loading, to say so.

    A checkpoint of another shape: what was planned would be held against the log of another model. A tokenizer without
    the tags that the reasoning parser looks for. A file that cannot be read is left to the engine, and to the rules
    that read its log.

    Raises:
        UsageError: the folder holds another model, or a tokenizer that its parser does not go with.
    """
    _shape(profile, folder)
    _tags(profile, folder / "tokenizer.json")


def _tags(profile: Profile, tokenizer: Path) -> None:
    parser = profile.args.get("reasoning-parser")
    if profile.engine != "vllm" or parser not in _TAGGED or not tokenizer.is_file():
        return
    text = tokenizer.read_bytes()
    missing = [tag for tag in _TAGS if json.dumps(tag).encode() not in text]
    if missing:
        raise UsageError(
            f"the tokenizer has no {' and '.join(missing)}, which the reasoning parser {parser} looks for",
            where=str(tokenizer),
            fix="the tokenizer of the checkpoint that is served, or no reasoning-parser",
        )


def _shape(profile: Profile, folder: Path) -> None:
    wanted = models.find(profile.model).architecture
    if wanted is None or not (folder / "config.json").is_file():
        return
    try:
        found = config.read(folder)
    except NemolabError:
        return
    names = ("hidden_size", "mamba_num_heads", "n_routed_experts")
    off = [f"{name} {getattr(found, name)}, not {getattr(wanted, name)}" for name in names
           if getattr(found, name) != getattr(wanted, name)]  # fmt: skip
    if found.layers != wanted.layers:
        off.insert(0, f"{len(found.layers)} layers, not {len(wanted.layers)}, or others")
    if off:
        raise UsageError(
            f"not {profile.model}: {'; '.join(off)}",
            where=str(folder),
            fix=f"a profile of that model, or a folder of {profile.model}",
        )
