"""The openai client for an endpoint, and single HTTP calls where the raw answer matters."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nemolab.client.endpoint import Endpoint

if TYPE_CHECKING:
    import aiohttp
    from openai import AsyncOpenAI, OpenAI

# The openai client insists on a key; servers on loopback want none.
_NO_KEY = "none"


def openai_client(endpoint: Endpoint, *, timeout_s: float = 120.0) -> OpenAI:
    """An openai client: no retries (a repeated long prompt hides the failure, vllm#20520), one time-out.

    Raises:
        UsageError: the endpoint names a key that is not set.
    """
    from openai import OpenAI

    return OpenAI(base_url=endpoint.base_url, api_key=endpoint.key() or _NO_KEY, max_retries=0, timeout=timeout_s)


def async_openai_client(endpoint: Endpoint, *, timeout_s: float = 120.0) -> AsyncOpenAI:
    """The same for asyncio. For measuring use `nemolab.client.stream`: this client's own cost a chunk is large."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=endpoint.base_url, api_key=endpoint.key() or _NO_KEY, max_retries=0, timeout=timeout_s)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one HTTP call.

    Attributes:
        status: None when there was no answer; `error` says why.
        document: the body as JSON, None if it is none.
        text: the body.
        seconds: until the body was there.
    """

    status: int | None
    document: Any = None
    text: str = ""
    error: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.status == 200

    @property
    def message(self) -> str:
        """The error as a person reads it."""
        from nemolab.client.stream import error_text

        if self.error:
            return self.error
        return f"HTTP {self.status}: {error_text(self.document) if self.document is not None else self.text}"[:500]


async def call(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    url: str,
    body: Any = None,
    *,
    raw: bytes | None = None,
    timeout_s: float = 60.0,
) -> Reply:
    """GET `url`, or POST `body` as JSON (or `raw` as it is) to it. Never raises for what the server does."""
    import aiohttp
    import orjson

    began = time.perf_counter()
    data = raw if raw is not None else orjson.dumps(body) if body is not None else None
    headers = endpoint.headers() | ({"Content-Type": "application/json"} if data is not None else {})
    try:
        async with session.request(
            "GET" if data is None else "POST",
            url,
            data=data,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            allow_redirects=False,
        ) as response:
            content = await response.read()
            status = response.status
    except TimeoutError:
        return Reply(None, error=f"no answer within {timeout_s:g} s", seconds=time.perf_counter() - began)
    except (aiohttp.ClientError, OSError) as error:
        return Reply(None, error=str(error) or type(error).__name__, seconds=time.perf_counter() - began)
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = None
    return Reply(status, document, content.decode(errors="replace"), seconds=time.perf_counter() - began)
