"""System, processors, memory, limits and clock: from /proc, /sys and cgroups of both versions."""

from __future__ import annotations

import os
import platform
import re
import resource
from pathlib import PurePosixPath

from nemolab.host.facts import Clock, Cpu, Limit, Limits, Memory, NumaNode, System
from nemolab.host.probe import Probe

_NO_LIMIT = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63


def system(probe: Probe) -> System:
    """Operating system and machine class."""
    release = dict(line.split("=", 1) for line in (probe.read("/etc/os-release") or "").splitlines() if "=" in line)
    kernel = probe.read("/proc/sys/kernel/osrelease")
    product = probe.read("/sys/class/dmi/id/product_name") or probe.read("/proc/device-tree/model")
    return System(
        os=release.get("PRETTY_NAME", "").strip('"') or None,
        kernel=kernel,
        architecture=platform.machine() if probe.live else None,
        product=product,
        virtual=_virtual(probe, kernel),
        container=_container(probe),
    )


def _virtual(probe: Probe, kernel: str | None) -> str | None:
    if kernel and "microsoft" in kernel.lower():
        return "wsl"
    answer = probe.run("systemd-detect-virt", "--vm")
    if answer is not None and answer.out.strip():
        return answer.out.strip()
    info = probe.read("/proc/cpuinfo")
    if info is None:
        return None
    return "virtual machine" if re.search(r"^flags\s*:.*\bhypervisor\b", info, re.M) else None


def _container(probe: Probe) -> str | None:
    if probe.read("/proc/self/status") is None:
        return None
    if probe.at("/.dockerenv").exists():
        return "docker"
    if probe.at("/run/.containerenv").exists():
        return "podman"
    if probe.at("/var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    first = probe.read("/proc/1/cgroup") or ""
    named = re.search(r"docker|kubepods|containerd|lxc", first)
    return named.group(0) if named else "none"


def cpu(probe: Probe) -> Cpu:
    """Processors and what this process may use of them."""
    info = probe.read("/proc/cpuinfo") or ""
    models = re.findall(r"^(?:model name|Model)\s*:\s*(.+)$", info, re.M)
    logical = len(re.findall(r"^processor\s*:", info, re.M)) or None
    packages = re.findall(r"^physical id\s*:\s*(\d+)", info, re.M)
    cores = set(zip(packages, re.findall(r"^core id\s*:\s*(\d+)", info, re.M), strict=False))
    quota = _cpu_quota(probe)
    affinity = len(os.sched_getaffinity(0)) if probe.live and hasattr(os, "sched_getaffinity") else logical
    known = [float(value) for value in (affinity, quota) if value is not None]
    load = probe.read("/proc/loadavg")
    return Cpu(
        model=models[0].strip() if models else None,
        logical=logical,
        physical=len(cores) or None,
        sockets=len(set(packages)) or None,
        usable=min(known) if known else None,
        quota=quota,
        governor=probe.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load_1m=float(load.split()[0]) if load else None,
    )


def _cgroups(probe: Probe) -> dict[str, str]:
    """Folder of this process in each cgroup hierarchy: controller -> path; "" is version 2."""
    rows = (line.split(":", 2) for line in (probe.read("/proc/self/cgroup") or "").splitlines())
    return {name: row[2] for row in rows if len(row) == 3 for name in row[1].split(",")}


def _ancestors(path: str) -> list[str]:
    """`path` and all above it: a limit anywhere up binds. Inside a container only the root is visible."""
    parts = PurePosixPath(path)
    return [str(parent).strip("/") for parent in (parts, *parts.parents)]


def _cpu_quota(probe: Probe) -> float | None:
    groups = _cgroups(probe)
    found: list[float] = []
    for folder in _ancestors(groups.get("", "/")):
        text = probe.read(f"/sys/fs/cgroup/{folder}/cpu.max")
        if text and not text.startswith("max"):
            allowed, period = text.split()
            found.append(int(allowed) / int(period))
    for folder in _ancestors(groups.get("cpu", "/")):
        allowed_us = probe.number(f"/sys/fs/cgroup/cpu/{folder}/cpu.cfs_quota_us")
        period_us = probe.number(f"/sys/fs/cgroup/cpu/{folder}/cpu.cfs_period_us")
        if allowed_us and period_us and allowed_us > 0:
            found.append(allowed_us / period_us)
    return min(found) if found else None


def _memory_limit(probe: Probe) -> tuple[int | None, int | None]:
    groups = _cgroups(probe)
    found: list[tuple[int, int | None]] = []
    for folder in _ancestors(groups.get("", "/")):
        base = f"/sys/fs/cgroup/{folder}"
        if (limit := probe.number(f"{base}/memory.max")) is not None:
            found.append((limit, probe.number(f"{base}/memory.current")))
    for folder in _ancestors(groups.get("memory", "/")):
        base = f"/sys/fs/cgroup/memory/{folder}"
        if (limit := probe.number(f"{base}/memory.limit_in_bytes")) is not None and limit < _NO_LIMIT:
            found.append((limit, probe.number(f"{base}/memory.usage_in_bytes")))
    return min(found, key=lambda pair: pair[0], default=(None, None))


def memory(probe: Probe) -> Memory:
    """Host memory, cgroup limit, huge pages and NUMA nodes."""
    pairs = re.findall(r"^(\w+):\s+(\d+)( kB)?$", probe.read("/proc/meminfo") or "", re.M)
    table = {name: int(number) * (1024 if unit else 1) for name, number, unit in pairs}
    limit, used = _memory_limit(probe)
    huge = probe.read("/sys/kernel/mm/transparent_hugepage/enabled")
    chosen = re.search(r"\[(\w+)\]", huge or "")
    return Memory(
        total=table.get("MemTotal"),
        available=table.get("MemAvailable"),
        swap_total=table.get("SwapTotal"),
        swap_free=table.get("SwapFree"),
        limit=limit,
        limit_used=used,
        hugepages_total=table.get("HugePages_Total"),
        hugepages_free=table.get("HugePages_Free"),
        hugepage_size=table.get("Hugepagesize"),
        transparent_hugepages=chosen.group(1) if chosen else None,
        numa=_numa(probe),
    )


def _numa(probe: Probe) -> tuple[NumaNode, ...] | None:
    base = "/sys/devices/system/node"
    names = probe.names(base)
    if names is None:
        return None
    nodes = []
    for number in sorted(int(name[4:]) for name in names if re.fullmatch(r"node\d+", name)):
        total = re.search(r"MemTotal:\s+(\d+) kB", probe.read(f"{base}/node{number}/meminfo") or "")
        cpus = probe.read(f"{base}/node{number}/cpulist") or ""
        nodes.append(NumaNode(number, cpus, int(total.group(1)) * 1024 if total else None))
    return tuple(nodes)


def limits(probe: Probe) -> Limits:
    """Resource limits of this process; a server started from it inherits them."""
    if not probe.live:
        return Limits()

    def one(which: int) -> Limit:
        soft, hard = resource.getrlimit(which)
        return Limit(soft, hard)

    return Limits(
        nofile=one(resource.RLIMIT_NOFILE),
        memlock=one(resource.RLIMIT_MEMLOCK),
        nproc=one(resource.RLIMIT_NPROC),
        stack=one(resource.RLIMIT_STACK),
    )


def clock(probe: Probe) -> Clock:
    """Whether the clock is synchronised, by the first source that knows."""
    shown = probe.output("timedatectl", "show", "--property=NTPSynchronized", "--value")
    if shown in ("yes", "no"):
        return Clock(shown == "yes", "timedatectl")
    tracking = probe.output("chronyc", "-c", "tracking")
    if tracking:
        return Clock(not tracking.endswith("Not synchronised"), "chronyc")
    return Clock(None, None)
