"""Requirements against GPUs: presence, memory, leftovers, driver, container runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nemolab.core.finding import Finding
from nemolab.core.sizes import gib
from nemolab.host.facts import Gpu, HostFacts
from nemolab.host.requirements import Requirements, version
from nemolab.host.say import error, info, unknown, warning

_NVML = "NVML, nvml.h (nvidia-ml-py 13)"


def _where(gpu: Gpu) -> str:
    return f"GPU {gpu.index}"


def present(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-GPU, H-GPU-MIXED, H-CAPABILITY."""
    gpus = host.gpus
    if gpus is None:
        why = host.driver.nvml_error or "NVML was not asked"
        if need.gpus:
            yield unknown("H-GPU", f"GPUs could not be listed: {why}", "`nemolab host --fixes` lists what to look at")
        else:
            yield info("H-GPU", f"GPUs could not be listed, and none is needed: {why}")
        return
    if len(gpus) < need.gpus:
        yield error(
            "H-GPU",
            f"{len(gpus)} GPUs, {need.gpus} needed",
            "use another host, a smaller layout or the embedded engine",
        )
    if need.gpus > 1 and len({(gpu.name, gpu.memory_total) for gpu in gpus[: need.gpus]}) > 1:
        names = ", ".join(sorted({gpu.name for gpu in gpus[: need.gpus]}))
        yield error(
            "H-GPU-MIXED",
            f"the GPUs differ ({names}): tensor parallel ranks wait for the slowest and size for the smallest",
            "choose equal GPUs with CUDA_VISIBLE_DEVICES",
        )
    lowest = version(need.compute_capability)
    for gpu in gpus if need.gpus else ():
        has = version(gpu.compute_capability)
        if lowest and has is None:
            yield unknown("H-CAPABILITY", "compute capability is not known", where=_where(gpu))
        elif lowest and has and has < lowest:
            yield error(
                "H-CAPABILITY",
                f"{gpu.name} has compute capability {gpu.compute_capability}, {need.compute_capability} needed",
                "use a newer GPU",
                where=_where(gpu),
            )


def memory(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-UNIFIED, H-GPU-MEMORY, H-LEFTOVER."""
    for gpu in host.gpus or ():
        if gpu.unified_memory:
            yield info(
                "H-UNIFIED",
                "GPU and CPU share one memory: NVML reports none, so the host's free memory counts, and "
                "--gpu-memory-utilization stays at 0.7 to 0.85",
                "NVIDIA/dgx-spark-playbooks 0db7c141; vllm-project/recipes#879",
                _where(gpu),
            )
            free = host.memory.available
        else:
            free = gpu.memory_free
        yield from _enough(gpu, host, need, free)
        yield from _leftover(gpu)


def _enough(gpu: Gpu, host: HostFacts, need: Requirements, free: int | None) -> Iterator[Finding]:
    total = host.memory.total if gpu.unified_memory else gpu.memory_total
    share = None if total is None else int(need.gpu_memory_utilization * total)
    if not (need.gpu_memory_free or need.gpu_memory_utilization):
        return
    if free is None or share is None:
        yield unknown("H-GPU-MEMORY", "free memory is not known", where=_where(gpu))
    elif free < (wanted := max(need.gpu_memory_free, share)):
        part = f" ({need.gpu_memory_utilization:g} of the total)" if wanted == share else ""
        yield error(
            "H-GPU-MEMORY",
            f"{gib(free)} free, {gib(wanted)} wanted{part}",
            "end what holds the memory, or lower --gpu-memory-utilization",
            "vLLM 0.22.0, request_memory: free memory must reach utilisation x total",
            _where(gpu),
        )


def _leftover(gpu: Gpu) -> Iterator[Finding]:
    holders = gpu.processes or ()
    used = None
    if gpu.memory_total and gpu.memory_free is not None:
        used = gpu.memory_total - gpu.memory_free - (gpu.memory_reserved or 0)
    if holders:
        named = ", ".join(f"{one.name or 'unknown'} (pid {one.pid})" for one in holders)
        held = f" hold {gib(used)}" if used else " run"
        yield warning(
            "H-LEFTOVER",
            f"processes{held} on this GPU: {named}",
            "end them if they are left over from an earlier server; `nvidia-smi` lists them",
            "measured: vLLM 0.22.0 on H200 refuses to start beside a leftover engine",
            _where(gpu),
        )
    elif used and gpu.memory_total and used > gpu.memory_total // 50:
        yield warning(
            "H-LEFTOVER",
            f"{gib(used)} are taken and no process is visible: it runs in another container or as another user",
            "look on the host itself with `nvidia-smi`",
            _NVML,
            _where(gpu),
        )


def driver(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-DRIVER, H-DRIVER-MISMATCH, H-NOUVEAU, H-UVM, H-FABRIC."""
    if host.driver.nouveau_loaded:
        yield error(
            "H-NOUVEAU",
            "the nouveau module is loaded: NVIDIA's driver cannot take the device",
            "blacklist nouveau, rebuild the initramfs, reboot (`nemolab host --fixes`)",
            "NVIDIA Driver Installation Guide, Disabling the nouveau driver",
        )
    if not need.gpus or host.gpus == ():
        return
    have, lowest = version(host.driver.version), version(need.driver)
    if host.gpus is None and host.driver.nvml_error and "mismatch" in host.driver.nvml_error.lower():
        yield error(
            "H-DRIVER-MISMATCH",
            "the loaded kernel module and the driver's library have different versions, as after an unattended upgrade",
            "reboot, or unload and load the module",
            _NVML,
        )
    if lowest and have is None:
        yield unknown("H-DRIVER", f"the driver version is not known, {need.driver} or newer is needed")
    elif lowest and have and have < lowest:
        yield error(
            "H-DRIVER",
            f"driver {host.driver.version}, {need.driver} or newer needed",
            "install a newer driver (`nemolab host --fixes`)",
            need.sources.get("driver", ""),
        )
    nodes = host.driver.device_nodes
    if host.gpus and nodes is not None and "nvidia-uvm" not in nodes and not _wsl(host):
        yield error(
            "H-UVM",
            "/dev/nvidia-uvm is missing: CUDA cannot start",
            "on the host: `nvidia-modprobe -u -c 0`; in a container: start it with --gpus all",
            "NVIDIA/nvidia-modprobe; libnvidia-container adds the node by itself",
        )
    nvswitch = any(name.startswith("nvidia-nvswitch") for name in nodes or ())
    if nvswitch and host.driver.fabric_manager not in (None, "active"):
        yield error(
            "H-FABRIC",
            f"NVSwitches are there and nvidia-fabricmanager is {host.driver.fabric_manager}: CUDA ends with error 802",
            "install and start nvidia-fabricmanager of the driver's exact version",
            "NVIDIA Fabric Manager User Guide",
        )


def _wsl(host: HostFacts) -> bool:
    return host.system.virtual == "wsl"


def containers(host: HostFacts, need: Requirements) -> Iterator[Finding]:
    """H-DOCKER, H-TOOLKIT, H-RUNTIME, H-SECURE-BOOT."""
    if need.containers:
        yield from _at_least(
            "H-DOCKER", "Docker", host.containers.docker, need.docker, need.sources.get("docker", ""), lambda: (
                "start Docker, or give this user access to it"
                if host.containers.docker_client
                else "install Docker (`nemolab host --fixes`)"
            )
        )  # fmt: skip
        yield from _at_least(
            "H-TOOLKIT", "NVIDIA Container Toolkit", host.containers.toolkit, need.toolkit,
            need.sources.get("toolkit", ""), lambda: "install it (`nemolab host --fixes`)"
        )  # fmt: skip
        if host.containers.nvidia_runtime is False and not host.containers.cdi_specs:
            yield error(
                "H-RUNTIME",
                "Docker does not know the nvidia runtime and there is no CDI specification",
                "`nvidia-ctk runtime configure --runtime=docker`, then restart Docker",
                "NVIDIA Container Toolkit, install guide",
            )
    if need.gpus and host.security.secure_boot and not host.driver.module_loaded:
        signer = host.driver.module_signer
        signed = f"the module is signed by {signer}: enrol that key" if signer else "the module is not signed"
        yield error(
            "H-SECURE-BOOT",
            f"Secure Boot is on and the nvidia module is not loaded; {signed}",
            "`mokutil --import` the key that signed the module and reboot, or use the distribution's signed module",
            "NVIDIA Driver Installation Guide, Secure Boot",
        )


def _at_least(
    code: str, what: str, have: str | None, lowest: str, source: str, fix: Callable[[], str]
) -> Iterator[Finding]:
    if have is None:
        yield unknown(code, f"{what} did not answer" + (f", {lowest} or newer is needed" if lowest else ""), fix())
    elif (has := version(have)) and (low := version(lowest)) and has < low:
        yield error(code, f"{what} {have}, {lowest} or newer needed", f"upgrade {what}", source)


CHECKS = (present, memory, driver, containers)
