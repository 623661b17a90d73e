"""Requirements against the machine: processors, memory, limits, disks, network, clock, tools."""

from __future__ import annotations

from collections.abc import Iterator

from nemolab.core.finding import Finding
from nemolab.core.sizes import GIB, gib
from nemolab.host.facts import HostFacts
from nemolab.host.requirements import Requirements, version
from nemolab.host.say import error, info, unknown, warning
from nemolab.host.storage import NETWORK_FILESYSTEMS

_PYTHON = (3, 11)


def cores(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-CORES."""
    usable = host.cpu.usable
    if usable is None:
        yield unknown("H-CORES", "the number of usable cores is not known")
        return
    if usable < need.cores:
        why = f" (a cgroup limits it to {host.cpu.quota:g})" if host.cpu.quota else ""
        yield warning(
            "H-CORES",
            f"{usable:g} cores usable{why}, {need.engine} wants {need.cores:g}: server and client starve each other",
            "use a larger machine or raise the container's CPU limit",
        )
    load = host.cpu.load_1m
    if load is not None and load > usable:
        yield warning(
            "H-LOAD",
            f"load average {load:.1f} on {usable:g} cores before anything was started",
            "end other work first: latencies measured beside it say nothing",
        )


def memory(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-MEMORY, H-CGROUP, H-SWAP."""
    usable = host.memory.usable
    if usable is None:
        yield unknown("H-MEMORY", "free memory is not known")
    elif usable < need.memory:
        bound = host.memory.limit is not None and usable < (host.memory.available or usable + 1)
        yield error(
            "H-CGROUP" if bound else "H-MEMORY",
            f"{gib(usable)} of memory free{' under the cgroup limit' if bound else ''}, {gib(need.memory)} needed",
            "raise the container's memory limit" if bound else "end other programs, or use a larger machine",
            need.sources.get("memory", ""),
        )
    swap, left = host.memory.swap_total, host.memory.swap_free
    if swap and left is not None and swap - left > GIB:
        yield warning(
            "H-SWAP", f"{gib(swap - left)} are swapped out: the machine is or was short of memory", "free memory first"
        )


def limits(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-NOFILE, H-MEMLOCK."""
    nofile = host.limits.nofile
    if nofile is None:
        yield unknown("H-NOFILE", "the limit of open files is not known")
    elif 0 <= nofile.hard < need.nofile:
        yield warning(
            "H-NOFILE",
            f"at most {nofile.hard} open files, {need.nofile} wanted: many connections will be refused",
            f"start from a shell with `ulimit -n {need.nofile}`; for a container `--ulimit nofile={need.nofile}`",
            need.sources.get("nofile", ""),
        )
    memlock = host.limits.memlock
    if memlock is not None and memlock.hard >= 0 and host.network.rdma_devices:
        yield warning(
            "H-MEMLOCK",
            f"locked memory is limited to {gib(memlock.hard)}, and RDMA registers whole buffers",
            "`ulimit -l unlimited`; for a container `--ulimit memlock=-1`",
        )


def shared_memory(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-SHM."""
    shm = host.disk("shm")
    if not need.shm:
        return
    if shm is None or shm.free is None:
        yield unknown("H-SHM", "the size of /dev/shm is not known")
    elif shm.free < need.shm:
        yield error(
            "H-SHM",
            f"/dev/shm has {gib(shm.free)} free, {gib(need.shm)} wanted",
            "docker: `--ipc=host` or `--shm-size=16g`; Kubernetes: an emptyDir with medium Memory",
            need.sources.get("shm", ""),
        )


def disks(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-DISK, H-DISK-READONLY, H-DISK-INODES, H-DISK-NETWORK."""
    for role, wanted in need.disk.items():
        disk = host.disk(role)
        where = f"disk of {role}"
        if disk is None or disk.free is None:
            yield unknown("H-DISK", f"free space for {role} is not known", where=where)
            continue
        if disk.read_only:
            yield error("H-DISK-READONLY", "the file system is read-only", "choose another folder", where=where)
        if disk.free < wanted:
            yield error(
                "H-DISK",
                f"{disk.free / 1e9:,.1f} GB free, {wanted / 1e9:,.1f} GB needed",
                "free space, or point HF_HOME at a larger disk" if role == "models" else "free space",
                need.sources.get(f"disk.{role}", ""),
                where=where,
            )
        if disk.inodes_free is not None and disk.inodes_free < 10_000:
            yield error("H-DISK-INODES", f"only {disk.inodes_free} inodes free", "remove small files", where=where)
        if role == "models" and (disk.filesystem in NETWORK_FILESYSTEMS or disk.rotational):
            kind = disk.filesystem if disk.filesystem in NETWORK_FILESYSTEMS else "a rotating disk"
            yield warning("H-DISK-SLOW", f"checkpoints lie on {kind}: loads take long", "use local NVMe", where=where)


def network(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-PORT, H-PROXY."""
    known = {port.number: port for port in host.network.ports}
    for number in need.ports:
        port = known.get(number)
        if port is None or port.free is None:
            yield unknown("H-PORT", f"whether port {number} is free is not known")
        elif not port.free:
            by = f" by {port.holder}" if port.holder else ""
            yield error("H-PORT", f"port {number} is taken{by}", "stop that server or choose another port")
    if host.network.proxy and not host.network.loopback_unproxied:
        yield warning(
            "H-PROXY",
            "a proxy is set and 127.0.0.1 is not exempt: requests to a local server may go to the proxy",
            "set NO_PROXY=127.0.0.1,localhost",
        )


def clock(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-CLOCK."""
    if host.clock.synchronised is None:
        what = "whether the clock is synchronised is not known"
        if need.clock:
            yield unknown("H-CLOCK", what, "install chrony or systemd-timesyncd")
        else:
            yield info("H-CLOCK", f"{what}; one machine alone does not need it")
    elif not host.clock.synchronised:
        yield warning("H-CLOCK", "the clock is not synchronised", "`timedatectl set-ntp true`, or start chronyd")


def tools(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-PYTHON, H-PACKAGES, H-TOKEN."""
    have = version(host.software.python)
    if have is None:
        yield unknown("H-PYTHON", "the Python version is not known")
    elif have[:2] < _PYTHON:
        yield error("H-PYTHON", f"Python {host.software.python}, 3.11 needed", "install Python 3.11 or newer")
    packages = host.software.packages or {}
    fastapi, meter = version(packages.get("fastapi")), version(packages.get("prometheus-fastapi-instrumentator"))
    if "vllm" in packages and fastapi and meter and fastapi >= (0, 138) and meter[:1] == (8,):
        yield error(
            "H-PACKAGES",
            f"fastapi {packages['fastapi']} with prometheus-fastapi-instrumentator "
            f"{packages['prometheus-fastapi-instrumentator']}: every API route answers 500, /health too",
            "install fastapi==0.136.3, or use a pinned image",
            "measured: vLLM 0.22.0 on H200",
        )
    if need.engine == "vllm" and "flashinfer-python" in packages and "flashinfer-cubin" not in packages:
        yield warning(
            "H-CUBIN",
            "flashinfer without flashinfer-cubin: kernels are built at start, over 6 minutes",
            "install flashinfer-cubin of the same version, or pass --moe-backend triton",
            "measured: vLLM 0.22.0 on H200",
        )
    token = host.security.hf_token
    if need.hf_token and not token:
        make = unknown if token is None else error
        yield make("H-TOKEN", "no Hugging Face token is set, and the checkpoint is gated", "set HF_TOKEN")
    elif need.hf_token is None and token is False and need.engine != "llamacpp":
        yield info("H-TOKEN", "no Hugging Face token is set; sources disagree whether these checkpoints are gated")


CHECKS = (cores, memory, limits, shared_memory, disks, network, clock, tools)
