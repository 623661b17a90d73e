"""Parameters and results of the notebook `10_check_host`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.core.finding import Finding, Severity
from nemolab.core.sizes import GIB
from nemolab.host.check import verdict
from nemolab.host.facts import HostFacts
from nemolab.host.requirements import Requirements, for_launch
from nemolab.host.storage import DiskSpeed

Engine = Literal["llamacpp", "vllm", "sglang", "trtllm", "nim", "dynamo"]


class HostParams(Params):
    """What will be launched on this host."""

    profile: str = Field("", description="launch profile, such as ultra_nvfp4_4xb200_vllm; replaces all but speed_mib")
    engine: Engine = Field("llamacpp", description="engine that is to run here")
    model: str = Field("", description="checkpoint to download: its size is added to the disk wanted")
    gpus: int = Field(0, ge=0, le=1024, description="GPUs used together; 0 for the engine's own minimum")
    gpu_memory_gib: float = Field(0.0, ge=0, description="free memory that each GPU needs, GiB")
    gpu_memory_utilization: float = Field(0.0, ge=0, le=1, description="share of each GPU that must be free; 0: any")
    disk_gb: float = Field(2.0, ge=0, description="further free disk for checkpoints, GB")
    port: int = Field(8000, ge=0, le=65535, description="port that the server will listen on; 0 for any free one")
    speed_mib: int = Field(64, ge=0, le=65536, description="size of the disk measurement, MiB; 0 skips it")

    def requirements(self) -> Requirements:
        """What this launch asks of the host."""
        if self.profile:
            from nemolab.host.profiles import for_profile

            return for_profile(self.profile)
        return for_launch(
            self.engine,
            model=self.model,
            gpus=self.gpus,
            gpu_memory_gib=self.gpu_memory_gib,
            gpu_memory_utilization=self.gpu_memory_utilization,
            disk_gb=self.disk_gb,
            ports=(self.port,),
        )


class HostResults(Results):
    """What the host is like, and whether it will do."""

    fit: bool = Field(description="nothing that is needed is missing or unknown")
    verdict: str = Field(description="fit; fit, with remarks; unknown; or unfit")
    errors: Annotated[int, Unit("", "lower")] = Field(description="findings that would make the launch fail")
    warnings: Annotated[int, Unit("", "lower")] = Field(description="findings that would spoil it")
    unknown: Annotated[int, Unit("", "lower")] = Field(description="needed facts that nobody could be asked for")
    cores: Annotated[float | None, Unit("", "higher")] = Field(description="cores that this process may use")
    memory_free: Annotated[float | None, Unit("GiB", "higher", 0.2)] = Field(description="memory a server can take")
    disk_free: Annotated[float | None, Unit("GB", "higher", 0.2)] = Field(description="free disk for checkpoints")
    disk_read: Annotated[float | None, Unit("MB/s", "higher", 0.3)] = Field(description="sequential read, uncached")
    disk_write: Annotated[float | None, Unit("MB/s", "higher", 0.3)] = Field(description="sequential write, flushed")
    gpus: int | None = Field(description="GPUs that NVML lists; null when it could not be asked")


def results_of(host: HostFacts, findings: tuple[Finding, ...], speed: DiskSpeed | None) -> HostResults:
    """The results that the notebook publishes."""
    count = Counter(finding.severity for finding in findings)
    disk, usable = host.disk("models"), host.memory.usable
    word = verdict(findings)
    return HostResults(
        fit=word.startswith("fit"),
        verdict=word,
        errors=count[Severity.ERROR],
        warnings=count[Severity.WARNING],
        unknown=count[Severity.UNKNOWN],
        cores=host.cpu.usable,
        memory_free=None if usable is None else round(usable / GIB, 2),
        disk_free=None if disk is None or disk.free is None else round(disk.free / 1e9, 1),
        disk_read=None if speed is None else round(speed.read / 1e6, 1),
        disk_write=None if speed is None else round(speed.write / 1e6, 1),
        gpus=None if host.gpus is None else len(host.gpus),
    )
