"""NVIDIA's driver from outside NVML: modules, device nodes, signatures, nouveau, fabric manager."""

from __future__ import annotations

import re

from nemolab.host.facts import Driver
from nemolab.host.probe import Probe

_NVIDIA = "0x10de"


def driver(probe: Probe) -> Driver:
    """What the kernel and the package manager know of the driver; NVML adds version and CUDA."""
    modules = _modules(probe)
    about = probe.read("/proc/driver/nvidia/version") or ""
    found = re.search(r"Kernel Module(?: for \S+)?\s+([\d.]+)", about)
    version = probe.read("/sys/module/nvidia/version") or (found.group(1) if found else None)
    nodes = probe.names("/dev")
    state = probe.run("systemctl", "is-active", "nvidia-fabricmanager")
    kind = "open" if "Open Kernel Module" in about else "proprietary" if about else None
    return Driver(
        version=version,
        module_loaded=None if modules is None else "nvidia" in modules or bool(about),
        module_version=version,
        module_kind=kind,
        module_signer=probe.output("modinfo", "-F", "signer", "nvidia") or None,
        uvm_loaded=None if modules is None else "nvidia_uvm" in modules,
        nouveau_loaded=None if modules is None else "nouveau" in modules,
        device_nodes=None if nodes is None else tuple(name for name in nodes if name.startswith("nvidia")),
        fabric_manager=state.out.strip() or None if state is not None else None,
        dkms=_dkms(probe),
    )


def _modules(probe: Probe) -> frozenset[str] | None:
    """Loaded and built-in kernel modules."""
    names = probe.names("/sys/module")
    if names is not None:
        return frozenset(names)
    text = probe.read("/proc/modules")
    return None if text is None else frozenset(line.split(" ", 1)[0] for line in text.splitlines())


def _dkms(probe: Probe) -> str | None:
    text = probe.output("dkms", "status")
    rows = [line for line in (text or "").splitlines() if line.startswith("nvidia")]
    return rows[0] if rows else None


def nvidia_devices(probe: Probe) -> int | None:
    """NVIDIA display or 3D controllers on the PCI bus, driver or not; None when the bus cannot be read."""
    names = probe.names("/sys/bus/pci/devices")
    if names is None:
        return None
    kinds = (
        (probe.read(f"/sys/bus/pci/devices/{name}/vendor"), probe.read(f"/sys/bus/pci/devices/{name}/class") or "")
        for name in names
    )
    return sum(vendor == _NVIDIA and kind.startswith("0x03") for vendor, kind in kinds)
