"""What the server adds to a prompt, and what it counts in one: so that lengths are exact after its template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nemolab.client.endpoint import Endpoint
from nemolab.client.session import open_session
from nemolab.client.stream import StreamResult, stream_chat
from nemolab.core import aio
from nemolab.core.errors import NemolabError
from nemolab.longctx.count import server_ids
from nemolab.longctx.tokens import Counter

if TYPE_CHECKING:
    import aiohttp

# Plain, and with what tokenizers disagree on: a server with another tokenizer gives itself away.
TEXTS = (
    "Here we go.",
    "One of the special magic numbers for brave-otter is: 9482716.\nnaïve 5d4c1e0a-93f7-4b52-8d5e-0f1a2b3c4d5e\n"
    "What is the special magic number for brave-otter mentioned in the provided text?",
)


async def calibrate(
    session: aiohttp.ClientSession, endpoint: Endpoint, counter: Counter, extra: dict[str, Any], total_s: float = 120.0
) -> int:
    """Tokens that the server's template adds to a user message, by two tiny requests of the kind that will follow.

    Not by `/tokenize`, where there is one: it renders the template on a path of its own, and knows nothing of what a
    proxy in front of the server does to a prompt.

    Args:
        extra: what every request will carry, because it can change the template (`enable_thinking`).

    Raises:
        NemolabError: no answer, no `usage`, or another tokenizer than the counter's.
    """
    seen = []
    for text in TEXTS:
        got = await _tiny(session, endpoint, text, extra, total_s)
        if not got.ok or got.prompt_tokens is None:
            what = f"{got.error_class}: {got.error}" if not got.ok else "no usage in its answer"
            raise NemolabError(
                f"a tiny request did not tell its tokens: {what}",
                where=endpoint.base_url,
                fix="run 30_probe_api on it; for vLLM and SGLang usage comes with stream_options",
            )
        seen.append(got.prompt_tokens - counter.count(text))
    if len(set(seen)) > 1:
        raise NemolabError(
            f"the server counts other tokens than the tokenizer file: {' and '.join(map(str, seen))} more",
            where=endpoint.base_url,
            fix="give the tokenizer.json of the model that is served",
        )
    return seen[0]


def measure(endpoint: Endpoint, counter: Counter, extra: dict[str, Any]) -> int:
    """`calibrate` from plain code."""

    async def work() -> int:
        async with open_session(endpoint) as session:
            return await calibrate(session, endpoint, counter, extra)

    return aio.run(work())


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of a prompt by the server, and how it was asked: "/tokenize", or "usage", which cost a prefill."""

    tokens: int
    by: Literal["/tokenize", "usage"]


def confirm(endpoint: Endpoint, text: str, extra: dict[str, Any], total_s: float = 3600.0) -> Counted:
    """Tokens that the server itself counts for a message, template included.

    By its tokenizer where it shows it, which costs no prefill; else by the usage of a request for one token.

    Raises:
        NemolabError: no answer, or none that says.
    """

    async def work() -> Counted:
        async with open_session(endpoint) as session:
            try:
                return Counted(len(await server_ids(session, endpoint, text, extra, total_s)), "/tokenize")
            except NemolabError:
                got = await _tiny(session, endpoint, text, extra, total_s)
        if not got.ok or got.prompt_tokens is None:
            what = f"{got.error_class}: {got.error}" if not got.ok else "no usage in its answer"
            raise NemolabError(f"the server did not count the prompt: {what}", where=endpoint.base_url)
        return Counted(got.prompt_tokens, "usage")

    return aio.run(work())


async def _tiny(
    session: aiohttp.ClientSession, endpoint: Endpoint, text: str, extra: dict[str, Any], total_s: float
) -> StreamResult:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 1, "temperature": 0} | extra
    return await stream_chat(session, endpoint, body, stall_s=total_s, total_s=total_s)
