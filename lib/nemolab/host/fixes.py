"""Fixes that need root: rendered as text with risk and undo, never applied.

Steps follow NVIDIA's Driver Installation Guide (r580), the Container Toolkit's install guide and the systemd manual.
The distribution's package manager is used, because it handles DKMS, signatures and kernel updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nemolab.core.finding import Finding
from nemolab.host.facts import HostFacts
from nemolab.host.fix import Fix

_DRIVER_GUIDE = "NVIDIA Driver Installation Guide, r580"
_TOOLKIT_GUIDE = "NVIDIA Container Toolkit, install guide"
_KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"


def family(host: HostFacts) -> str:
    """`debian`, `rhel` or `unknown`, by the name of the distribution."""
    name = (host.system.os or "").lower()
    if any(word in name for word in ("debian", "ubuntu")):
        return "debian"
    return "rhel" if any(word in name for word in ("red hat", "rocky", "alma", "centos", "fedora")) else "unknown"


def _initramfs(host: HostFacts) -> str:
    return {"debian": "update-initramfs -u", "rhel": "dracut --force"}.get(family(host), "# rebuild the initramfs")


def nouveau(host: HostFacts) -> Fix:
    """Keep nouveau from taking the GPU."""
    return Fix(
        "nouveau",
        "Keep the nouveau module from loading",
        ("H-NOUVEAU",),
        (_initramfs(host), "systemctl reboot"),
        "no graphical console from the GPU until NVIDIA's driver is there; one reboot",
        f"rm /etc/modprobe.d/blacklist-nouveau.conf; {_initramfs(host)}; reboot",
        "`lsmod | grep nouveau` prints nothing",
        f"{_DRIVER_GUIDE}, Disabling nouveau",
        {"/etc/modprobe.d/blacklist-nouveau.conf": "blacklist nouveau\noptions nouveau modeset=0\n"},
    )


def driver(host: HostFacts) -> Fix:
    """Install NVIDIA's driver from NVIDIA's repository, with open kernel modules."""
    steps = {
        "debian": (
            "apt-get update && apt-get install -y wget linux-headers-$(uname -r)",
            '. /etc/os-release && case "$ID" in ubuntu) d="ubuntu$(echo "$VERSION_ID" | tr -d .)" ;; '
            '*) d="debian$VERSION_ID" ;; esac',
            'a="$(uname -m | sed s/aarch64/sbsa/)"',
            'wget "https://developer.download.nvidia.com/compute/cuda/repos/$d/$a/cuda-keyring_1.1-1_all.deb"',
            "dpkg -i cuda-keyring_1.1-1_all.deb && apt-get update",
            "apt-get install -y nvidia-open",
        ),
        "rhel": (
            "dnf install -y kernel-devel-matched kernel-headers",
            '. /etc/os-release && a="$(uname -m | sed s/aarch64/sbsa/)" && v="${VERSION_ID%%.*}"',
            'dnf config-manager --add-repo "https://developer.download.nvidia.com/compute/cuda/repos/rhel$v/$a/cuda-rhel$v.repo"',
            "dnf clean all && dnf install -y nvidia-open",
        ),
    }.get(family(host), ("# this distribution is not known here: follow the guide for it",))
    signed = host.security.secure_boot
    enrol = ("mokutil --import /var/lib/dkms/mok.pub  # Secure Boot is on: enrol DKMS's key at the next boot",)
    return Fix(
        "driver",
        "Install NVIDIA's driver from its package repository",
        ("H-DRIVER", "H-DRIVER-MISMATCH", "H-SECURE-BOOT", "H-GPU"),
        (*steps, *(enrol if signed else ()), "systemctl reboot"),
        "a new kernel module; running GPU work ends; with Secure Boot its key must be enrolled by hand at the console",
        "apt-get purge 'nvidia-*' cuda-keyring (dnf remove 'nvidia-*'), then reboot",
        "`nvidia-smi` lists the GPUs and a driver of 580 or newer",
        _DRIVER_GUIDE,
        {},
    )


def toolkit(host: HostFacts) -> Fix:
    """Install the container toolkit and register its runtime with Docker."""
    base = "https://nvidia.github.io/libnvidia-container"
    steps = {
        "debian": (
            "apt-get update && apt-get install -y --no-install-recommends curl gnupg2",
            f"curl -fsSL {base}/gpgkey | gpg --dearmor -o {_KEYRING}",
            f"curl -fsSL {base}/stable/deb/nvidia-container-toolkit.list "
            f"| sed 's#deb https://#deb [signed-by={_KEYRING}] https://#g' "
            "> /etc/apt/sources.list.d/nvidia-container-toolkit.list",
            "apt-get update && apt-get install -y nvidia-container-toolkit",
        ),
        "rhel": (
            f"curl -fsSL {base}/stable/rpm/nvidia-container-toolkit.repo "
            "> /etc/yum.repos.d/nvidia-container-toolkit.repo",
            "dnf install -y nvidia-container-toolkit",
        ),
    }.get(family(host), ("# this distribution is not known here: follow the guide for it",))
    return Fix(
        "toolkit",
        "Install the NVIDIA Container Toolkit and register it with Docker",
        ("H-TOOLKIT", "H-RUNTIME"),
        (*steps, "nvidia-ctk runtime configure --runtime=docker", "systemctl restart docker"),
        "Docker restarts: containers without a restart policy stay down; /etc/docker/daemon.json is changed",
        "take the nvidia entry out of /etc/docker/daemon.json, remove the package, restart docker",
        "`docker run --rm --gpus all ubuntu nvidia-smi -L` lists the GPUs",
        _TOOLKIT_GUIDE,
        {},
    )


def docker(host: HostFacts) -> Fix:
    """Install Docker from the distribution."""
    step = {"debian": "apt-get update && apt-get install -y docker.io", "rhel": "dnf install -y moby-engine"}
    return Fix(
        "docker",
        "Install Docker from the distribution's packages",
        ("H-DOCKER",),
        (step.get(family(host), "# install Docker 24 or newer"), "systemctl enable --now docker"),
        "a service that runs as root; whoever is in its group `docker` is root too",
        "systemctl disable --now docker, then remove the package",
        "`docker version` prints a server of 24 or newer",
        "Debian and Fedora packages; NVIDIA NIM prerequisites (Docker 24)",
        {},
    )


def uvm(host: HostFacts) -> Fix:
    """Create the UVM device nodes now and at every boot."""
    return Fix(
        "uvm",
        "Load nvidia-uvm and create its device nodes",
        ("H-UVM",),
        ("modprobe nvidia-uvm", "nvidia-modprobe -u -c 0"),
        "none: the module belongs to the driver",
        "rm /etc/modules-load.d/nvidia-uvm.conf",
        "`ls /dev/nvidia-uvm /dev/nvidia-uvm-tools` lists both",
        "NVIDIA/nvidia-modprobe; systemd modules-load.d",
        {"/etc/modules-load.d/nvidia-uvm.conf": "nvidia-uvm\n"},
    )


def persistence(host: HostFacts) -> Fix:
    """Keep the driver's state while nothing uses the GPUs."""
    return Fix(
        "persistence",
        "Keep GPUs initialised between jobs",
        ("H-PERSISTENCE",),
        ("systemctl enable --now nvidia-persistenced",),
        "a few watts more when idle",
        "systemctl disable --now nvidia-persistenced",
        "`nvidia-smi --query-gpu=persistence_mode --format=csv` prints Enabled",
        "NVIDIA Driver Persistence",
        {},
    )


def limits(host: HostFacts) -> Fix:
    """More open files and unlimited locked memory for logins; services take theirs from their unit."""
    lines = "".join(
        f"* {kind} {what}\n" for what in ("nofile 1048576", "memlock unlimited") for kind in ("soft", "hard")
    )
    return Fix(
        "limits",
        "Raise the limits of open files and locked memory",
        ("H-NOFILE", "H-MEMLOCK"),
        (),
        "every login may hold more files and lock more memory",
        "rm /etc/security/limits.d/90-nemolab.conf",
        "a new login prints 1048576 for `ulimit -n`; services need LimitNOFILE= in their unit",
        "limits.conf(5)",
        {"/etc/security/limits.d/90-nemolab.conf": lines},
    )


def clock(host: HostFacts) -> Fix:
    """Synchronise the clock."""
    return Fix(
        "clock",
        "Synchronise the clock",
        ("H-CLOCK",),
        ("timedatectl set-ntp true",),
        "the clock may jump once",
        "timedatectl set-ntp false",
        "`timedatectl show -p NTPSynchronized` prints yes after a minute",
        "timedatectl(1)",
        {},
    )


ALL: dict[str, Callable[[HostFacts], Fix]] = {
    "nouveau": nouveau,
    "driver": driver,
    "docker": docker,
    "toolkit": toolkit,
    "uvm": uvm,
    "persistence": persistence,
    "limits": limits,
    "clock": clock,
}


def fixes_for(host: HostFacts, findings: Iterable[Finding]) -> tuple[Fix, ...]:
    """The fixes that answer these findings, in the order in which they are to be applied."""
    codes = {finding.code for finding in findings}
    if host.containers.docker_client:
        codes.discard("H-DOCKER")  # installed; it is not running, or not open to this user
    if host.gpus == ():
        codes.discard("H-GPU")  # no device: no driver would make one
    return tuple(fix for make in ALL.values() if codes & set((fix := make(host)).codes))
