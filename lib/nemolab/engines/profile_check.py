"""What lint and the planner say of a profile: the same rules as for any pasted launch, with the profile's own lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nemolab.core.finding import Finding, Severity
from nemolab.engines.command import Node, Place, command, repository
from nemolab.engines.profile import Profile, load

if TYPE_CHECKING:
    from nemolab.lint import Context, Script
    from nemolab.models import Plan

_ENTRY = {
    "vllm": ("vllm serve", 2),
    "sglang": ("sglang.launch_server", 3),
    "trtllm": ("trtllm-serve", 1),
    "dynamo": ("dynamo.vllm", 3),
    "nim": ("nim", 0),
    "llamacpp": ("llama-server", 1),
}


def script(profile: Profile) -> Script:
    """The profile as lint's reader would hand it over: one launch, each word with its line."""
    from nemolab.lint.launch import Launch, Script, Word

    node = Node("0", "head") if profile.hardware.nodes > 1 and profile.engine in ("vllm", "sglang") else None
    made = command(profile, Place(repository(profile) or profile.model, config="/config", node=node))
    entry, skip = _ENTRY[profile.engine]
    words: list[Word] = []
    line = _line(profile, "model")
    for text in made.argv[skip:]:
        if text.startswith("--"):
            name = text[2:]
            line = _line(profile, f"args.{name}") or _line(profile, f"args.{name.removeprefix('no-')}")
        words.append(Word(text, line, quoted=True))
    options = next(iter(profile.files.items()), None) if profile.engine == "trtllm" else None
    prefix = f"files.{options[0]}." if options else ""
    found = Launch(
        engine=profile.engine,
        entry=entry,
        words=tuple(words),
        env={name: (value, _line(profile, f"env.{name}")) for name, value in made.env},
        version=profile.engine_version,
        image=profile.image or None,
        image_line=_line(profile, "image"),
        yaml=dict(options[1]) if options else None,
        yaml_lines={
            key.removeprefix(prefix): line
            for key in profile.lines
            if prefix and key.startswith(prefix) and (line := _line(profile, key))
        },
        line=_line(profile, "engine"),
    )
    return Script("", "profile", launches=[found])


def context(profile: Profile) -> Context:
    """What lint knows of a profile beyond its launch."""
    from nemolab.lint import Context

    hardware = profile.hardware
    return Context(
        model=profile.model,
        gpu=hardware.gpu if hardware.gpus else None,
        gpus=hardware.gpus or None,
    )


def findings(profile: Profile) -> list[Finding]:
    """Everything that lint has to say, gravest first."""
    from nemolab.lint import lint_script

    return lint_script(script(profile), context(profile))


def of_file(path: Path, over: Context) -> list[Finding]:
    """Findings on a profile's file and on each of its variants, each once.

    Args:
        over: what the caller says instead of the profile.

    Raises:
        UsageError: it is no whole profile.
    """
    from dataclasses import replace

    from nemolab.lint import lint_script

    base = load(path)
    found: dict[Finding, None] = {}
    for profile in (base, *(load(path, variant) for variant in base.variants)):
        known = context(profile)
        said = {name: value for name in ("model", "gpu", "gpus") if (value := getattr(over, name)) is not None}
        found |= dict.fromkeys(lint_script(script(profile), replace(known, **said)))
    return list(found)


def plan(profile: Profile) -> Plan | None:
    """The planner's answer to the profile; None for a CPU, and where the engine decides by itself (NIM without flags).

    Raises:
        UsageError: a value that the planner knows nothing of.
    """
    from nemolab import models
    from nemolab.lint import hardware as kinds
    from nemolab.lint.case import build
    from nemolab.lint.rules.memory import request_of

    if not profile.hardware.gpus or profile.engine == "llamacpp":
        return None
    gpu = kinds.find(profile.hardware.gpu)
    if profile.engine == "nim":
        tensor = int(str(profile.args.get("tensor-parallel-size") or profile.hardware.gpus))
        return models.plan(models.request(profile.model, gpu, tensor_parallel_size=tensor))
    read = script(profile)
    return models.plan(request_of(build(read.launches[0], context(profile), read), gpu))


def unnamed(profile: Profile) -> list[Finding]:
    """Errors and disagreements that the profile does not name, and warnings that it does not account for."""
    named = {item.finding for item in profile.disagreements}
    grave = (Severity.ERROR, Severity.DISAGREE, Severity.WARNING)
    return [f for f in findings(profile) if f.severity in grave and f.code not in named]


def _line(profile: Profile, key: str) -> int:
    """Line of a setting in the profile's own file; 0 for what its base or nothing says."""
    path, _, number = profile.lines.get(key, "").rpartition(":")
    own = profile.lines[""].rpartition(":")[0]
    return int(number) if path == own and number.isdigit() else 0
