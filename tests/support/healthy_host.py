"""A host in good health, as data: checks are tried by spoiling one fact at a time."""

from __future__ import annotations

from dataclasses import replace

from nemolab.host.facts import (
    Clock,
    Containers,
    Cpu,
    Disk,
    Driver,
    Gpu,
    HostFacts,
    Limit,
    Limits,
    Link,
    Memory,
    Network,
    Port,
    Security,
    Software,
    System,
)

GIB = 1 << 30


def healthy_gpu(index: int) -> Gpu:
    """One H200 that idles."""
    return Gpu(
        index=index,
        name="NVIDIA H200",
        compute_capability="9.0",
        bus=f"00000000:{index + 1:02X}:00.0",
        memory_total=143_771 << 20,
        memory_free=143_000 << 20,
        memory_reserved=600 << 20,
        unified_memory=False,
        pcie_generation=5,
        pcie_generation_max=5,
        pcie_width=16,
        pcie_width_max=16,
        nvlinks_active=18,
        nvlinks=18,
        numa_node=0,
        power_limit=700.0,
        power_limit_default=700.0,
        power_limit_min=200.0,
        power_limit_max=700.0,
        temperature=35,
        clock_event_reasons=("GpuIdle",),
        performance_state="P0",
        ecc=True,
        ecc_uncorrected=0,
        rows_remap_pending=False,
        rows_remap_failed=False,
        mig=False,
        persistence=True,
        compute_mode="Default",
        utilisation=0,
        processes=(),
    )


def healthy_host() -> HostFacts:
    """Two H200 on a machine that lacks nothing."""
    gpus = (healthy_gpu(0), healthy_gpu(1))
    disks = tuple(
        Disk(role, "ext4", 4000 * 10**9, 3000 * 10**9, 10**8, False, False) for role in ("lab", "models", "tmp")
    )
    return HostFacts(
        system=System("Ubuntu 24.04.2 LTS", "6.8.0-60-generic", "x86_64", "HGX", "none", "none"),
        cpu=Cpu("Xeon", 96, 48, 2, 96.0, None, "performance", 0.5),
        memory=Memory(total=1024 * GIB, available=1000 * GIB, swap_total=0, swap_free=0),
        limits=Limits(Limit(65536, 1048576), Limit(-1, -1), Limit(4096, 4096), Limit(8 << 20, -1)),
        disks=(*disks, Disk("shm", "tmpfs", 512 * GIB, 512 * GIB, None, False, None)),
        network=Network(ports=(Port(8000, True),), rdma_devices=(), firewall="none seen", proxy=False),
        clock=Clock(True, "timedatectl"),
        software=Software("3.12.3", True, {"docker": True}, {}),
        containers=Containers("28.0.1", True, None, "1.17.8", True, "runc", 0),
        driver=Driver(
            version="580.95.05",
            cuda="13.0",
            module_loaded=True,
            module_version="580.95.05",
            uvm_loaded=True,
            nouveau_loaded=False,
            device_nodes=("nvidia-nvswitch0", "nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"),
            fabric_manager="active",
        ),
        security=Security(secure_boot=False, hf_token=True),
        gpus=gpus,
        links=(Link(0, 1, "NV18", True),),
    )


def spoil_gpu(host: HostFacts, **changes: object) -> HostFacts:
    """`host` with its second GPU changed."""
    assert host.gpus
    return replace(host, gpus=(host.gpus[0], replace(host.gpus[1], **changes)))  # type: ignore[arg-type]
