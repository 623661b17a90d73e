"""The catalogue of checkpoints and the planner: facts as data, and the arithmetic of memory.

plan = models.plan(models.request("ultra-nvfp4", "b200", tensor_parallel_size=4, max_model_len=1 << 20))
plan.fit, plan.cache.block_size, plan.concurrency
"""

from nemolab.models.architecture import Architecture
from nemolab.models.catalogue import entries, find, local, match, names
from nemolab.models.gpus import GpuKind
from nemolab.models.gpus import find as find_gpu
from nemolab.models.gpus import match as match_gpu
from nemolab.models.model import Model
from nemolab.models.planner import Fit, Plan, plan
from nemolab.models.remedies import Remedy, remedies
from nemolab.models.request import Request, request
from nemolab.models.sharding import Parallel, misaligned
from nemolab.models.units import length
from nemolab.models.vllm_cache import CacheConfig, HybridCache, Pool, hybrid_cache

__all__ = [
    "Architecture",
    "CacheConfig",
    "Fit",
    "GpuKind",
    "HybridCache",
    "Model",
    "Parallel",
    "Plan",
    "Pool",
    "Remedy",
    "Request",
    "entries",
    "find",
    "find_gpu",
    "hybrid_cache",
    "length",
    "local",
    "match",
    "match_gpu",
    "misaligned",
    "names",
    "plan",
    "remedies",
    "request",
]
