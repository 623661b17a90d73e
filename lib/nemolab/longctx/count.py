"""Tokens of a message as the server itself makes them, template included, without a prefill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nemolab.client.api import Reply, call
from nemolab.client.endpoint import Endpoint
from nemolab.core.errors import NemolabError

if TYPE_CHECKING:
    import aiohttp


async def server_ids(
    session: aiohttp.ClientSession, endpoint: Endpoint, text: str, extra: dict[str, Any], timeout_s: float = 120.0
) -> list[int]:
    """Ids of the whole prompt that a chat completion with this one message would have.

    vLLM (0.22.0, `entrypoints/serve/tokenize`) and SGLang (0.5.23, `openai/serving_tokenize.py`) take messages at
    `/tokenize` and render them as for a chat completion. llama.cpp renders at `/apply-template` and tokenizes text at
    `/tokenize`, where it answers messages with an empty list. TensorRT-LLM's server has neither route
    (`tensorrt_llm/serve/openai_server.py`, main).

    Args:
        extra: what chat requests carry; of it, `chat_template_kwargs` change the template.

    Raises:
        NemolabError: the server has no way to tell. The message says what it answered.
    """
    chat: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
    if kwargs := extra.get("chat_template_kwargs"):
        chat["chat_template_kwargs"] = kwargs

    async def post(path: str, body: dict[str, Any]) -> Reply:
        return await call(session, endpoint, endpoint.root + path, body, timeout_s=timeout_s)

    said = []
    if endpoint.engine != "llamacpp":
        reply = await post("/tokenize", ({"model": endpoint.model} if endpoint.model else {}) | chat)
        if ids := _tokens(reply):
            return ids
        said.append(f"/tokenize: {reply.message if not reply.ok else 'no tokens of messages'}")
    applied = await post("/apply-template", chat)
    if applied.ok and isinstance(prompt := (applied.document or {}).get("prompt"), str):
        # As its chat completions do: a BOS token where the model wants one, and marks of the template as one token.
        reply = await post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})
        if ids := _tokens(reply):
            return ids
        said.append(f"/tokenize: {reply.message if not reply.ok else 'no tokens'}")
    else:
        said.append(f"/apply-template: {applied.message}")
    raise NemolabError(f"the server cannot tell the tokens of a message ({'; '.join(said)})", where=endpoint.base_url)


def _tokens(reply: Reply) -> list[int] | None:
    """The ids in an answer; None where it holds none."""
    found = reply.document.get("tokens") if reply.ok and isinstance(reply.document, dict) else None
    good = isinstance(found, list) and found and all(type(token) is int for token in found)
    return found if good else None
