"""What a profile asks of the host that it is to run on."""

from __future__ import annotations

from nemolab.core.errors import UsageError
from nemolab.engines.profile import Profile, load
from nemolab.host.requirements import Requirements, for_launch

# The flag that gives the share of a GPU's memory, by engine. TensorRT-LLM's counts what is free after loading.
_SHARE = {"vllm": "gpu-memory-utilization", "dynamo": "gpu-memory-utilization", "sglang": "mem-fraction-static"}


def for_profile(name: str) -> Requirements:
    """Requirements of the profile `name`, as `engines.profile.load` takes it; of one node, when it has several.

    Raises:
        UsageError: no such profile, or the profile is wrong.
    """
    return of(load(name))


def of(profile: Profile) -> Requirements:
    """Requirements of a profile: engine, container, GPUs of one node, free memory, checkpoint, ports, token."""
    need = for_launch(
        profile.engine,
        model=profile.model if profile.engine != "llamacpp" else "",
        gpus=profile.hardware.gpus_per_node,
        gpu_memory_utilization=_share(profile),
        ports=tuple(dict.fromkeys((profile.port, *profile.ports.values()))),
    )
    token = True if "HF_TOKEN" in profile.secrets else need.hf_token
    return need.but(containers=need.containers or bool(profile.image), hf_token=token)


def _share(profile: Profile) -> float:
    value = profile.args.get(_SHARE.get(profile.engine, ""))
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise UsageError(f"{value!r} is no share of the memory", where=profile.where(f"args.{_SHARE[profile.engine]}"))
    return float(value)
