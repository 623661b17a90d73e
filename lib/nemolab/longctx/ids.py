"""Prompts as token ids: the server's template around a message, learnt from the server, and answers no parser saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nemolab.client.endpoint import Endpoint
from nemolab.client.stream import StreamResult, stream_chat
from nemolab.core.errors import NemolabError
from nemolab.longctx.calibrate import TEXTS
from nemolab.longctx.count import server_ids
from nemolab.longctx.tokens import Counter

if TYPE_CHECKING:
    import aiohttp

_OPEN, _CLOSED = "<think>", "</think>"
_TEXT = "send the text: send=text, which is the default"


@dataclass(frozen=True, slots=True)
class Frame:
    """The template's ids around a user message.

    Attributes:
        before, after: the message; together as many as the template adds.
        thinks: the template ends inside the thoughts, so that an answer begins with them.
    """

    counter: Counter
    before: tuple[int, ...]
    after: tuple[int, ...]
    thinks: bool

    def ids(self, text: str) -> list[int]:
        """The whole prompt of a message."""
        return [*self.before, *self.counter.ids(text), *self.after]

    def body(self, text: str, extra: dict[str, Any]) -> dict[str, Any]:
        """What a request to `/v1/completions` carries in place of messages and of `extra`.

        The template is applied already. Thoughts end at a mark that some tokenizers call special, and special tokens
        are left out of the text unless asked for.
        """
        rest = {name: value for name, value in extra.items() if name != "chat_template_kwargs"}
        return {"prompt": self.ids(text)} | ({"skip_special_tokens": False} if self.thinks else {}) | rest

    def read(self, got: StreamResult) -> StreamResult:
        """`got` with thoughts and answer apart, as a reasoning parser leaves them; thoughts that never end are all."""
        if not (self.thinks or got.content.lstrip().startswith(_OPEN)):
            return got
        thoughts, _, answer = got.content.partition(_CLOSED)
        thoughts = thoughts.lstrip().removeprefix(_OPEN)
        return replace(
            got,
            reasoning=thoughts,
            content=answer.lstrip(),
            first_reasoning_s=got.first_content_s,
            first_content_s=None,
        )


async def learn(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    counter: Counter,
    extra: dict[str, Any],
    overhead: int,
    total_s: float = 120.0,
) -> Frame:
    """Learn the template's ids from the server, and that it takes a prompt of ids and counts it alike.

    Args:
        extra: what chat requests would carry; it can change the template.
        overhead: tokens that the template adds to a chat message, as `calibrate` found them.

    Raises:
        NemolabError: the server does not tell them, tells others than its chat uses, or takes no ids.
    """
    try:
        found = {await _around(session, endpoint, counter, extra, text) for text in TEXTS}
    except NemolabError as error:
        raise NemolabError(error.what, where=endpoint.base_url, fix=_TEXT) from None
    (before, after), *others = found
    if others:
        raise NemolabError("the template is another for another message", where=endpoint.base_url, fix=_TEXT)
    if len(before) + len(after) != overhead:
        raise NemolabError(
            f"the server tells {len(before) + len(after)} tokens of a template that adds {overhead} in its chat",
            where=endpoint.base_url,
            fix=_TEXT,
        )
    opened, closed = (counter.text(after).rfind(mark) for mark in (_OPEN, _CLOSED))
    frame = Frame(counter, before, after, opened > closed)
    # The template with thoughts is often as long as the one without: its length alone would not show this.
    if frame.thinks and (extra.get("chat_template_kwargs") or {}).get("enable_thinking") is False:
        raise NemolabError(
            "the template that the server tells begins thoughts, although they are turned off",
            where=endpoint.base_url,
            fix=f"{_TEXT}; or leave thinking to the server: thinking_tokens=-1",
        )
    body = frame.body(TEXTS[-1], extra) | {"max_tokens": 1, "temperature": 0}
    got = await stream_chat(session, endpoint, body, stall_s=total_s, total_s=total_s)
    if not got.ok or got.prompt_tokens != len(body["prompt"]):
        what = f"counts {got.prompt_tokens} in" if got.ok else f"answers {got.error_class}: {got.error} to"
        raise NemolabError(
            f"the server {what} a prompt of {len(body['prompt'])} token ids at /completions",
            where=endpoint.base_url,
            fix=_TEXT,
        )
    return frame


async def _around(
    session: aiohttp.ClientSession, endpoint: Endpoint, counter: Counter, extra: dict[str, Any], text: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ids before and after those of `text`, which must stand in the prompt once, as they are alone."""
    whole, own = tuple(await server_ids(session, endpoint, text, extra)), tuple(counter.ids(text))
    places = [at for at in range(len(whole) - len(own) + 1) if whole[at : at + len(own)] == own]
    if len(places) != 1:
        raise NemolabError("the server's tokens of a message are not those of the tokenizer file inside a template")
    return whole[: places[0]], whole[places[0] + len(own) :]
