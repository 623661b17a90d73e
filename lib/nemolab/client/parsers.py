"""Checks of the parsers between a model's text and the API: reasoning and tool calls."""

from __future__ import annotations

import json
from typing import Any

from nemolab.client.talk import KEY, Talk, choice_of, failed, reasoning_of, skipped, warned

_TAGS = ("<think>", "</think>", "<tool_call>")
# Names of the parsers for this model family: engine sources of these versions, and the model cookbooks.
_PARSER = {
    "vllm": "--reasoning-parser nemotron_v3",
    "sglang": "--reasoning-parser nemotron_3",
    "trtllm": "--reasoning_parser nano-v3",
    "llamacpp": "--reasoning-format deepseek, and a chat template whose think tags are not special tokens",
}
_TOOLS = {
    "vllm": "--enable-auto-tool-choice --tool-call-parser qwen3_coder",
    "sglang": "--tool-call-parser qwen3_coder",
    "trtllm": "--tool_parser qwen3_coder",
    "llamacpp": "a chat template that knows tools (--jinja)",
}


def parsed(talk: Talk, message: dict[str, Any], finish_reason: str | None) -> None:
    """Whether thoughts and answer came apart as they should."""
    content, reasoning = message.get("content"), reasoning_of(message)
    parser = _PARSER.get(talk.endpoint.engine, "the engine's reasoning parser for this model")
    if not content and reasoning and finish_reason == "length":
        raise warned(f"thinking used up max_tokens ({talk.max_tokens})", "raise max_tokens", "omlx#3772")
    if not content and reasoning:
        raise failed(
            "the answer was swallowed as reasoning: content is empty although the model stopped by itself",
            f"{parser}; in the tokenizer, think tags must not be flagged special, or the parser never sees them",
            "measured: vLLM 0.22.0, nemotron_v3",
        )
    if not content:
        raise failed("no content", "look at the finish_reason and the server's log", "mlx-vlm#1068")
    if any(tag in content for tag in _TAGS):
        raise failed(f"tags in the content: {content[:120]!r}", parser, "ai-dynamo/dynamo#11251")


async def thinking(talk: Talk) -> str:
    reply = await talk.chat(chat_template_kwargs={"enable_thinking": True})
    if reply.status in (400, 422):
        raise skipped(f"the server refuses chat_template_kwargs: {reply.message}")
    message, finish_reason = choice_of(reply)
    talk.thinks = bool(reasoning_of(message)) or "<think>" in str(message.get("content"))
    parsed(talk, message, finish_reason)
    if not talk.thinks:
        raise skipped("the model does not think, or the server does not show it")
    return f"{len(reasoning_of(message))} characters of reasoning, then the answer"


async def not_thinking(talk: Talk) -> str:
    reply = await talk.chat(chat_template_kwargs={"enable_thinking": False})
    if reply.status in (400, 422):
        raise skipped(f"the server refuses chat_template_kwargs: {reply.message}")
    message, _ = choice_of(reply)
    if not message.get("content"):
        raise failed(
            "no content with thinking off: it came as reasoning or not at all",
            "a parser that knows the empty think pair, or a later version",
            "NVIDIA/TensorRT-LLM#14502",
        )
    if reasoning_of(message):
        raise failed("reasoning although enable_thinking is false", "the chat template does not honour the switch")
    return "content only"


async def tools(talk: Talk) -> str:
    function = {
        "name": "lookup",
        "description": "Find the value of a key.",
        "parameters": {
            "type": "object",
            "properties": {"key": {"type": "string", "description": "The key to look up."}},
            "required": ["key"],
        },
    }
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": f"What is the special magic number for {KEY}?"}],
        "tools": [{"type": "function", "function": function}],
    }
    wiring = _TOOLS.get(talk.endpoint.engine, "the engine's tool call parser for this model")
    reply = await talk.chat(**body)
    if reply.status is not None and 400 <= reply.status < 500:
        if "tool" in reply.message.lower():
            raise warned(f"tools are refused: {reply.message}", wiring, "model cookbooks")
        raise skipped(reply.message)
    message, finish_reason = choice_of(reply)
    calls = message.get("tool_calls") or []
    if not calls:
        talk.calls_tools = False
        for place, text in (("content", str(message.get("content"))), ("reasoning", reasoning_of(message))):
            if "<tool_call>" in text or "<function=" in text:
                raise failed(f"the tool call stayed in the {place}", wiring, "vllm#22975, sglang#30533")
        raise skipped("the model answered without a call")
    talk.calls_tools = True
    call = calls[0]["function"]
    try:
        arguments = json.loads(call["arguments"])
    except (TypeError, ValueError):
        raise failed(f"arguments are no JSON text: {call['arguments']!r}", wiring) from None
    if call["name"] != "lookup" or not isinstance(arguments, dict):
        raise failed(f"called {call['name']}({call['arguments']})", wiring)
    if finish_reason != "tool_calls":
        raise warned(f"finish_reason is {finish_reason!r} for a tool call", "agents look for tool_calls")
    streamed = await talk.stream(**body)
    if not streamed.tool_calls:
        raise failed(
            "the call is lost when streamed", "qwen3_xml in place of qwen3_coder, or later", "noonghunna/club-3090#145"
        )
    if streamed.tool_calls[0]["function"] != call:
        raise warned("the streamed call differs from the whole one", "compare at temperature 0 again")
    return f"lookup({call['arguments']}), also streamed"
