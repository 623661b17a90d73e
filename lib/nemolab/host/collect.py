"""Collect the facts of this host. Sections are asked side by side, so one that hangs costs its own time-out only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

from nemolab.host import driver as driver_
from nemolab.host import machine, network, nvml, software, storage
from nemolab.host.facts import Driver, Gpu, HostFacts, Unknown
from nemolab.host.probe import Probe

_WHY = {
    "system.product": "no DMI table and no device tree",
    "cpu.governor": "the kernel exposes no frequency scaling, as in most virtual machines",
    "clock.synchronised": "neither timedatectl nor chronyc answered",
    "containers.docker": "no Docker server answered",
    "containers.toolkit": "nvidia-ctk is not installed or did not answer",
    "network.firewall": "no service manager to ask",
    "security.module_signatures_enforced": "the kernel does not say",
}
# Absent values that say "there is none", not "nobody knows".
_FINE = {
    "cpu.quota", "memory.limit", "memory.limit_used", "driver.nvml_error", "driver.dkms", "driver.module_signer",
    "driver.module_kind", "driver.module_version", "driver.version", "driver.cuda", "driver.fabric_manager",
    "security.selinux", "security.lockdown", "containers.podman", "containers.default_runtime",
    "containers.nvidia_runtime", "network.loopback_unproxied",
    "clock.source",
}  # fmt: skip


def facts(
    *, ports: Iterable[int] = (), folders: Mapping[str, Path] | None = None, probe: Probe | None = None
) -> HostFacts:
    """The facts of this host.

    Args:
        ports: TCP ports to try on loopback.
        folders: role -> folder whose disk matters; default: lab, models, tmp, shm.
        probe: how to read; a probe of another root reads a recorded tree and runs no command.
    """
    probe = probe or Probe()
    where = storage.roles() if folders is None else folders
    with ThreadPoolExecutor(max_workers=8) as pool:
        gpus = pool.submit(nvml.ask, probe)
        containers = pool.submit(software.containers, probe)
        driver = pool.submit(driver_.driver, probe)
        clock = pool.submit(machine.clock, probe)
        system = pool.submit(machine.system, probe)
        net = pool.submit(network.network, probe, tuple(filter(None, ports)))
        security = pool.submit(software.security, probe)
        found = HostFacts(
            system=system.result(),
            cpu=machine.cpu(probe),
            memory=machine.memory(probe),
            limits=machine.limits(probe),
            disks=tuple(storage.disk(probe, role, folder) for role, folder in where.items()),
            network=net.result(),
            clock=clock.result(),
            software=software.software(probe),
            containers=containers.result(),
            driver=driver.result(),
            security=security.result(),
        )
        return with_gpus(probe, found, gpus.result(), driver_.nvidia_devices(probe))


def with_gpus(probe: Probe, found: HostFacts, reply: nvml.Reply, devices: int | None) -> HostFacts:
    """`found` with what NVML said. No NVML and no NVIDIA device on the bus means no GPU; anything else is unknown."""
    none_there = reply.gpus is None and devices == 0 and not found.driver.module_loaded
    unknown = reply.gpus is None and not none_there
    gpus = () if none_there or reply.gpus is None else reply.gpus
    gpus = tuple(replace(gpu, numa_node=_numa(probe, gpu)) for gpu in gpus)
    driver = _merge(found.driver, reply, none_there)
    complete = replace(found, gpus=None if unknown else gpus, links=() if none_there else reply.links, driver=driver)
    return replace(complete, unknown=_unknown(complete))


def _numa(probe: Probe, gpu: Gpu) -> int | None:
    """NUMA node that the GPU hangs on; NVML prints PCI domains with eight digits, the kernel with four."""
    if not gpu.bus:
        return None
    node = probe.number(f"/sys/bus/pci/devices/{gpu.bus.lower()[-12:]}/numa_node")
    return node if node is not None and node >= 0 else None  # -1: the firmware does not say


def _merge(driver: Driver, reply: nvml.Reply, none_there: bool) -> Driver:
    return replace(
        driver,
        version=reply.driver or driver.version,
        cuda=reply.cuda,
        nvml_error=None if none_there else reply.error,
    )


def _unknown(found: HostFacts) -> tuple[Unknown, ...]:
    """Every fact that is missing although it could be there, with the reason where one is known."""
    rows = []
    if found.gpus is None:
        rows.append(Unknown("gpus", found.driver.nvml_error or "NVML was not asked"))
    for section in ("system", "cpu", "memory", "limits", "network", "clock", "software", "containers", "security"):
        value = getattr(found, section)
        for field in fields(value):
            name = f"{section}.{field.name}"
            if getattr(value, field.name) is None and name not in _FINE:
                rows.append(Unknown(name, _WHY.get(name, "no source on this host says so")))
    rows += [Unknown(f"disk {disk.role}", "cannot be read") for disk in found.disks if disk.total is None]
    return tuple(rows)
