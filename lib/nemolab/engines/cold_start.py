"""A cold start explained: which phase took what, what a cache would save the next time, and what to mount for it."""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.engines.logs import LogReport, Phase

_H200 = "measured: vLLM 0.22.0, Nano's dimensions, one H200, cold and warm caches"


@dataclass(frozen=True, slots=True)
class Cache:
    """What an engine keeps on disk for its next start.

    Attributes:
        phase: the phase it shortens, as the engine's log rules call it.
        left: share of a cold phase that remains with the cache; None where nobody measured it.
        folder: where it is, in the engine's home.
        variable: what moves it elsewhere; "" for nothing.
    """

    phase: str
    left: float | None
    folder: str
    variable: str
    source: str


@dataclass(frozen=True, slots=True)
class Saving:
    """What a phase took, and what its cache would save.

    Attributes:
        seconds: that the phase took.
        saves_s: seconds that a cache saves the next time, None where nobody measured it; 0 when it was warm.
        warm: the log says that the cache was used.
    """

    phase: str
    seconds: float
    saves_s: float | None
    mount: str
    variable: str
    source: str
    warm: bool


# Folders and variables: the engines' documentation of these versions. `left`: the measured start of Nano's dimensions:
# torch.compile 18.19 s cold and 2.13 s warm, profiling with the Mamba kernels 87.93 s and 60.06 s.
CACHES: dict[str, tuple[Cache, ...]] = {
    "vllm": (
        Cache("weights", None, "~/.cache/huggingface", "HF_HOME", "Hugging Face documentation"),
        Cache("torch.compile", 2.13 / 18.19, "~/.cache/vllm", "VLLM_CACHE_ROOT", _H200),
        Cache("Mamba kernel warm-up and profiling", 60.06 / 87.93, "~/.triton/cache", "TRITON_CACHE_DIR", _H200),
    ),
    "sglang": (
        Cache("weights", None, "~/.cache/huggingface", "HF_HOME", "Hugging Face documentation"),
        Cache("autotuning", None, "~/.cache/flashinfer", "FLASHINFER_WORKSPACE_BASE", "FlashInfer documentation"),
        Cache("CUDA graphs", None, "~/.triton/cache", "TRITON_CACHE_DIR", "Triton documentation"),
    ),
    "trtllm": (
        Cache("weights", None, "~/.cache/huggingface", "HF_HOME", "Hugging Face documentation"),
        Cache("autotuning", None, "a file of your choice", "TLLM_AUTOTUNER_CACHE_PATH", "TensorRT-LLM 1.3 source"),
    ),
    "llamacpp": (),
}
CACHES["nim"] = (
    Cache("profile and model cache", None, "/opt/nim/.cache", "NIM_CACHE_PATH", "NIM for LLMs documentation"),
    *CACHES["vllm"][1:],
)
CACHES["dynamo"] = CACHES["vllm"]


def savings(report: LogReport) -> tuple[Saving, ...]:
    """One entry for each phase that a cache shortens, the largest first."""
    took = {phase.name: phase for phase in report.phases}
    found = []
    for cache in CACHES.get(report.engine, ()):
        phase = took.get(cache.phase)
        if phase is None or phase.seconds is None:
            continue
        # With a warm compile cache the kernels' cache was most likely warm too, and then nothing is known of the rest.
        warm = "compile_cache" in report.capacity
        used = warm and cache.phase == "torch.compile"
        unknown = cache.left is None or (warm and not used)
        saves = None if unknown else 0.0 if used else round(phase.seconds * (1 - (cache.left or 0.0)), 2)
        found.append(Saving(phase.name, phase.seconds, saves, cache.folder, cache.variable, cache.source, used))
    return tuple(sorted(found, key=lambda saving: -saving.seconds))


def rows(report: LogReport) -> list[dict[str, object]]:
    """One row a phase that a cache shortens."""
    return [
        {
            "phase": saving.phase,
            "took": saving.seconds,
            "a warm cache saves": saving.saves_s,
            "mount": saving.mount,
            "or set": saving.variable or "-",
            "known from": "this log: it was warm" if saving.warm else saving.source,
        }
        for saving in savings(report)
    ]


def sentence(report: LogReport) -> str:
    """Where the time went and what would save it, in words."""
    timed: list[Phase] = [phase for phase in report.phases if phase.seconds is not None]
    if not timed:
        return "The log shows no phase of a start."
    total = report.ready_s or sum(phase.seconds or 0.0 for phase in timed)
    longest = max(timed, key=lambda phase: phase.seconds or 0.0)
    text = f"{total:.0f} s in all, {longest.seconds:.0f} s of them {longest.name}"
    saved = sum(saving.saves_s or 0.0 for saving in savings(report))
    return f"{text}; warm caches would save about {saved:.0f} s." if saved >= 1 else f"{text}."
