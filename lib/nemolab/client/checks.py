"""The checks of a probe, in the order in which they are made. Each returns a sentence, or raises its verdict."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nemolab.client import prometheus
from nemolab.client.attach import model_names
from nemolab.client.parsers import not_thinking, parsed, thinking, tools
from nemolab.client.stream import ErrorClass
from nemolab.client.talk import NUMBER, Talk, choice_of, failed, reasoning_of, skipped, warned
from nemolab.core.errors import NemolabError

_UNICODE = "Grüße, 北京, 🚀 e\u0301 \u200d שלום"


@dataclass(frozen=True, slots=True)
class Check:
    """A check: stable name, what it asks, and how."""

    name: str
    title: str
    run: Callable[[Talk], Awaitable[str]]


async def health(talk: Talk) -> str:
    reply = await talk.get(talk.endpoint.root + "/health")
    if reply.status is None:
        talk.reachable = False
        raise failed(_nobody(talk, reply.error), "start the server; `nemolab servers` lists those of this machine")
    if reply.status == 404:
        raise skipped("the server has no /health")
    if reply.status == 503:
        raise failed("the server still loads, or its engine is dead", "wait for it; then read its log")
    if reply.status >= 500:
        raise failed(
            reply.message,
            "if every request answers so, the web framework does not fit: install from the release's lock",
            "measured: vLLM 0.22.0 with fastapi 0.138",
        )
    if not reply.ok:
        raise failed(reply.message, "check address and key")
    return f"answered in {reply.seconds * 1e3:.0f} ms"


def _nobody(talk: Talk, error: str) -> str:
    from nemolab.engines.process import ended

    gone = ended(talk.endpoint.base_url)
    if gone is None or gone.ended is None:
        return f"nobody answers: {error}"
    return f"nobody answers: {gone.id} ended at {gone.ended.at[11:16]}, {gone.ended.reason}"


async def models(talk: Talk) -> str:
    reply = await talk.get(talk.endpoint.base_url + "/models")
    names = model_names(reply)
    if not names:
        raise failed(f"no model is listed: {reply.message}", "check the address: it ends in /v1")
    if talk.endpoint.model not in names:
        raise failed(
            f"{talk.endpoint.model!r} is not listed, but {', '.join(names)}",
            "ask for a listed name, or set the served model name",
            "NVIDIA/NemoClaw#11045",
        )
    return ", ".join(names)


async def chat(talk: Talk) -> str:
    talk.generated_before = await _generated(talk)
    reply = await talk.chat()
    message, talk.finish_reason = choice_of(reply)
    talk.answer = message
    talk.usage = reply.document.get("usage") or {}
    parsed(talk, message, talk.finish_reason)
    if NUMBER not in str(message["content"]):
        raise warned(
            f"the answer lacks {NUMBER}: {message['content'][:120]!r}",
            "the API works; check template, precision and kernels if the model should know this",
            "vllm#52308: fluent and wrong with an automatically chosen MoE backend",
        )
    return f"right answer in {reply.seconds:.2f} s"


async def streaming(talk: Talk) -> str:
    talk.streamed = result = await talk.stream()
    if not result.ok:
        raise failed(f"{result.error_class}: {result.error}", "read the server's log")
    if talk.answer is None:
        raise skipped("nothing to compare with")
    whole, thoughts = str(talk.answer.get("content") or ""), reasoning_of(talk.answer)
    if bool(thoughts) != bool(result.reasoning) or bool(whole) != bool(result.content):
        raise failed(
            "streamed and whole answers are split differently into reasoning and content",
            "another version, or another parser: the streaming parser is a program of its own",
            "eugr/spark-vllm-docker#234, sglang#30533",
        )
    if result.finish_reason != talk.finish_reason:
        raise failed(f"finish_reason {result.finish_reason} streamed, {talk.finish_reason} whole", "report it")
    if (whole.strip(), thoughts.strip()) != (result.content.strip(), result.reasoning.strip()):
        raise warned(
            "streamed and whole answers differ at temperature 0",
            "expected of kernels whose rounding depends on the batch; otherwise look at the streaming parser",
        )
    return f"equal in {result.chunks} chunks"


async def stop_reason(talk: Talk) -> str:
    if talk.finish_reason is None:
        raise skipped("no answer to look at")
    if talk.finish_reason == "length":
        raise warned(
            f"the answer did not end within {talk.max_tokens} tokens",
            "raise max_tokens; if answers never end, check the end-of-turn token of the tokenizer",
        )
    if talk.finish_reason != "stop":
        raise failed(f"finish_reason is {talk.finish_reason!r}", "a complete answer ends with stop")
    return "stop"


async def max_tokens(talk: Talk) -> str:
    reply = await talk.chat(max_tokens=3)
    _, finish_reason = choice_of(reply)
    count = (reply.document.get("usage") or {}).get("completion_tokens")
    if finish_reason != "length" or (count is not None and count > 3):
        raise failed(f"{count} tokens and finish_reason {finish_reason!r} for max_tokens 3", "report it to the engine")
    return f"{count} tokens, finish_reason length"


async def usage(talk: Talk) -> str:
    prompt, completion, total = (talk.usage.get(f"{name}_tokens") for name in ("prompt", "completion", "total"))
    if prompt is None or completion is None:
        raise failed("no usage in the answer", "token counts cannot be trusted without it")
    if total != prompt + completion:
        raise failed(f"total {total} is not {prompt} + {completion}", "report it to the engine")
    if talk.streamed and talk.streamed.ok:
        if talk.streamed.prompt_tokens is None:
            raise failed("no usage in the stream despite stream_options.include_usage", "a later version of the engine")
        if talk.streamed.prompt_tokens != prompt:
            raise failed(f"{talk.streamed.prompt_tokens} prompt tokens streamed, {prompt} whole", "report it")
    counted = await _count_prompt(talk)
    if counted is None:
        return f"{prompt} + {completion} tokens; the server has no way to count the prompt apart"
    if counted != prompt:
        raise failed(f"usage says {prompt} prompt tokens, /tokenize counts {counted}", "report it to the engine")
    return f"{prompt} + {completion} tokens, as /tokenize counts them"


async def _count_prompt(talk: Talk) -> int | None:
    """Tokens of the first question by the server's own tokenizer, template included."""
    root, messages = talk.endpoint.root, talk.body()["messages"]
    if talk.endpoint.engine == "llamacpp":
        applied = await talk.get(root + "/apply-template", {"messages": messages})
        if not applied.ok:
            return None
        body = {"content": applied.document["prompt"], "add_special": True, "parse_special": True}
        reply = await talk.get(root + "/tokenize", body)
    else:
        body = {"model": talk.endpoint.model, "messages": messages, "add_generation_prompt": True}
        reply = await talk.get(root + "/tokenize", body)
    if not reply.ok or not isinstance(reply.document, dict) or "tokens" not in reply.document:
        return None
    return len(reply.document["tokens"])


async def bad_request(talk: Talk) -> str:
    url = talk.endpoint.base_url + "/chat/completions"
    for what, reply in (
        ("broken JSON", await talk.get(url, raw=b'{"messages": [')),
        ("messages of a wrong type", await talk.get(url, {"model": talk.endpoint.model, "messages": 7})),
    ):
        if reply.status is None or reply.status >= 500 or reply.status < 400:
            raise failed(f"{what}: {reply.message}", "clients retry a 5xx; a bad request must be a 4xx")
        if not isinstance(reply.document, dict):
            raise warned(f"{what}: HTTP {reply.status} without a JSON error", "clients will not find the reason")
    return "4xx with a JSON error"


async def unicode(talk: Talk) -> str:
    root, model = talk.endpoint.root, talk.endpoint.model
    key = "content" if talk.endpoint.engine == "llamacpp" else "prompt"
    tokens = await talk.get(root + "/tokenize", {"model": model, key: _UNICODE, "add_special_tokens": False})
    if tokens.ok and isinstance(tokens.document, dict) and "tokens" in tokens.document:
        back = await talk.get(root + "/detokenize", {"model": model, "tokens": tokens.document["tokens"]})
        text = (back.document or {}).get(key) if isinstance(back.document, dict) else None
        if back.ok and text is not None:
            if text != _UNICODE:
                raise failed(f"{_UNICODE!r} came back as {text!r}", "the tokenizer does not keep all bytes")
            return "text comes back from the tokenizer as it went"
    reply = await talk.chat(messages=[{"role": "user", "content": _UNICODE}])
    message, _ = choice_of(reply)
    if "\ufffd" in str(message.get("content")):
        raise failed("the answer holds replacement characters", "the engine cuts characters in two")
    return "accepted; no tokenizer route to compare with"


async def logprobs(talk: Talk) -> str:
    reply = await talk.chat(logprobs=True, top_logprobs=1, max_tokens=2)
    if reply.status in (400, 422, 501):
        raise skipped(reply.message)
    choice_of(reply)
    listed = ((reply.document["choices"][0].get("logprobs") or {}).get("content")) or []
    if not listed:
        raise skipped("the server gives none")
    values = [item.get("logprob") for item in listed]
    if not all(isinstance(value, int | float) and math.isfinite(value) and value <= 0 for value in values):
        raise failed(
            f"log-probabilities {values}",
            "NaN points to numeric trouble: prefix caching of Mamba state in mode `all`, or an attention backend",
            "vllm#34865, sglang#27814",
        )
    return f"{len(values)} tokens, finite"


async def concurrency(talk: Talk) -> str:
    asked = {"wild-crane": NUMBER, "quiet-harbor": "3950218"}
    results = await asyncio.gather(*(talk.stream(key=key, number=number) for key, number in asked.items()))
    for (key, number), result in zip(asked.items(), results, strict=True):
        if not result.ok:
            fix = "more slots, or a longer time-out" if result.error_class is ErrorClass.TIMEOUT else "read the log"
            raise failed(f"{key}: {result.error_class}: {result.error}", fix)
        others = [n for n in asked.values() if n != number]
        if any(other in result.content for other in others):
            raise failed(f"{key} got the other request's answer", "stop using this server: requests mix")
    return f"two at once, {max(result.total_s for result in results):.2f} s"


async def metrics(talk: Talk) -> str:
    try:
        found = await asyncio.to_thread(prometheus.scrape, talk.endpoint)
    except NemolabError as error:
        raise warned(str(error), "a proxy in between?") from None
    if found is None:
        raise warned("no /metrics", "llama-server: --metrics; SGLang: --enable-metrics; TensorRT-LLM: see its docs")
    if found.running is None or found.waiting is None:
        raise warned("/metrics has no name that is known here", "dashboards need to be told this engine's names")
    if found.generated_tokens is not None and talk.generated_before is not None:
        grown = found.generated_tokens - talk.generated_before
        if grown < talk.spent:
            raise warned(f"{grown:.0f} tokens counted, {talk.spent} received", "counters lag or miss requests")
    return f"{found.engine}: {found.running:.0f} running, {found.waiting:.0f} waiting"


async def _generated(talk: Talk) -> float | None:
    try:
        found = await asyncio.to_thread(prometheus.scrape, talk.endpoint)
    except NemolabError:
        return None
    return found.generated_tokens if found else None


CHECKS: tuple[Check, ...] = (
    Check("health", "Does it say that it is healthy?", health),
    Check("models", "Is the model listed?", models),
    Check("chat", "Does it answer, and right?", chat),
    Check("stream", "Does a streamed answer equal a whole one?", streaming),
    Check("thinking", "Thinking on: reasoning and answer apart?", thinking),
    Check("no-thinking", "Thinking off: only the answer?", not_thinking),
    Check("stop", "Does an answer end by itself?", stop_reason),
    Check("max-tokens", "Is max_tokens kept?", max_tokens),
    Check("usage", "Are tokens counted right?", usage),
    Check("bad-request", "Is a bad request refused politely?", bad_request),
    Check("unicode", "Does text of any script survive?", unicode),
    Check("tools", "Does it call tools?", tools),
    Check("logprobs", "Does it give log-probabilities?", logprobs),
    Check("concurrency", "Do two requests stay apart?", concurrency),
    Check("metrics", "Does it count for Prometheus?", metrics),
)
