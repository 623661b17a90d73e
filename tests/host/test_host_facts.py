"""Facts: of this machine, of recorded trees and hosts, and of GPUs as bindings and tools report them."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from click.testing import CliRunner

from nemolab import host as lib
from nemolab.cli.host import host as command
from nemolab.core.errors import NemolabError, UsageError
from nemolab.host import collect, machine, network, nvml, smi, software, storage
from nemolab.host.driver import driver, nvidia_devices
from nemolab.host.facts import HostFacts
from nemolab.host.probe import Probe
from nemolab.host.requirements import ENGINES

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Probe:
    """A recorded tree with these files."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Probe(root)


def test_this_machine_s_facts_survive_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_" + "a" * 34)
    found = lib.facts(ports=(0, 1))
    text = json.dumps(found.as_dict())
    assert HostFacts.from_dict(json.loads(text)) == found
    assert found.security.hf_token is True
    assert "hf_" + "a" * 34 not in text
    assert found.cpu.usable
    assert found.memory.usable
    assert [port.number for port in found.network.ports] == [1]


def test_facts_name_no_machine_and_no_person() -> None:
    text = json.dumps(lib.facts().as_dict())
    secrets = [socket.gethostname(), str(Path.home()), str(Path.cwd())]
    for secret in secrets:
        if len(secret) > 3:
            assert secret not in text


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
@pytest.mark.parametrize("engine", ENGINES)
def test_recorded_hosts_can_be_judged(path: Path, engine: str) -> None:
    found = HostFacts.from_dict(json.loads(path.read_text()))
    need = lib.for_launch(engine, disk_gb=1)
    findings = lib.check(found, need)
    assert lib.verdict(findings) in ("fit", "fit, with remarks", "unknown", "unfit")
    assert lib.rows(found)
    assert len(lib.gpu_rows(found)) == len(found.gpus or ())


def test_the_cpu_only_host_runs_the_embedded_engine_and_nothing_else() -> None:
    found = HostFacts.from_dict(json.loads((Path(__file__).parent / "recorded/cpu-only.json").read_text()))
    assert found.gpus == ()
    assert "H-GPU" not in {finding.code for finding in lib.check(found, lib.for_launch("llamacpp"))}
    assert "H-GPU" in {finding.code for finding in lib.check(found, lib.for_launch("vllm"))}


def test_the_h200_host_as_recorded() -> None:
    """Two H200s of one host, driver 580.159.04, 2026-11-30; equal to what nvidia-smi said beside it."""
    found = HostFacts.from_dict(json.loads((Path(__file__).parent / "recorded/h200-x2.json").read_text()))
    assert found.driver.version == "580.159.04"
    assert found.driver.nvml_error is None
    assert found.gpus
    assert {gpu.name for gpu in found.gpus} == {"NVIDIA H200"}
    first = found.gpus[0]
    assert (first.compute_capability, first.pcie_generation, first.pcie_width) == ("9.0", 5, 16)
    assert (first.nvlinks_active, first.nvlink_version) == (18, "4.0")
    assert [(link.path, link.peer_access) for link in found.links or ()] == [("NV18", True)]
    assert {finding.code for finding in lib.check(found, lib.for_launch("vllm", gpus=2))}.isdisjoint(
        {"H-GPU", "H-DRIVER", "H-PCIE", "H-NVLINK"}
    )


def test_other_documents_are_refused() -> None:
    with pytest.raises(UsageError, match="not host facts of schema 1"):
        HostFacts.from_dict({"schema": 2})
    with pytest.raises(UsageError, match=r"not host facts: cpu\.usable"):
        HostFacts.from_dict({"schema": 1, "cpu": {"usable": "many"}})


def test_a_command_that_hangs_costs_its_time_out_only() -> None:
    begin = time.monotonic()
    assert Probe(timeout=0.2).run("sleep", "30") is None
    assert time.monotonic() - begin < 10
    assert Probe().run("no-such-command-at-all") is None
    assert Probe().output("false") is None


def test_a_recorded_tree_runs_no_command(tmp_path: Path) -> None:
    found = lib.facts(probe=tree(tmp_path, {"/proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 50 kB\n"}), folders={})
    assert found.memory.total == 100 * 1024
    assert found.memory.usable == 50 * 1024
    assert found.gpus is None
    assert {unknown.name for unknown in found.unknown} >= {"gpus", "cpu.model", "containers.docker"}
    assert found.driver.nvml_error


def test_the_least_cgroup_limit_on_the_way_up_binds(tmp_path: Path) -> None:
    probe = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "0::/a/b\n",
            "/sys/fs/cgroup/a/cpu.max": "150000 100000",
            "/sys/fs/cgroup/cpu.max": "200000 100000",
            "/sys/fs/cgroup/a/b/cpu.max": "max 100000",
            "/sys/fs/cgroup/a/memory.max": str(4 * GIB),
            "/sys/fs/cgroup/a/memory.current": str(GIB),
            "/sys/fs/cgroup/a/b/memory.max": "max",
            "/proc/cpuinfo": "processor\t: 0\nprocessor\t: 1\nprocessor\t: 2\n",
            "/proc/meminfo": f"MemAvailable: {8 << 20} kB\n",
        },
    )
    assert machine.cpu(probe).quota == 1.5
    assert machine.cpu(probe).usable == 1.5
    assert machine.memory(probe).limit == 4 * GIB
    assert machine.memory(probe).usable == 3 * GIB


def test_the_first_cgroup_version_is_read_too(tmp_path: Path) -> None:
    probe = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "4:memory:/x\n1:cpu,cpuacct:/x\n0::/\n",
            "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "200000",
            "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000",
            "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": str(2 * GIB),
            "/sys/fs/cgroup/memory/x/memory.usage_in_bytes": "0",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert machine.cpu(probe).quota == 2
    assert machine.memory(probe).limit == 2 * GIB


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    probe = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "4:memory:/\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert machine.memory(probe).limit is None


def test_a_listener_of_ours_is_found_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        found = network.port(Probe(), number)
        assert found.free is False
        assert found.holder == Path("/proc/self/comm").read_text().strip()
    assert network.port(Probe(), number).free is True


def test_a_proxy_without_an_exemption_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    assert network.network(Probe()).proxy is False
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert network.network(Probe()).loopback_unproxied is False
    monkeypatch.setenv("no_proxy", "example.org,127.0.0.1, localhost")
    assert network.network(Probe()).loopback_unproxied is True


def test_disk_speed_is_measured_and_leaves_nothing(tmp_path: Path) -> None:
    speed = storage.measure_speed("tmp", tmp_path, size=16 << 20)
    assert speed.size == 16 << 20
    assert speed.read > 0
    assert speed.write > 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NemolabError, match="wanted for a measurement"):
        storage.measure_speed("tmp", tmp_path, size=1 << 60)


def test_the_file_system_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    found = storage.disk(Probe(), "models", tmp_path / "not" / "yet")
    assert found.free
    assert found.filesystem == storage.disk(Probe(), "models", tmp_path).filesystem


def test_secure_boot_and_lockdown(tmp_path: Path) -> None:
    variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    on = tree(tmp_path / "on", {variable: "\x06\0\0\0\x01", "/sys/kernel/security/lockdown": "none [integrity] x"})
    assert software.security(on).secure_boot is True
    assert software.security(on).lockdown == "integrity"
    assert software.security(tree(tmp_path / "off", {variable: "\x06\0\0\0\0"})).secure_boot is False
    assert software.security(tree(tmp_path / "bios", {"/sys/firmware/acpi/x": ""})).secure_boot is False
    assert software.security(tree(tmp_path / "none", {})).secure_boot is None


def test_the_driver_seen_from_outside(tmp_path: Path) -> None:
    probe = tree(
        tmp_path,
        {
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  R",
            "/sys/module/nvidia_uvm/x": "",
            "/sys/module/nouveau/x": "",
            "/dev/nvidia0": "",
            "/dev/nvidia-uvm": "",
            "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de",
            "/sys/bus/pci/devices/0000:01:00.0/class": "0x030200",
            "/sys/bus/pci/devices/0000:02:00.0/vendor": "0x10de",
            "/sys/bus/pci/devices/0000:02:00.0/class": "0x068000",
        },
    )
    found = driver(probe)
    assert (found.module_version, found.module_kind) == ("580.95.05", "open")
    assert (found.module_loaded, found.uvm_loaded, found.nouveau_loaded) == (True, True, True)
    assert found.device_nodes == ("nvidia-uvm", "nvidia0")
    assert nvidia_devices(probe) == 1  # an NVSwitch is no display


def test_no_gpu_and_unknown_are_told_apart(tmp_path: Path) -> None:
    probe, reply = tree(tmp_path, {}), nvml.Reply(error="NVML Shared Library Not Found")
    nothing = collect.with_gpus(probe, HostFacts(), reply, devices=0)
    assert nothing.gpus == ()
    assert nothing.driver.nvml_error is None
    for devices in (None, 1):
        unknown = collect.with_gpus(probe, HostFacts(), reply, devices)
        assert unknown.gpus is None
        assert unknown.driver.nvml_error == "NVML Shared Library Not Found"


class Binding:
    """pynvml with a machine behind it: one H200 in a narrow slot, one GB10 whose memory NVML does not report."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("nvmlDeviceGet"):
            return self._unsupported
        return getattr(pynvml, name)

    @staticmethod
    def _unsupported(*_: Any) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetName(self, handle: int) -> str:
        return ("NVIDIA H200", "NVIDIA GB10")[handle]

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: Any = None) -> Any:
        if handle == 1:
            self._unsupported()
        return SimpleNamespace(total=143_771 << 20, free=80_000 << 20, used=63_000 << 20, reserved=600 << 20)

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:
        return SimpleNamespace(busId=f"00000000:{handle + 1:02X}:00.0")

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: int) -> int:
        return 8

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: int) -> int:
        return 16

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        return 0x1 | 0x20

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:
        if handle == 1 or link >= 18:
            self._unsupported()
        return int(link != 3)

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle: int) -> tuple[int, int]:
        return 200_000, 700_000

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=62 << 30)] if handle == 0 else []

    def nvmlDeviceGetTopologyCommonAncestor(self, a: int, b: int) -> int:
        return int(pynvml.NVML_TOPOLOGY_SYSTEM)

    def nvmlDeviceGetP2PStatus(self, a: int, b: int, index: int) -> int:
        ctypes.c_int(index)  # as the binding converts it: NVML_P2P_CAPS_INDEX_READ is a tuple there
        return int(pynvml.NVML_P2P_STATUS_NOT_SUPPORTED)

    def nvmlDeviceGetNvLinkVersion(self, handle: int, link: int) -> int:
        return int(pynvml.NVML_NVLINK_VERSION_4_0)


def test_what_nvml_says_becomes_facts() -> None:
    reply = nvml.collect(Binding())
    assert reply.gpus
    first, second = reply.gpus
    assert (reply.driver, reply.cuda) == ("580.95.05", "13.0")
    assert (first.name, first.unified_memory, first.memory_total) == ("NVIDIA H200", False, 143_771 << 20)
    assert (first.pcie_width, first.pcie_width_max) == (8, 16)
    assert (first.nvlinks_active, first.nvlinks, first.nvlink_version) == (17, 18, "4.0")
    assert first.clock_event_reasons == ("GpuIdle", "SwThermalSlowdown")
    assert (first.power_limit_min, first.power_limit_max, first.power_limit) == (200.0, 700.0, None)
    assert first.processes
    assert first.processes[0].name == Path("/proc/self/comm").read_text().strip()
    assert (second.unified_memory, second.memory_total, second.nvlinks) == (True, None, None)
    assert reply.links
    assert (reply.links[0].path, reply.links[0].peer_access) == ("SYS", False)
    assert nvml.from_json(json.loads(json.dumps(asdict(reply)))) == reply
    document = json.loads(json.dumps(replace(HostFacts(), gpus=reply.gpus, links=reply.links).as_dict()))
    assert HostFacts.from_dict(document).gpus == reply.gpus
    codes = {f.code for f in lib.check(HostFacts.from_dict(document), lib.for_launch("vllm", gpus=2))}
    assert {"H-PCIE-WIDTH", "H-NVLINK", "H-THERMAL", "H-LEFTOVER", "H-UNIFIED", "H-GPU-MIXED"} <= codes


def test_the_collector_runs_on_a_bare_python(tmp_path: Path) -> None:
    """No site packages: what is copied to a machine is the library's folder alone."""
    library = Path(lib.__file__).parents[2]
    argv = [sys.executable, "-S", "-c", "import runpy; runpy.run_module('nemolab.host', run_name='__main__')"]
    environment = {**os.environ, "PYTHONPATH": str(library)}
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert HostFacts.from_dict(json.loads(done.stdout)).cpu.usable


def test_this_machine_s_nvml_answers_or_says_why() -> None:
    reply = nvml.ask(Probe())
    assert reply.gpus is not None or reply.error


def test_nvidia_smi_is_read_where_the_binding_is_missing() -> None:
    """A row of an H200 and one of a DGX Spark, in the query's own format."""
    h200 = (
        "0, NVIDIA H200, 9.0, 00000000:18:00.0, 143771, 142768, 1000, 5, 5, 8, 16, 76.52, 700.00, 700.00, 200.00, "
        "700.00, 345, 1980, 3201, 3201, 29, P0, Enabled, Disabled, Enabled, Default, 0, 580.95.05"
    )
    spark = (
        "1, NVIDIA GB10, 12.1, 0000000F:01:00.0, [N/A], [N/A], [N/A], 1, 1, 1, 1, 4.50, [N/A], [N/A], [N/A], [N/A], "
        "208, 3003, [N/A], [N/A], 38, P8, [N/A], [N/A], Enabled, Default, 0, 580.95.05"
    )
    reply = smi.parse(f"{h200}\n{spark}\nsome warning\n")
    assert reply.driver == "580.95.05"
    assert reply.gpus
    first, second = reply.gpus
    assert (first.memory_total, first.pcie_width, first.ecc, first.mig) == (143_771 << 20, 8, True, False)
    assert (first.power_limit_min, first.power_limit_max) == (200.0, 700.0)
    assert (second.unified_memory, second.power_limit, second.ecc) == (True, None, None)
    assert first.clock_event_reasons is None  # not asked: unknown, not "nothing holds the clocks"


def test_the_command_prints_facts_and_judges_a_recorded_host(tmp_path: Path) -> None:
    path = str(RECORDED[0])
    shown = CliRunner().invoke(command, ["--from", path, "--engine", "vllm", "--fixes"], standalone_mode=False)
    assert shown.return_value == 1
    assert "this host is unfit" in shown.output
    plain = CliRunner().invoke(command, ["--from", path, "--json"], standalone_mode=False)
    assert plain.return_value == 0
    assert json.loads(plain.output) == json.loads(RECORDED[0].read_text())
    (tmp_path / "x.json").write_text("{")
    broken = CliRunner().invoke(command, ["--from", str(tmp_path / "x.json")], standalone_mode=False)
    assert isinstance(broken.exception, UsageError)
