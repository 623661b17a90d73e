"""What a launch asks of a host. Numbers come from the engines' and NVIDIA's own pages; each names its source."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from nemolab import models
from nemolab.core.errors import UsageError
from nemolab.core.sizes import GIB

EMBEDDED = "llamacpp"


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirements of one launch. 0, None and "" ask for nothing. Sizes in bytes.

    Attributes:
        engine: who asks, for the messages.
        gpus: number of GPUs used together.
        gpu_memory_free: free memory that each of them needs.
        gpu_memory_utilization: share of its total that must be free: what vLLM asks for at start.
        compute_capability: lowest that the engine's kernels support.
        driver: lowest driver version.
        containers: the launch runs in a container, so Docker and NVIDIA's toolkit are needed.
        disk: free space by role of the folder.
        disk_read: bytes a second below which loading is a finding.
        memory: free host memory.
        sources: requirement -> document.
    """

    engine: str = EMBEDDED
    gpus: int = 0
    gpu_memory_free: int = 0
    gpu_memory_utilization: float = 0.0
    compute_capability: str = ""
    driver: str = ""
    containers: bool = False
    docker: str = ""
    toolkit: str = ""
    cores: float = 2
    memory: int = 2 * GIB
    shm: int = 0
    nofile: int = 4096
    disk: dict[str, int] = field(default_factory=lambda: {"lab": GIB, "tmp": GIB})
    disk_read: int = 0
    ports: tuple[int, ...] = ()
    clock: bool = False  # several machines, licences and download tokens need the right time
    hf_token: bool | None = None  # None: sources disagree whether the checkpoint is gated
    sources: dict[str, str] = field(default_factory=dict)

    def but(self, **changes: object) -> Requirements:
        """These requirements with some of them changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


_VLLM = "vLLM 0.22.0 wheel and image notes, 2026-06"
_NIM = "NVIDIA NIM for LLMs, support matrix of Nemotron 3 Ultra (2.0.6), read 2026-08"
_TRT = "NVIDIA-NeMo/Nemotron cookbook, TensorRT-LLM notebooks, e27b3713"
_DYN = "ai-dynamo/dynamo, recipes/nemotron-3-ultra, Dynamo 1.4.0 support matrix"

_GPU = Requirements(
    gpus=1,
    compute_capability="8.0",
    cores=4,
    memory=16 * GIB,
    shm=8 * GIB,
    nofile=65536,
    disk={"lab": GIB, "tmp": 4 * GIB},
    disk_read=500 * 10**6,
    clock=True,
)

ENGINES: dict[str, Requirements] = {
    EMBEDDED: Requirements(sources={"memory": "measured: the miniature's server and its client stay below 1 GiB"}),
    "vllm": _GPU.but(
        engine="vllm",
        driver="580",
        sources={
            "driver": f"CUDA 13 images need driver 580 ({_DYN})",
            "nofile": "vLLM 0.22.0 raises the soft limit to 65535 and warns when it cannot (set_ulimit)",
            "shm": "NCCL and worker processes share memory through /dev/shm (vLLM docs, Using Docker)",
        },
    ),
    "sglang": _GPU.but(engine="sglang", driver="580", sources={"driver": "lmsysorg/sglang *-cu130 images"}),
    "trtllm": _GPU.but(engine="trtllm", driver="575", containers=True, sources={"driver": _TRT}),
    "nim": _GPU.but(
        engine="nim",
        driver="580",
        containers=True,
        docker="24.0",
        toolkit="1.14.0",
        sources={"driver": _NIM, "docker": _NIM, "toolkit": _NIM},
    ),
    "dynamo": _GPU.but(engine="dynamo", driver="580", containers=True, sources={"driver": _DYN}),
}


def for_engine(name: str) -> Requirements:
    """The general requirements of an engine; a launch adds GPUs, memory, disk and ports with `but`.

    Raises:
        UsageError: no such engine.
    """
    if name not in ENGINES:
        raise UsageError(f"no engine {name!r}", fix=f"one of: {', '.join(ENGINES)}")
    return ENGINES[name]


def version(text: str | None) -> tuple[int, ...] | None:
    """`"580.95.05"` as numbers that compare; what is not a number ends it. None when there is none."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text or "")
    return tuple(int(part) for part in found[1].split(".")) if found else None


def for_launch(
    engine: str,
    *,
    model: str = "",
    gpus: int = 0,
    gpu_memory_gib: float = 0,
    gpu_memory_utilization: float = 0,
    disk_gb: float = 0,
    ports: tuple[int, ...] = (),
) -> Requirements:
    """The requirements of an engine plus what one launch adds.

    Args:
        model: checkpoint to download: its size is added to the disk wanted.
        gpus: 0 for the engine's own minimum.
        gpu_memory_gib: free memory that each GPU needs.
        gpu_memory_utilization: share of each GPU's total that must be free; 0 when it does not matter.
        disk_gb: further free space for checkpoints, in 10**9 bytes as vendors count them.
        ports: that the server listens on.

    Raises:
        UsageError: no such engine or model.
    """
    base = for_engine(engine)
    size, sources = int(disk_gb * 1e9), dict(base.sources)
    if model:
        checkpoint = models.find(model)
        size += checkpoint.size
        sources["disk.models"] = f"size of {checkpoint.name}: its parameters by format"
    return base.but(
        gpus=gpus or base.gpus,
        gpu_memory_free=int(gpu_memory_gib * GIB),
        gpu_memory_utilization=gpu_memory_utilization,
        disk={**base.disk, "models": size} if size else base.disk,
        ports=tuple(filter(None, ports)),
        sources=sources,
    )
