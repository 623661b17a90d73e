"""Combinations of model and hardware that official pages list, held against the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.core.finding import Finding, Severity
from nemolab.core.sizes import GIB
from nemolab.models import evidence
from nemolab.models.planner import Fit, Plan, plan
from nemolab.models.request import request

_LEAST = 32_768  # tokens: a service that cannot hold one such request is none
_CODE = "M-LISTED"
_FEW = 32  # sequences at once: graphs for more take memory that a tight machine does not have
_USUAL = 0.90  # the utilisation that the pages document


@dataclass(frozen=True, slots=True)
class Listing:
    """One combination as a page lists it."""

    model: str
    gpu: str
    tensor_parallel_size: int
    who: tuple[str, ...]
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size

    @property
    def layout(self) -> str:
        """Hardware and parallelism, such as "16 x h100, TP8 PP2"."""
        sizes = (
            ("TP", self.tensor_parallel_size),
            ("PP", self.pipeline_parallel_size),
            ("DP", self.data_parallel_size),
        )
        parts = [f"{name}{size}" for name, size in sizes if size > 1 or name == "TP"]
        return f"{self.gpus} x {self.gpu}, {' '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A listing and what the planner says at a utilisation of 0.90, for one request of 32,768 tokens."""

    listing: Listing
    plan: Plan

    @property
    def needed(self) -> float:
        """The utilisation from which on it fits; above 1 it never does."""
        used = self.plan.weights.total + self.plan.overhead.total + self.plan.request_bytes
        return used / self.plan.request.total_memory

    @property
    def verdict(self) -> str:
        """`fits`, `tight`, `does not fit at 0.90` or `does not fit`."""
        if self.plan.fits:
            return str(self.plan.fit)
        return "does not fit at 0.90" if self.needed <= 1 else str(Fit.NO)


# Who lists it -> the page, with its version.
PAGES = {
    "cookbook": evidence.COOK,
    "card": evidence.CARD,
    "NIM": evidence.NIM,
    "SGLang": evidence.SGL,
    "TensorRT-LLM": evidence.TRT,
    "recipes": evidence.REC,
    "Teacher card": "card of Nemotron Labs Teacher STEM, 2026-08",
}

LISTINGS: tuple[Listing, ...] = (
    Listing("ultra-bf16", "h100", 16, ("cookbook", "SGLang")),
    Listing("ultra-bf16", "h100", 8, ("NIM",), pipeline_parallel_size=2),
    Listing("ultra-bf16", "h200", 8, ("cookbook", "card", "NIM")),
    Listing("ultra-bf16", "h200", 16, ("SGLang",)),
    Listing("ultra-bf16", "b200", 8, ("cookbook", "SGLang", "NIM")),
    Listing("ultra-bf16", "b300", 4, ("NIM",)),
    Listing("ultra-bf16", "b300", 8, ("cookbook", "SGLang", "NIM")),
    Listing("ultra-bf16", "gb200", 4, ("NIM",), pipeline_parallel_size=2),
    Listing("ultra-nvfp4", "h100", 8, ("cookbook", "TensorRT-LLM", "NIM")),
    Listing("ultra-nvfp4", "h100", 1, ("cookbook",), data_parallel_size=8),
    Listing("ultra-nvfp4", "h200", 4, ("NIM",)),
    Listing("ultra-nvfp4", "h200", 8, ("NIM",)),
    Listing("ultra-nvfp4", "b200", 2, ("NIM",)),
    Listing("ultra-nvfp4", "b200", 4, ("cookbook", "SGLang", "NIM")),
    Listing("ultra-nvfp4", "b300", 2, ("NIM",)),
    Listing("ultra-nvfp4", "b300", 4, ("cookbook", "SGLang", "NIM")),
    Listing("ultra-nvfp4", "gb200", 4, ("cookbook", "SGLang", "TensorRT-LLM")),
    Listing("ultra-nvfp4", "gb300", 4, ("cookbook", "SGLang", "TensorRT-LLM")),
    Listing("teacher-stem", "b200", 4, ("Teacher card",)),
    Listing("teacher-stem", "h100", 8, ("Teacher card",)),
    Listing("super-bf16", "h100", 4, ("TensorRT-LLM",)),
    Listing("super-bf16", "b200", 2, ("TensorRT-LLM",)),
    Listing("super-nvfp4", "h100", 2, ("TensorRT-LLM",)),
    Listing("super-nvfp4", "b200", 1, ("TensorRT-LLM",)),
    Listing("super-nvfp4", "gb10", 1, ("recipes",)),
    Listing("lightning-nvfp4", "h100", 1, ("cookbook", "recipes")),
)


def judge(listing: Listing) -> Judged:
    """A listing held against the arithmetic."""
    asked = request(
        listing.model,
        listing.gpu,
        tensor_parallel_size=listing.tensor_parallel_size,
        pipeline_parallel_size=listing.pipeline_parallel_size,
        data_parallel_size=listing.data_parallel_size,
        gpu_memory_utilization=_USUAL,
        max_model_len=_LEAST,
        max_running_requests=_FEW,
        kv_cache_dtype="fp8",
    )
    return Judged(listing, plan(asked))


def judged() -> tuple[Judged, ...]:
    """Every listing, judged."""
    return tuple(judge(listing) for listing in LISTINGS)


def findings(items: tuple[Judged, ...]) -> tuple[Finding, ...]:
    """One finding for each listing that arithmetic contradicts."""
    return tuple(_finding(item) for item in items if not item.plan.fits)


def _finding(item: Judged) -> Finding:
    listing, found = item.listing, item.plan
    alone = found.weights.total > found.budget
    why = "the weights alone exceed it" if alone else "activations and one short request do not fit beside them"
    close = f" It would need a utilisation of {item.needed:.2f}." if item.needed <= 1 else ""
    return Finding(
        code=_CODE,
        severity=Severity.DISAGREE,
        message=(
            f"{listing.model} on {listing.layout}: {found.weights.total / GIB:.1f} GiB of weights a GPU, "
            f"{found.budget / GIB:.1f} GiB at a utilisation of {_USUAL:.2f}: {why}.{close}"
        ),
        fix="take more GPUs or a smaller checkpoint, whatever the page lists",
        source="listed by: " + "; ".join(PAGES[name] for name in listing.who),
        where=listing.layout,
    )
