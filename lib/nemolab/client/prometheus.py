"""An engine's `/metrics` as typed values under names of no engine. What a server does not say is None, never zero."""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass

from nemolab.client.endpoint import Endpoint
from nemolab.core.errors import NemolabError


@dataclass(frozen=True, slots=True)
class Metrics:
    """State and totals of a server at one moment.

    Attributes:
        engine: whose names were found, "" if nobody's.
        running, waiting: requests in work and in the queue.
        kv_usage: share of the KV cache in use, 0 to 1; of several engine processes the fullest.
        prompt_tokens: prompt tokens since the start, cached ones among them.
        cached_prompt_tokens: those of them that came from a prefix cache.
        generated_tokens: tokens generated since the start.
        preemptions: requests thrown out of the cache and begun again.
        sums: every sample by name, summed over its labels, for what has no name here.
    """

    engine: str
    running: float | None
    waiting: float | None
    kv_usage: float | None
    prompt_tokens: float | None
    cached_prompt_tokens: float | None
    generated_tokens: float | None
    preemptions: float | None
    sums: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Names:
    """One engine's names; the first that is there counts."""

    prefix: str
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    kv_usage: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    preemptions: tuple[str, ...] = ()
    prompt_without_cached: bool = False


# vLLM 0.22.0: a real scrape. llama.cpp: xllamacpp 2026.10, HELP lines. SGLang 0.5.x and TensorRT-LLM 1.x: their
# metric collectors, and the table of the Kubernetes Gateway API inference extension.
_ENGINES: dict[str, _Names] = {
    "vllm": _Names(
        prefix="vllm:",
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        kv_usage=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        prompt=("vllm:prompt_tokens_total",),
        cached=("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total"),
        generated=("vllm:generation_tokens_total",),
        preemptions=("vllm:num_preemptions_total",),
    ),
    "sglang": _Names(
        prefix="sglang:",
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        kv_usage=("sglang:token_usage",),
        prompt=("sglang:prompt_tokens_total",),
        cached=("sglang:cached_tokens_total",),
        generated=("sglang:generation_tokens_total",),
    ),
    "llamacpp": _Names(
        prefix="llamacpp:",
        running=("llamacpp:requests_processing",),
        waiting=("llamacpp:requests_deferred",),
        kv_usage=("llamacpp:kv_cache_usage_ratio",),
        prompt=("llamacpp:prompt_tokens_total",),
        cached=("llamacpp:prompt_tokens_cached_total",),
        generated=("llamacpp:tokens_predicted_total",),
        prompt_without_cached=True,
    ),
    "trtllm": _Names(
        prefix="trtllm_",
        running=("trtllm_num_requests_running",),
        waiting=("trtllm_num_requests_waiting",),
        kv_usage=("trtllm_kv_cache_utilization",),
    ),
}


def parse(text: str) -> Metrics:
    """A Prometheus text exposition as `Metrics`.

    Raises:
        NemolabError: it is none.
    """
    from prometheus_client.parser import text_string_to_metric_families

    sums: dict[str, float] = {}
    largest: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
                largest[sample.name] = max(largest.get(sample.name, sample.value), sample.value)
    except (ValueError, IndexError, KeyError) as error:
        raise NemolabError(f"not a Prometheus exposition: {error}", where="/metrics") from None
    engine = next((e for e, names in _ENGINES.items() if any(name.startswith(names.prefix) for name in sums)), "")
    names = _ENGINES.get(engine, _Names("", (), ()))
    prompt, cached = _first(sums, names.prompt), _first(sums, names.cached)
    if names.prompt_without_cached and prompt is not None and cached is not None:
        prompt += cached
    return Metrics(
        engine=engine,
        running=_first(sums, names.running),
        waiting=_first(sums, names.waiting),
        kv_usage=_first(largest, names.kv_usage),
        prompt_tokens=prompt,
        cached_prompt_tokens=cached,
        generated_tokens=_first(sums, names.generated),
        preemptions=_first(sums, names.preemptions),
        sums=sums,
    )


def scrape(endpoint: Endpoint, *, timeout_s: float = 5.0) -> Metrics | None:
    """The server's metrics now; None when it has no `/metrics` (a flag of some engines) or does not answer.

    Raises:
        NemolabError: what it answers is no Prometheus exposition.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for path in ("/metrics", "/prometheus/metrics"):  # the second is TensorRT-LLM's
        request = urllib.request.Request(endpoint.root + path, headers=endpoint.headers())
        try:
            with opener.open(request, timeout=timeout_s) as response:
                text = response.read().decode(errors="replace")
        except (urllib.error.URLError, OSError):
            continue
        if not text.lstrip().startswith(("[", "{")):  # TensorRT-LLM's /metrics is JSON
            return parse(text)
    return None


def _first(values: dict[str, float], names: tuple[str, ...]) -> float | None:
    return next((values[name] for name in names if name in values), None)
