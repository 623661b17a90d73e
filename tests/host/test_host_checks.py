"""Every check: silent on a healthy host, and it speaks when its fact is spoiled or unknown."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.healthy_host import GIB, spoil_gpu

from nemolab import host as lib
from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.host.facts import Disk, GpuProcess, HostFacts, Limit, Limits, Link, Port, Security
from nemolab.host.fixes import ALL, fixes_for
from nemolab.host.profiles import for_profile
from nemolab.host.requirements import for_launch, version
from nemolab.host.storage import DiskSpeed

NEED = for_launch("nim", gpus=2, gpu_memory_gib=125, disk_gb=352, ports=(8000,))
Spoil = Callable[[HostFacts], HostFacts]


def on(section: str, **changes: object) -> Spoil:
    """Change facts of one section."""
    return lambda host: replace(host, **{section: replace(getattr(host, section), **changes)})


def on_gpu(**changes: object) -> Spoil:
    """Change facts of the second GPU."""
    return lambda host: spoil_gpu(host, **changes)


def disk(role: str, **changes: object) -> Spoil:
    """Change one disk."""

    def spoil(host: HostFacts) -> HostFacts:
        disks = tuple(replace(one, **changes) if one.role == role else one for one in host.disks)  # type: ignore[arg-type]
        return replace(host, disks=disks)

    return spoil


def test_a_healthy_host_has_no_findings(healthy: HostFacts) -> None:
    assert lib.check(healthy, NEED) == ()
    assert lib.verdict(()) == "fit"


SPOILED: list[tuple[Spoil, str, Severity]] = [
    (on("cpu", usable=2.0, quota=2.0), "H-CORES", Severity.WARNING),
    (on("cpu", load_1m=200.0), "H-LOAD", Severity.WARNING),
    (on("memory", available=1 << 30), "H-MEMORY", Severity.ERROR),
    (on("memory", limit=8 * GIB, limit_used=GIB), "H-CGROUP", Severity.ERROR),
    (on("memory", swap_total=8 * GIB, swap_free=GIB), "H-SWAP", Severity.WARNING),
    (on("limits", nofile=Limit(1024, 4096)), "H-NOFILE", Severity.WARNING),
    (disk("shm", free=64 << 20), "H-SHM", Severity.ERROR),
    (disk("models", free=100 * 10**9), "H-DISK", Severity.ERROR),
    (disk("models", read_only=True), "H-DISK-READONLY", Severity.ERROR),
    (disk("lab", inodes_free=5), "H-DISK-INODES", Severity.ERROR),
    (disk("models", filesystem="nfs4"), "H-DISK-SLOW", Severity.WARNING),
    (disk("models", rotational=True), "H-DISK-SLOW", Severity.WARNING),
    (on("network", ports=(Port(8000, False, "python3"),)), "H-PORT", Severity.ERROR),
    (on("network", proxy=True, loopback_unproxied=False), "H-PROXY", Severity.WARNING),
    (on("clock", synchronised=False), "H-CLOCK", Severity.WARNING),
    (on("software", python="3.10.2"), "H-PYTHON", Severity.ERROR),
    (lambda host: replace(host, gpus=(), links=()), "H-GPU", Severity.ERROR),
    (on_gpu(name="NVIDIA H100 80GB HBM3"), "H-GPU-MIXED", Severity.ERROR),
    (on_gpu(compute_capability="7.5"), "H-CAPABILITY", Severity.ERROR),
    (on_gpu(memory_free=GIB), "H-GPU-MEMORY", Severity.ERROR),
    (on_gpu(processes=(GpuProcess(4541, "VLLM::EngineCor", 62 * GIB),)), "H-LEFTOVER", Severity.WARNING),
    (on_gpu(memory_free=80 * GIB), "H-LEFTOVER", Severity.WARNING),
    (on_gpu(unified_memory=True), "H-UNIFIED", Severity.INFO),
    (on("driver", nouveau_loaded=True), "H-NOUVEAU", Severity.ERROR),
    (on("driver", version="570.124.06"), "H-DRIVER", Severity.ERROR),
    (on("driver", device_nodes=("nvidia0", "nvidiactl")), "H-UVM", Severity.ERROR),
    (on("driver", fabric_manager="inactive"), "H-FABRIC", Severity.ERROR),
    (on_gpu(pcie_width=8), "H-PCIE-WIDTH", Severity.WARNING),
    (on_gpu(pcie_generation=1, utilisation=90), "H-PCIE-GEN", Severity.WARNING),
    (on_gpu(nvlinks_active=16), "H-NVLINK", Severity.WARNING),
    (on_gpu(numa_node=1), "H-NUMA", Severity.INFO),
    (lambda host: replace(host, links=(Link(0, 1, "SYS", True),)), "H-TOPOLOGY", Severity.INFO),
    (on_gpu(clock_event_reasons=("SwThermalSlowdown",)), "H-THERMAL", Severity.WARNING),
    (on_gpu(clock_event_reasons=("HwPowerBrakeSlowdown",)), "H-POWER-BRAKE", Severity.WARNING),
    (on_gpu(ecc_uncorrected=3), "H-ECC", Severity.ERROR),
    (on_gpu(rows_remap_pending=True), "H-ROWS", Severity.WARNING),
    (on_gpu(mig=True, mig_devices=7), "H-MIG", Severity.WARNING),
    (on_gpu(persistence=False), "H-PERSISTENCE", Severity.INFO),
    (on_gpu(compute_mode="Prohibited"), "H-COMPUTE-MODE", Severity.ERROR),
    (on_gpu(power_limit=400.0), "H-POWER-LIMIT", Severity.WARNING),
    (on("containers", docker="20.10.24"), "H-DOCKER", Severity.ERROR),
    (on("containers", toolkit="1.13.5"), "H-TOOLKIT", Severity.ERROR),
    (on("containers", nvidia_runtime=False), "H-RUNTIME", Severity.ERROR),
]


@pytest.mark.parametrize(
    ("spoil", "code", "severity"), SPOILED, ids=[f"{code}-{n}" for n, (_, code, _) in enumerate(SPOILED)]
)
def test_one_spoiled_fact_is_one_kind_of_finding(
    healthy: HostFacts, spoil: Spoil, code: str, severity: Severity
) -> None:
    found = lib.check(spoil(healthy), NEED)
    assert (code, severity) in {(finding.code, finding.severity) for finding in found}
    for finding in found:
        assert finding.message
        assert finding.fix or finding.severity in (Severity.INFO, Severity.UNKNOWN), finding.code


UNKNOWN: list[tuple[Spoil, str]] = [
    (on("cpu", usable=None), "H-CORES"),
    (on("memory", available=None), "H-MEMORY"),
    (lambda host: replace(host, limits=Limits()), "H-NOFILE"),
    (disk("models", free=None), "H-DISK"),
    (lambda host: replace(host, disks=(Disk("shm"), *host.disks[:3])), "H-SHM"),
    (on("network", ports=()), "H-PORT"),
    (on("clock", synchronised=None), "H-CLOCK"),
    (lambda host: replace(host, gpus=None), "H-GPU"),
    (on_gpu(compute_capability=None), "H-CAPABILITY"),
    (on_gpu(memory_free=None), "H-GPU-MEMORY"),
    (on_gpu(clock_event_reasons=None), "H-THERMAL"),
    (on("driver", version=None), "H-DRIVER"),
    (on("containers", docker=None), "H-DOCKER"),
    (on("containers", toolkit=None), "H-TOOLKIT"),
]


@pytest.mark.parametrize(("forget", "code"), UNKNOWN, ids=[code for _, code in UNKNOWN])
def test_what_is_not_known_is_unknown_and_never_fine(healthy: HostFacts, forget: Spoil, code: str) -> None:
    found = lib.check(forget(healthy), NEED)
    assert (code, Severity.UNKNOWN) in {(finding.code, finding.severity) for finding in found}
    assert lib.verdict(found) == "unknown"


def test_the_model_s_size_and_the_utilisation_are_asked_of_the_host(healthy: HostFacts) -> None:
    need = for_launch("vllm", model="ultra-bf16", gpus=2, gpu_memory_utilization=0.92)
    assert need.disk["models"] == 1_121_049_257_984
    assert lib.check(healthy, need) == ()
    found = lib.check(spoil_gpu(disk("models", free=10**12)(healthy), memory_free=78 * GIB), need)
    said = {finding.code: finding.message for finding in found}
    assert said["H-DISK"] == "1,000.0 GB free, 1,121.0 GB needed"
    assert said["H-GPU-MEMORY"] == "78.0 GiB free, 129.2 GiB wanted (0.92 of the total)"


def test_a_profile_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(
        "title: x\nmodel: ultra-nvfp4\nengine: vllm\nengine_version: 0.22.0\ngoal: throughput\n"
        "image: vllm/vllm-openai:v0.22.0\nhardware: {gpu: b200, gpus: 8, nodes: 2}\nports: {http: 8100}\n"
        "args: {tensor-parallel-size: 8, gpu-memory-utilization: 0.9}\n"
        'reasons: {tensor-parallel-size: {why: "fit", source: x}, gpu-memory-utilization: {why: y, source: x}}\n'
    )
    need = for_profile(str(path))
    assert (need.engine, need.gpus, need.gpu_memory_utilization, need.containers) == ("vllm", 4, 0.9, True)
    assert need.ports == (8100,)
    assert round(need.disk["models"] / 1e9) == 352


def test_the_same_facts_do_not_matter_to_the_embedded_engine(healthy: HostFacts) -> None:
    bare = replace(healthy, gpus=(), links=(), clock=replace(healthy.clock, synchronised=None))
    found = lib.check(bare, for_launch("llamacpp"))
    assert lib.verdict(found) == "fit"
    assert {finding.severity for finding in found} <= {Severity.INFO}


def test_secure_boot_matters_when_the_module_is_not_loaded(healthy: HostFacts) -> None:
    locked = replace(healthy, security=Security(secure_boot=True, hf_token=True))
    assert "H-SECURE-BOOT" not in {finding.code for finding in lib.check(locked, NEED)}
    blocked = replace(locked, gpus=None, driver=replace(locked.driver, module_loaded=False, version=None))
    assert "H-SECURE-BOOT" in {finding.code for finding in lib.check(blocked, NEED)}


def test_known_bad_packages_are_found(healthy: HostFacts) -> None:
    packages = {"vllm": "0.22.0", "fastapi": "0.138.0", "prometheus-fastapi-instrumentator": "8.0.0"}
    packages["flashinfer-python"] = "0.6.4"
    host = replace(healthy, software=replace(healthy.software, packages=packages))
    codes = {finding.code for finding in lib.check(host, for_launch("vllm"))}
    assert {"H-PACKAGES", "H-CUBIN"} <= codes
    host = replace(host, software=replace(host.software, packages=packages | {"fastapi": "0.136.3"}))
    assert "H-PACKAGES" not in {finding.code for finding in lib.check(host, for_launch("vllm"))}


def test_a_slow_disk_says_how_long_loading_takes() -> None:
    (finding,) = lib.check_speed(DiskSpeed("models", 1 << 28, 1e8, 1e8, True), NEED)
    assert "17 min" in finding.message
    assert lib.check_speed(DiskSpeed("models", 1 << 28, 1e8, 2e9, True), NEED) == ()


@pytest.mark.parametrize(("text", "numbers"), [("580.95.05", (580, 95, 5)), ("v1.14.0-rc.1", (1, 14, 0)), ("", None)])
def test_versions_compare_as_numbers(text: str, numbers: tuple[int, ...] | None) -> None:
    assert version(text) == numbers


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="no engine 'tgi'"):
        for_launch("tgi")


def finding(code: str) -> Finding:
    """A finding of that code."""
    return Finding(code, Severity.ERROR, "m", "f")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("os", ["Ubuntu 24.04.2 LTS", "Rocky Linux 9.4 (Blue Onyx)", "Plan 9"])
def test_every_fix_has_risk_and_undo_and_is_a_valid_script(healthy: HostFacts, name: str, os: str) -> None:
    host = replace(healthy, system=replace(healthy.system, os=os), security=Security(secure_boot=True))
    fix = ALL[name](host)
    assert fix.risk
    assert fix.undo
    assert fix.source
    done = subprocess.run(["bash", "-n"], input=fix.as_text(), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sudo" not in fix.as_text()


def test_fixes_answer_findings_in_order(healthy: HostFacts) -> None:
    host = replace(healthy, gpus=None, containers=replace(healthy.containers, docker_client=False))
    found = [finding(code) for code in ("H-TOOLKIT", "H-NOUVEAU", "H-DRIVER", "H-DOCKER", "H-THERMAL")]
    assert [fix.name for fix in fixes_for(host, found)] == ["nouveau", "driver", "docker", "toolkit"]
    assert fixes_for(replace(host, gpus=()), [finding("H-GPU")]) == ()


def test_the_power_unit_limits_all_gpus_without_a_reset(healthy: HostFacts, tmp_path: object) -> None:
    fix = lib.power_limit(healthy, 500)
    (unit,) = fix.files.values()
    assert "--power-limit=500" in unit
    assert "ExecStop=/usr/bin/nvidia-smi --power-limit=700" in unit
    assert "-r" not in unit.replace("nvidia-power", "").split()
    assert "--gpu-reset" not in unit
    assert "-i " not in unit


@pytest.mark.parametrize("watts", [100.0, 900.0])
def test_a_power_limit_outside_a_gpu_s_range_is_refused(healthy: HostFacts, watts: float) -> None:
    with pytest.raises(UsageError, match="allows 200 to 700 W"):
        lib.power_limit(healthy, watts)
    with pytest.raises(UsageError, match="no GPU is known"):
        lib.power_limit(replace(healthy, gpus=()), watts)


def test_headroom_compares_what_is_there_with_what_is_needed(healthy: HostFacts) -> None:
    rows = {row.resource: row for row in lib.headroom(healthy, NEED)}
    assert rows["disk of models"].ratio == pytest.approx(3000 / 352)
    assert rows["GPU 1 memory"].need == 125
    fig, table, alt = lib.headroom_figure(tuple(rows.values()))
    assert alt == "Enough of everything that was compared."
    assert {row["enough"] for row in table} == {"yes"}
    assert len(fig.data[0].x) == len(rows)
    short = lib.headroom(disk("models", free=10**9)(healthy), NEED)
    assert lib.headroom_figure(short)[2] == "Too little of: disk of models."
