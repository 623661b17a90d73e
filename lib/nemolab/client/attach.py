"""Any OpenAI-compatible server as an endpoint: asked what it serves, and recognised where it shows what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nemolab.client.api import Reply, call
from nemolab.client.endpoint import Endpoint
from nemolab.client.session import open_session
from nemolab.core import aio
from nemolab.core.errors import NemolabError, UsageError

if TYPE_CHECKING:
    import aiohttp

# `owned_by` in /v1/models, as each engine's source spells it.
_OWNERS = {"llamacpp": "llamacpp", "vllm": "vllm", "sglang": "sglang", "tensorrt_llm": "trtllm"}


def attach(base_url: str, model: str = "", *, api_key_env: str | None = None, timeout_s: float = 10.0) -> Endpoint:
    """The endpoint at `base_url`, with the model it serves and the engine it is.

    Args:
        base_url: with or without the closing `/v1`.
        model: the one to use; "" takes the only one there is.

    Raises:
        UsageError: several models and none named, or the named one is not served.
        NemolabError: nobody answers, or not as an OpenAI-compatible server does.
    """
    url = base_url.rstrip("/")
    if not url.endswith("/v1"):
        url += "/v1"
    return aio.run(_attach(Endpoint(url, model, api_key_env=api_key_env), timeout_s))


async def _attach(endpoint: Endpoint, timeout_s: float) -> Endpoint:
    async with open_session(endpoint) as session:
        listed = await call(session, endpoint, endpoint.base_url + "/models", timeout_s=timeout_s)
        names = model_names(listed)
        if not names:
            raise NemolabError(
                f"no OpenAI-compatible server answers: {listed.message}",
                where=endpoint.base_url,
                fix="check address and key; a server that still loads answers later",
            )
        if endpoint.model and endpoint.model not in names:
            raise UsageError(
                f"model {endpoint.model!r} is not served", where=endpoint.base_url, fix=f"one of: {', '.join(names)}"
            )
        if not endpoint.model and len(names) > 1:
            raise UsageError("several models are served", where=endpoint.base_url, fix=f"name one: {', '.join(names)}")
        engine, version = await recognise(session, endpoint, listed)
        return replace(endpoint, model=endpoint.model or names[0], engine=engine, engine_version=version)


def model_names(listed: Reply) -> list[str]:
    """Names in an answer of `/v1/models`; [] if it is none."""
    data = listed.document.get("data") if isinstance(listed.document, dict) and listed.ok else None
    return [str(item["id"]) for item in data if isinstance(item, dict) and "id" in item] if data else []


async def recognise(session: aiohttp.ClientSession, endpoint: Endpoint, listed: Reply) -> tuple[str, str]:
    """Engine and version, "" where the server does not show them."""
    first: dict[str, Any] = listed.document["data"][0] if model_names(listed) else {}
    engine = _OWNERS.get(str(first.get("owned_by", "")).lower(), "")
    version = ""
    for path, key in (("/version", "version"), ("/get_server_info", "version")):
        if engine in ("llamacpp", ""):
            break
        reply = await call(session, endpoint, endpoint.root + path, timeout_s=5.0)
        if reply.ok and isinstance(reply.document, dict) and reply.document.get(key):
            version = str(reply.document[key])
            break
    return engine, version
