"""The unit that limits the power of all GPUs alike."""

from __future__ import annotations

from nemolab.core.errors import UsageError
from nemolab.host.facts import HostFacts
from nemolab.host.fix import Fix


def power_limit(host: HostFacts, watts: float) -> Fix:
    """A unit that sets one power limit for all GPUs at boot, without a reset.

    Raises:
        UsageError: there is no GPU, or a GPU's limits do not allow that many watts or are not known.
    """
    gpus = host.gpus or ()
    if not gpus:
        raise UsageError("no GPU is known, so no power limit can be checked", where="--power-limit")
    for gpu in gpus:
        low, high = gpu.power_limit_min, gpu.power_limit_max
        if low is None or high is None:
            raise UsageError(f"GPU {gpu.index} does not say which power limits it allows", where="--power-limit")
        if not low <= watts <= high:
            raise UsageError(
                f"GPU {gpu.index} allows {low:g} to {high:g} W, not {watts:g}",
                where="--power-limit",
                fix="choose within",
            )
    usual = max(gpu.power_limit_default or gpu.power_limit_max or watts for gpu in gpus)
    unit = f"""[Unit]
Description=One power limit for all GPUs
After=nvidia-persistenced.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/nvidia-smi --persistence-mode=1
ExecStart=/usr/bin/nvidia-smi --power-limit={watts:g}
ExecStop=/usr/bin/nvidia-smi --power-limit={usual:g}

[Install]
WantedBy=multi-user.target
"""
    return Fix(
        "power-limit",
        f"Limit every GPU to {watts:g} W, now and at boot",
        ("H-POWER-LIMIT", "H-THERMAL"),
        ("systemctl daemon-reload", "systemctl enable --now nvidia-power-limit.service"),
        "prefill gets slower; all GPUs alike, because tensor parallel ranks wait for the slowest. No GPU is reset",
        f"systemctl disable --now nvidia-power-limit.service (back to {usual:g} W), then rm its file",
        f"`nvidia-smi --query-gpu=power.limit --format=csv` prints {watts:g} W for every GPU",
        "nvidia-smi manual; systemd.service(5)",
        {"/etc/systemd/system/nvidia-power-limit.service": unit},
    )
