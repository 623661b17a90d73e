"""GPUs through NVML. Runs as a process of its own (`python -m nemolab.host.nvml`), because a sick driver can hang
or kill whoever asks it; `ask` starts that process with a time-out and reads its JSON.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nemolab.host import smi
from nemolab.host.facts import Gpu, GpuProcess, Link
from nemolab.host.probe import Probe

TIMEOUT = 20.0  # NVML initialises every GPU of a host without persistence mode: about 2 s each

# NVML's "common ancestor" levels, spelled as `nvidia-smi topo -m` spells them (nvml.h, nvmlGpuTopologyLevel_t).
_PATHS = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_REASONS = {
    0x1: "GpuIdle", 0x2: "ApplicationsClocksSetting", 0x4: "SwPowerCap", 0x8: "HwSlowdown", 0x10: "SyncBoost",
    0x20: "SwThermalSlowdown", 0x40: "HwThermalSlowdown", 0x80: "HwPowerBrakeSlowdown", 0x100: "DisplayClockSetting",
}  # fmt: skip
# nvml.h, nvmlGpuP2PCapsIndex_t. The binding's NVML_P2P_CAPS_INDEX_READ is a one-element tuple (nvidia-ml-py 13.615),
# which its own call cannot convert: on a host with two GPUs that ended the whole collection.
_P2P_READ, _P2P_NVLINK = 0, 2
# nvml.h, nvmlNvlinkVersion_t: the number is an index, not a version (an H200 answers 6).
_NVLINK_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
_COMPUTE_MODES = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What NVML said. `gpus` of None: it could not be asked, `error` says why (NVML's own words)."""

    gpus: tuple[Gpu, ...] | None = None
    links: tuple[Link, ...] | None = None
    driver: str | None = None
    cuda: str | None = None
    error: str | None = None


def ask(probe: Probe) -> Reply:
    """Ask NVML in a process of its own."""
    if not probe.live:
        return Reply(error="a recorded tree holds no NVML")
    answer = probe.run(sys.executable, "-m", "nemolab.host.nvml", timeout=TIMEOUT)
    if answer is None:
        return Reply(error=f"no answer within {TIMEOUT:.0f} s: the driver hangs or the process was refused")
    if answer.code != 0:
        last = answer.err.strip().splitlines()[-1:] or [f"exit status {answer.code}"]
        return _without_binding(probe, Reply(error=f"the NVML process ended: {last[0]}"))
    reply = from_json(json.loads(answer.out))
    return reply if reply.gpus is not None else _without_binding(probe, reply)


def _without_binding(probe: Probe, reply: Reply) -> Reply:
    """What `nvidia-smi` knows, when NVML could not be asked: the binding may be missing and the driver well."""
    other = smi.ask(probe)
    if other.gpus is None:
        return reply
    return Reply(gpus=other.gpus, driver=other.driver, error=f"asked nvidia-smi instead: {reply.error}")


def from_json(document: dict[str, Any]) -> Reply:
    """A reply from the JSON that this module prints. Without pydantic, so that the collector runs anywhere."""
    gpus, links = document["gpus"], document["links"]
    return Reply(
        gpus=None if gpus is None else tuple(map(_gpu_from_json, gpus)),
        links=None if links is None else tuple(Link(**link) for link in links),
        driver=document["driver"],
        cuda=document["cuda"],
        error=document["error"],
    )


def _gpu_from_json(document: dict[str, Any]) -> Gpu:
    reasons, processes = document["clock_event_reasons"], document["processes"]
    lists = {
        "clock_event_reasons": None if reasons is None else tuple(reasons),
        "processes": None if processes is None else tuple(GpuProcess(**one) for one in processes),
    }
    return Gpu(**{**document, **lists})


def collect(nv: Any) -> Reply:
    """Everything, from an NVML binding `nv` (the `pynvml` module)."""
    try:
        nv.nvmlInit()
    except nv.NVMLError as error:
        return Reply(error=str(error))
    try:
        handles = [nv.nvmlDeviceGetHandleByIndex(index) for index in range(nv.nvmlDeviceGetCount())]
        cuda = _quiet(nv, lambda: nv.nvmlSystemGetCudaDriverVersion_v2())
        return Reply(
            gpus=tuple(_gpu(nv, index, handle) for index, handle in enumerate(handles)),
            links=tuple(
                _link(nv, a, b, handles[a], handles[b]) for a in range(len(handles)) for b in range(a + 1, len(handles))
            ),
            driver=_text(_quiet(nv, lambda: nv.nvmlSystemGetDriverVersion())),
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        )
    except nv.NVMLError as error:
        return Reply(error=str(error))
    finally:
        _quiet(nv, lambda: nv.nvmlShutdown())


def _quiet(nv: Any, call: Callable[[], Any]) -> Any:
    """The call's value; None when this device, driver or binding does not know it.

    A binding of another release may take other arguments: that costs one fact, not all of them.
    """
    try:
        return call()
    except (nv.NVMLError, AttributeError, TypeError, ctypes.ArgumentError):
        return None


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _gpu(nv: Any, index: int, handle: Any) -> Gpu:
    def get(name: str, *arguments: Any) -> Any:
        return _quiet(nv, lambda: getattr(nv, name)(handle, *arguments))

    capability = get("nvmlDeviceGetCudaComputeCapability")
    pci = get("nvmlDeviceGetPciInfo")
    links = _links(nv, handle)
    bounds = get("nvmlDeviceGetPowerManagementLimitConstraints") or (None, None)
    rows = get("nvmlDeviceGetRemappedRows")
    ecc = get("nvmlDeviceGetEccMode")
    mig = get("nvmlDeviceGetMigMode")
    rates = get("nvmlDeviceGetUtilizationRates")
    state = get("nvmlDeviceGetPerformanceState")
    persistence = get("nvmlDeviceGetPersistenceMode")
    return Gpu(
        index=index,
        name=_text(get("nvmlDeviceGetName")) or "unknown",
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        bus=_text(pci.busId) if pci else None,
        **_memory(nv, handle),
        pcie_generation=get("nvmlDeviceGetCurrPcieLinkGeneration"),
        pcie_generation_max=get("nvmlDeviceGetMaxPcieLinkGeneration"),
        pcie_width=get("nvmlDeviceGetCurrPcieLinkWidth"),
        pcie_width_max=get("nvmlDeviceGetMaxPcieLinkWidth"),
        nvlinks_active=sum(links) if links is not None else None,
        nvlinks=len(links) if links is not None else None,
        nvlink_version=_NVLINK_VERSIONS.get(get("nvmlDeviceGetNvLinkVersion", 0)) if links else None,
        power_draw=_watts(get("nvmlDeviceGetPowerUsage")),
        power_limit=_watts(get("nvmlDeviceGetEnforcedPowerLimit")),
        power_limit_default=_watts(get("nvmlDeviceGetPowerManagementDefaultLimit")),
        power_limit_min=_watts(bounds[0]),
        power_limit_max=_watts(bounds[1]),
        clock_sm=get("nvmlDeviceGetClockInfo", nv.NVML_CLOCK_SM),
        clock_sm_max=get("nvmlDeviceGetMaxClockInfo", nv.NVML_CLOCK_SM),
        clock_memory=get("nvmlDeviceGetClockInfo", nv.NVML_CLOCK_MEM),
        clock_memory_max=get("nvmlDeviceGetMaxClockInfo", nv.NVML_CLOCK_MEM),
        temperature=get("nvmlDeviceGetTemperature", nv.NVML_TEMPERATURE_GPU),
        temperature_slowdown=get("nvmlDeviceGetTemperatureThreshold", nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        fan_percent=get("nvmlDeviceGetFanSpeed"),
        clock_event_reasons=_reasons(get("nvmlDeviceGetCurrentClocksEventReasons")),
        performance_state=f"P{state}" if isinstance(state, int) and state < 16 else None,
        ecc=bool(ecc[0]) if ecc else None,
        ecc_uncorrected=get("nvmlDeviceGetTotalEccErrors", nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nv.NVML_VOLATILE_ECC),
        rows_remap_pending=bool(rows[2]) if rows else None,
        rows_remap_failed=bool(rows[3]) if rows else None,
        mig=bool(mig[0]) if mig else None,
        mig_devices=_mig_devices(nv, handle) if mig and mig[0] else None,
        persistence=bool(persistence) if persistence is not None else None,
        compute_mode=_COMPUTE_MODES.get(get("nvmlDeviceGetComputeMode")),
        utilisation=rates.gpu if rates else None,
        processes=_processes(nv, handle),
    )


def _memory(nv: Any, handle: Any) -> dict[str, Any]:
    """Memory of a device. On machines where GPU and CPU share memory NVML answers *not supported* (GB10, Jetson)."""
    try:
        first = nv.nvmlDeviceGetMemoryInfo(handle)
    except nv.NVMLError as error:
        unsupported = getattr(error, "value", None) == nv.NVML_ERROR_NOT_SUPPORTED
        return {"unified_memory": True if unsupported else None}
    if not first.total:
        return {"unified_memory": True}
    second = _quiet(nv, lambda: nv.nvmlDeviceGetMemoryInfo(handle, version=nv.nvmlMemory_v2))
    return {
        "unified_memory": False,
        "memory_total": first.total,
        "memory_free": second.free if second else first.free,
        "memory_reserved": second.reserved if second else None,
    }


def _watts(milliwatts: int | None) -> float | None:
    return milliwatts / 1000 if milliwatts else None


def _reasons(mask: int | None) -> tuple[str, ...] | None:
    return None if mask is None else tuple(name for bit, name in _REASONS.items() if mask & bit)


def _links(nv: Any, handle: Any) -> list[bool] | None:
    """State of each NVLink; None on boards without any."""
    states = []
    for link in range(nv.NVML_NVLINK_MAX_LINKS):
        state = _quiet(nv, partial(nv.nvmlDeviceGetNvLinkState, handle, link))
        if state is None:
            break
        states.append(bool(state))
    return states or None


def _mig_devices(nv: Any, handle: Any) -> int | None:
    most = _quiet(nv, lambda: nv.nvmlDeviceGetMaxMigDeviceCount(handle))
    if most is None:
        return None
    calls = (partial(nv.nvmlDeviceGetMigDeviceHandleByIndex, handle, slot) for slot in range(most))
    return sum(_quiet(nv, call) is not None for call in calls)


def _processes(nv: Any, handle: Any) -> tuple[GpuProcess, ...] | None:
    """Compute processes. In a container NVML may list none although memory is taken: free memory tells."""
    running = _quiet(nv, lambda: nv.nvmlDeviceGetComputeRunningProcesses(handle))
    if running is None:
        return None
    return tuple(GpuProcess(one.pid, _name(one.pid), one.usedGpuMemory) for one in running)


def _name(pid: int) -> str | None:
    """Program name, which is short and holds no arguments."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def _link(nv: Any, a: int, b: int, first: Any, second: Any) -> Link:
    level = _quiet(nv, lambda: nv.nvmlDeviceGetTopologyCommonAncestor(first, second))
    path = _PATHS.get(level) if level is not None else None
    linked = _quiet(nv, lambda: nv.nvmlDeviceGetP2PStatus(first, second, _P2P_NVLINK))
    peer = _quiet(nv, lambda: nv.nvmlDeviceGetP2PStatus(first, second, _P2P_READ))
    if linked == nv.NVML_P2P_STATUS_OK:
        path = f"NV{sum(_links(nv, first) or [])}"
    return Link(a, b, path, None if peer is None else peer == nv.NVML_P2P_STATUS_OK)


def main() -> None:
    """Print the reply as JSON."""
    try:
        import pynvml
    except ImportError:
        reply = Reply(error="the Python package nvidia-ml-py is not installed")
    else:
        reply = collect(pynvml)
    json.dump(asdict(reply), sys.stdout)


if __name__ == "__main__":
    main()
