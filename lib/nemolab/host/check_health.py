"""Requirements against the state of GPUs: links, heat, power, memory errors, modes."""

from __future__ import annotations

from collections.abc import Iterator

from nemolab.core.finding import Finding
from nemolab.host.facts import Gpu, HostFacts
from nemolab.host.requirements import Requirements
from nemolab.host.say import error, info, unknown, warning

_THERMAL = {"HwThermalSlowdown", "SwThermalSlowdown"}
_POWER = {"HwPowerBrakeSlowdown", "HwSlowdown"}
_NVML = "NVML, nvml.h (nvidia-ml-py 13)"


def _where(gpu: Gpu) -> str:
    return f"GPU {gpu.index}"


def links(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-PCIE-WIDTH, H-PCIE-GEN, H-NVLINK, H-NUMA."""
    for gpu in host.gpus or ():
        now, most = gpu.pcie_width, gpu.pcie_width_max
        if now and most and now < most:
            yield warning(
                "H-PCIE-WIDTH",
                f"PCIe x{now} where the device can x{most}: loading, and traffic between GPUs without NVLink, are "
                "slower; decoding on one GPU is not",
                "use an x16 slot, reseat the card or riser, look for lane sharing in the board's manual",
                _NVML,
                _where(gpu),
            )
        generation, best = gpu.pcie_generation, gpu.pcie_generation_max
        busy = gpu.performance_state == "P0" and (gpu.utilisation or 0) > 0
        if generation and best and generation < best and busy:
            yield warning(
                "H-PCIE-GEN",
                f"PCIe generation {generation} under load where {best} is possible",
                "set the slot's link speed in the firmware",
                _NVML,
                _where(gpu),
            )
        if gpu.nvlinks and gpu.nvlinks_active is not None and gpu.nvlinks_active < gpu.nvlinks:
            yield warning(
                "H-NVLINK",
                f"{gpu.nvlinks_active} of {gpu.nvlinks} NVLinks are up",
                "`nvidia-smi nvlink -s`; check bridges, fabric manager and the kernel log for Xid 74",
                _NVML,
                _where(gpu),
            )
    if need.gpus > 1:
        nodes = {gpu.numa_node for gpu in (host.gpus or ())[: need.gpus]} - {None}
        if len(nodes) > 1:
            yield info(
                "H-NUMA",
                f"the GPUs hang on {len(nodes)} NUMA nodes: pin each worker to its GPU's node",
                "/sys/bus/pci/devices/*/numa_node; numactl(8)",
            )
        for link in host.links or ():
            if link.b < need.gpus and link.path in ("SYS", "NODE", "PHB"):
                yield info(
                    "H-TOPOLOGY",
                    f"GPUs {link.a} and {link.b} meet only at {link.path}: tensor parallel all-reduce crosses the CPU",
                    "nvidia-smi topo -m",
                )


def health(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-THERMAL, H-POWER-BRAKE, H-ECC, H-ROWS, H-PERSISTENCE, H-COMPUTE-MODE, H-MIG, H-POWER-LIMIT."""
    for gpu in host.gpus or ():
        reasons = set(gpu.clock_event_reasons or ())
        where = _where(gpu)
        if gpu.clock_event_reasons is None and need.gpus and not gpu.unified_memory:
            yield unknown("H-THERMAL", "whether clocks are throttled is not known", where=where)
        if reasons & _THERMAL:
            yield warning(
                "H-THERMAL",
                f"clocks are lowered for heat ({', '.join(sorted(reasons & _THERMAL))}, {gpu.temperature} °C)",
                "check airflow and inlet temperature; cap the power of all GPUs alike meanwhile",
                _NVML,
                where,
            )
        if reasons & _POWER:
            yield warning(
                "H-POWER-BRAKE",
                f"clocks are lowered by hardware ({', '.join(sorted(reasons & _POWER))})",
                "check power supplies and cabling",
                _NVML,
                where,
            )
        if gpu.ecc_uncorrected:
            yield error(
                "H-ECC",
                f"{gpu.ecc_uncorrected} uncorrected memory errors since the driver was loaded",
                "drain the GPU, reset it, and run `dcgmi diag -r 3`",
                "NVIDIA GPU Debug Guidelines",
                where,
            )
        if gpu.rows_remap_failed or gpu.rows_remap_pending:
            what = "failed" if gpu.rows_remap_failed else "waits for a reset"
            fix = "replace the GPU" if gpu.rows_remap_failed else "reset the GPU when it is idle, or reboot"
            yield warning("H-ROWS", f"row remapping {what}", fix, "NVIDIA GPU Memory Error Management", where)
        yield from _settings(gpu, need, where)
    yield from _power_limits(host)


def _settings(gpu: Gpu, need: Requirements, where: str) -> Iterator[Finding]:
    if gpu.mig and need.gpus:
        yield warning(
            "H-MIG",
            f"MIG is on with {gpu.mig_devices} instances: an engine sees an instance, not the GPU",
            "choose an instance by UUID, or switch MIG off when the GPU is yours",
            _NVML,
            where,
        )
    if gpu.persistence is False and need.gpus:
        yield info("H-PERSISTENCE", "persistence mode is off: every first use initialises the GPU again", _NVML, where)
    if gpu.compute_mode in ("Prohibited", "Exclusive_Process", "Exclusive_Thread"):
        prohibited = gpu.compute_mode == "Prohibited"
        yield (error if prohibited else warning)(
            "H-COMPUTE-MODE",
            f"compute mode is {gpu.compute_mode}",
            "`nvidia-smi -c DEFAULT` (root)",
            _NVML,
            where,
        )


def _power_limits(host: HostFacts) -> Iterator[Finding]:
    limits = {gpu.index: gpu.power_limit for gpu in host.gpus or () if gpu.power_limit is not None}
    if len(set(limits.values())) > 1:
        shown = ", ".join(f"GPU {index}: {watts:g} W" for index, watts in limits.items())
        yield warning(
            "H-POWER-LIMIT",
            f"power limits differ ({shown}): tensor parallel ranks wait for the slowest",
            "set one limit for all (`nemolab host --fixes` renders a unit)",
            _NVML,
        )
    for gpu in host.gpus or ():
        if gpu.power_limit and gpu.power_limit_default and gpu.power_limit < gpu.power_limit_default:
            yield info(
                "H-POWER-LIMIT",
                f"limited to {gpu.power_limit:g} W, default {gpu.power_limit_default:g} W",
                _NVML,
                _where(gpu),
            )


CHECKS = (links, health)
