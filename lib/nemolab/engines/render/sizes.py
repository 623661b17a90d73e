"""How long a start takes, and what a machine must have for it: assumptions stated, nothing hidden.

A start reads the weights once, then compiles, profiles and captures graphs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nemolab.core.sizes import GIB
from nemolab.engines.profile import Profile

# From process start to the first answer, without reading weights: Nano, vLLM 0.22.0, one H200, cold caches, 165 s in
# all of which 1.6 s were dummy weights.
_WARM_UP = (165, "compilation and warm-up", "measured: Nano, vLLM 0.22.0, H200")
_WARM_UPS = {"llamacpp": (10, "one empty run", "it compiles nothing; the miniature takes 0.3 s in all")}
_SLACK = 2.0  # estimates are no better; a start that is cut off costs all of it again


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a profile asks of a machine.

    Attributes:
        weights: bytes of the checkpoint.
        load_s: reading it at the rate assumed.
        startup_s: longest start that is waited for.
        memory_gib, cpus: to ask for on each machine.
        storage_gib: volume for checkpoint and caches.
    """

    engine: str
    weights: int
    rate: float
    load_s: int
    startup_s: int
    memory_gib: int
    cpus: int
    storage_gib: int

    @property
    def assumption(self) -> str:
        """How `startup_s` was found."""
        size = f"{self.weights / 1e9:,.1f} GB" if self.weights >= 1e9 else f"{self.weights / 1e6:,.1f} MB"
        seconds, what, source = _WARM_UPS.get(self.engine, _WARM_UP)
        return (
            f"{size} of weights at {self.rate:g} GB/s take {self.load_s} s, {what} {seconds} s ({source}); "
            f"{_SLACK:g} times the sum is waited for: {self.startup_s} s"
        )


def sizes(profile: Profile, rate: float) -> Sizes:
    """What `profile` needs when weights are read at `rate` GB/s."""
    from nemolab import models

    weights = models.find(profile.model).size
    load = math.ceil(weights / (rate * 1e9))
    gpus = profile.hardware.gpus_per_node
    # Each worker holds its libraries, and the loader a part of the checkpoint in memory at a time.
    memory = 16 + 8 * gpus + weights / 4 / profile.hardware.nodes / GIB
    warm_up, *_ = _WARM_UPS.get(profile.engine, _WARM_UP)
    return Sizes(
        engine=profile.engine,
        weights=weights,
        rate=rate,
        load_s=load,
        startup_s=_up(_SLACK * (load + warm_up), 60),
        memory_gib=_up(memory, 8),
        cpus=2 + 2 * max(1, gpus),
        storage_gib=_up(weights * 1.25 / GIB + 30, 10),
    )


def _up(value: float, step: int) -> int:
    return math.ceil(value / step) * step
