"""Facts of a host, as data. `None` always means *unknown*: nobody could be asked, or the answer made no sense.

Nothing here names a person or a machine: no host name, no user, no serial number, no address, no secret.
Sizes are bytes, rates bytes a second, temperatures degrees Celsius, power watts, clocks MHz.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nemolab.core.errors import UsageError

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that could not be had, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class System:
    """Operating system and machine class."""

    os: str | None = None  # "Debian GNU/Linux 12 (bookworm)"
    kernel: str | None = None
    architecture: str | None = None  # "x86_64", "aarch64"
    product: str | None = None  # DMI or device-tree product, such as "NVIDIA_DGX_Spark"
    virtual: str | None = None  # "none", "kvm", "wsl", ...
    container: str | None = None  # "none", "docker", "podman", "kubernetes", ...


@dataclass(frozen=True, slots=True)
class Cpu:
    """Processors. `usable` is what this process gets: the least of affinity and cgroup quota."""

    model: str | None = None
    logical: int | None = None
    physical: int | None = None
    sockets: int | None = None
    usable: float | None = None
    quota: float | None = None  # cores, by cgroup; None also when there is no limit
    governor: str | None = None
    load_1m: float | None = None


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node. A node without CPUs is memory of a device (Grace machines show GPU memory so)."""

    node: int
    cpus: str
    memory: int | None


@dataclass(frozen=True, slots=True)
class Memory:
    """Host memory. `limit` and `limit_used` are the cgroup's; None when there is no limit."""

    total: int | None = None
    available: int | None = None
    swap_total: int | None = None
    swap_free: int | None = None
    limit: int | None = None
    limit_used: int | None = None
    hugepages_total: int | None = None
    hugepages_free: int | None = None
    hugepage_size: int | None = None
    transparent_hugepages: str | None = None  # "always", "madvise", "never"
    numa: tuple[NumaNode, ...] | None = None

    @property
    def usable(self) -> int | None:
        """What a new process can take before the kernel or the cgroup stops it."""
        left = None if self.limit is None else max(0, self.limit - (self.limit_used or 0))
        known = [value for value in (self.available, left) if value is not None]
        return min(known) if known else None


@dataclass(frozen=True, slots=True)
class Limit:
    """A resource limit; -1 is unlimited."""

    soft: int
    hard: int


@dataclass(frozen=True, slots=True)
class Limits:
    """`ulimit`s of this process."""

    nofile: Limit | None = None
    memlock: Limit | None = None
    nproc: Limit | None = None
    stack: Limit | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system behind a folder, named by what the folder is for."""

    role: str  # "lab", "models", "tmp", "shm"
    filesystem: str | None = None
    total: int | None = None
    free: int | None = None
    inodes_free: int | None = None
    read_only: bool | None = None
    rotational: bool | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port on loopback. `holder` is the program's name when the kernel tells us."""

    number: int
    free: bool | None
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface, without its address. Speed in Mbit/s."""

    name: str
    up: bool | None
    speed: int | None
    kind: str  # "ethernet", "infiniband"


@dataclass(frozen=True, slots=True)
class Network:
    """Ports asked for, interfaces, and what filters packets."""

    ports: tuple[Port, ...] = ()
    interfaces: tuple[Interface, ...] | None = None
    rdma_devices: tuple[str, ...] | None = None
    firewall: str | None = None  # "none seen", "nftables", "ufw", ...
    proxy: bool | None = None  # a proxy variable is set: loopback must be in NO_PROXY
    loopback_unproxied: bool | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """Whether the clock is kept right, and by what."""

    synchronised: bool | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Software:
    """What is installed that the lab or an engine uses. A version of None: not found, or it did not answer."""

    python: str | None = None
    virtual_environment: bool | None = None
    tools: dict[str, bool] | None = None
    packages: dict[str, str] | None = None  # Python packages that engines trip over


@dataclass(frozen=True, slots=True)
class Containers:
    """Container engine and NVIDIA's toolkit."""

    docker: str | None = None  # server version; None: no server answered
    docker_client: bool | None = None
    podman: str | None = None
    toolkit: str | None = None  # nvidia-ctk
    nvidia_runtime: bool | None = None  # registered with docker
    default_runtime: str | None = None
    cdi_specs: int | None = None


@dataclass(frozen=True, slots=True)
class Driver:
    """NVIDIA's driver, its kernel modules, and what keeps a module from loading."""

    version: str | None = None
    cuda: str | None = None  # highest CUDA version that the driver supports, "13.0"
    module_loaded: bool | None = None
    module_version: str | None = None  # of the loaded kernel module
    module_kind: str | None = None  # "open", "proprietary"
    module_signer: str | None = None
    uvm_loaded: bool | None = None
    nouveau_loaded: bool | None = None
    device_nodes: tuple[str, ...] | None = None
    fabric_manager: str | None = None  # systemd state, "active"
    dkms: str | None = None
    nvml_error: str | None = None  # NVML's own words when it could not start


@dataclass(frozen=True, slots=True)
class Security:
    """Secure Boot, kernel lockdown, and the presence (never the value) of tokens."""

    secure_boot: bool | None = None
    lockdown: str | None = None
    module_signatures_enforced: bool | None = None
    selinux: str | None = None
    hf_token: bool | None = None
    ngc_api_key: bool | None = None


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    name: str | None
    memory: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as NVML reports it."""

    index: int
    name: str
    compute_capability: str | None = None  # "9.0"
    bus: str | None = None  # PCI address
    memory_total: int | None = None
    memory_free: int | None = None
    memory_reserved: int | None = None
    unified_memory: bool | None = None  # shares the host's memory: NVML's figures are absent or meaningless
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    nvlinks_active: int | None = None
    nvlinks: int | None = None
    nvlink_version: str | None = None
    numa_node: int | None = None
    power_draw: float | None = None
    power_limit: float | None = None
    power_limit_default: float | None = None
    power_limit_min: float | None = None
    power_limit_max: float | None = None
    clock_sm: int | None = None
    clock_sm_max: int | None = None
    clock_memory: int | None = None
    clock_memory_max: int | None = None
    temperature: int | None = None
    temperature_slowdown: int | None = None
    fan_percent: int | None = None
    clock_event_reasons: tuple[str, ...] | None = None
    performance_state: str | None = None
    ecc: bool | None = None
    ecc_uncorrected: int | None = None
    rows_remap_pending: bool | None = None
    rows_remap_failed: bool | None = None
    mig: bool | None = None
    mig_devices: int | None = None
    persistence: bool | None = None
    compute_mode: str | None = None
    utilisation: int | None = None
    processes: tuple[GpuProcess, ...] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """How two GPUs reach each other: `path` as `nvidia-smi topo -m` spells it (NV18, PIX, PXB, PHB, NODE, SYS)."""

    a: int
    b: int
    path: str | None
    peer_access: bool | None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Everything known of a host. `gpus` is None when NVML could not be asked, () when there is none."""

    schema: int = SCHEMA
    system: System = System()
    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    limits: Limits = Limits()
    disks: tuple[Disk, ...] = ()
    network: Network = Network()
    clock: Clock = Clock()
    software: Software = Software()
    containers: Containers = Containers()
    driver: Driver = Driver()
    security: Security = Security()
    gpus: tuple[Gpu, ...] | None = None
    links: tuple[Link, ...] | None = None
    unknown: tuple[Unknown, ...] = ()

    def disk(self, role: str) -> Disk | None:
        """The disk of that role."""
        return next((disk for disk in self.disks if disk.role == role), None)

    def as_dict(self) -> dict[str, Any]:
        """The facts as JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Any, *, where: str | None = None) -> HostFacts:
        """Facts from what `as_dict` gave, as read from JSON.

        Raises:
            UsageError: not facts of this schema.
        """
        from pydantic import TypeAdapter, ValidationError

        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise UsageError(
                f"not host facts of schema {SCHEMA}", where=where, fix="record them again: python -m nemolab.host"
            )
        try:
            return TypeAdapter(cls).validate_python(document)
        except ValidationError as error:
            first = error.errors()[0]
            at = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"not host facts: {at}: {first['msg']}", where=where) from None
