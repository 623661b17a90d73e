"""How long a start takes, and what a machine must have for it: assumptions stated, nothing hidden.

A start reads the weights once, then compiles, profiles and captures graphs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nemolab.engines.profile import Profile

# From process start to the first answer, without reading weights: Nano, vLLM 0.22.0, one H200, cold caches, 165 s in
# all of which 1.6 s were dummy weights.
WARM_UP_S = 165
_SLACK = 2.0  # estimates are no better; a start that is cut off costs all of it again
_GIB = 1 << 30


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
        return (
            f"{size} of weights at {self.rate:g} GB/s take {self.load_s} s, compilation and "
            f"warm-up {WARM_UP_S} s (measured: Nano, vLLM 0.22.0, H200); {_SLACK:g} times the sum is waited for: "
            f"{self.startup_s} s"
        )


def sizes(profile: Profile, rate: float) -> Sizes:
    """What `profile` needs when weights are read at `rate` GB/s."""
    from nemolab import models

    weights = models.find(profile.model).size
    load = math.ceil(weights / (rate * 1e9))
    gpus = profile.hardware.gpus_per_node
    # Each worker holds its libraries, and the loader a part of the checkpoint in memory at a time.
    memory = 16 + 8 * gpus + weights / 4 / profile.hardware.nodes / _GIB
    return Sizes(
        weights=weights,
        rate=rate,
        load_s=load,
        startup_s=_up(_SLACK * (load + WARM_UP_S), 60),
        memory_gib=_up(memory, 8),
        cpus=2 + 2 * max(1, gpus),
        storage_gib=_up(weights * 1.25 / _GIB + 30, 10),
    )


def _up(value: float, step: int) -> int:
    return math.ceil(value / step) * step
