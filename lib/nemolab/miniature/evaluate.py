"""Asking the cases of a running server, and counting what was right."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.intervals import Share, wilson
from nemolab.miniature import cases
from nemolab.miniature.cases import Case
from nemolab.miniature.wording import KINDS

if TYPE_CHECKING:
    from openai import OpenAI

Progress = Callable[[float, float | None, str | None], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case.

    Attributes:
        prompt_tokens: as the server counted them.
        stopped: the model ended by itself, or called a tool.
        answer: what it said instead, where that was wrong.
    """

    ability: str
    text: str
    length: int
    depth: float | None
    thinking: bool
    expected: str
    right: bool
    stopped: bool
    prompt_tokens: int
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """How much is asked.

    Attributes:
        lengths: prompt lengths in tokens.
        texts: haystacks of each of these lengths.
        present, absent: questions a text.
        short: cases of each short ability.
    """

    lengths: tuple[int, ...]
    texts: tuple[int, ...]
    present: int
    absent: int
    short: int
    seed: int

    def all(self, tokens: Callable[[str], int]) -> Iterator[Case]:
        """Every case, in the order in which a prompt cache serves best."""
        yield from cases.short(self.short, seed=self.seed)
        for length, texts in zip(self.lengths, self.texts, strict=True):
            for haystack in range(texts):
                yield from cases.retrieval(
                    length, haystack, present=self.present, absent=self.absent, seed=self.seed, tokens=tokens
                )

    @property
    def count(self) -> int:
        """Number of cases, at most."""
        return 4 * self.short + sum(self.texts) * (self.present + self.absent)


def examine(
    base_url: str,
    model: str,
    what: Examination,
    *,
    timeout_s: float,
    api_key_env: str = "",
    progress: Progress | None = None,
) -> list[Outcome]:
    """Ask every case of the server at `base_url`, one after the other, at temperature 0.

    Raises:
        UsageError: no address. NemolabError: the server did not answer, or refused.
    """
    from openai import OpenAI, OpenAIError

    from nemolab.miniature import checkpoint_folder

    if not base_url:
        raise UsageError("base_url is not set", fix="start a server with `nemolab serve miniature`; give its address")
    key = os.environ.get(api_key_env, "") if api_key_env else ""
    client = OpenAI(base_url=base_url, api_key=key or "none", max_retries=0, timeout=timeout_s)
    outcomes: list[Outcome] = []
    for case in what.all(cases.counter(checkpoint_folder())):
        try:
            outcomes.append(_ask(client, model, case))
        except OpenAIError as error:
            asked = f"{case.ability}, {case.length} tokens"
            raise NemolabError(
                f"no answer: {error}", where=f"{base_url} ({asked})", fix="read the server's log"
            ) from None
        if progress:
            progress(len(outcomes), what.count, f"{case.length or 'short'}: {case.ability}")
    return outcomes


def _ask(client: OpenAI, model: str, case: Case) -> Outcome:
    request: dict[str, Any] = {"tools": list(case.tools)} if case.tools else {}
    reply = client.chat.completions.create(
        model=model,
        messages=list(case.messages),  # type: ignore[arg-type]
        temperature=0,
        max_tokens=200,
        extra_body={"chat_template_kwargs": {"enable_thinking": case.thinking}},
        **request,
    )
    choice, usage = reply.choices[0], reply.usage
    said = (choice.message.content or "").strip()
    if case.ability == "tool call":
        said = _argument(choice.message.tool_calls) or said
    right = said == case.expected
    return Outcome(
        ability=case.ability,
        text=case.text,
        length=case.length,
        depth=case.depth,
        thinking=case.thinking,
        expected=case.expected,
        right=right,
        stopped=choice.finish_reason in ("stop", "tool_calls"),
        prompt_tokens=usage.prompt_tokens if usage else 0,
        answer="" if right else said[:300],
    )


def _argument(calls: Sequence[Any] | None) -> str:
    """The one argument of the one call, else nothing."""
    if not calls or len(calls) != 1 or calls[0].function.name != "lookup":
        return ""
    try:
        return str(json.loads(calls[0].function.arguments)["key"])
    except (ValueError, KeyError, TypeError):
        return ""


def share(outcomes: Iterable[Outcome]) -> Share:
    """Right answers with their Wilson interval."""
    rights = [outcome.right for outcome in outcomes]
    return wilson(sum(rights), len(rights))


def found(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Outcomes whose text gives the value."""
    return [outcome for outcome in outcomes if outcome.ability in KINDS]


def by_length(outcomes: Sequence[Outcome]) -> dict[int, Share]:
    """Exact match by prompt length, over questions whose answer is in the text."""
    there = found(outcomes)
    lengths = sorted({outcome.length for outcome in there})
    return {length: share(o for o in there if o.length == length) for length in lengths}


def by_depth(outcomes: Sequence[Outcome], bins: int = 5) -> dict[tuple[float, float], Share]:
    """Exact match by depth of the needle, in `bins` equal bins."""
    there = [(min(int((o.depth or 0.0) * bins), bins - 1), o) for o in found(outcomes)]
    return {(b / bins, (b + 1) / bins): share(o for at, o in there if at == b) for b in range(bins)}


def by_ability(outcomes: Sequence[Outcome]) -> dict[str, Share]:
    """Right answers by ability, and by thinking, text and stopping."""
    abilities = sorted({outcome.ability for outcome in outcomes})
    shares = {ability: share(o for o in outcomes if o.ability == ability) for ability in abilities}
    there = found(outcomes)
    shares["thinking on"] = share(o for o in there if o.thinking)
    shares["thinking off"] = share(o for o in there if not o.thinking)
    for flavour in sorted({o.text for o in there}):
        shares[f"text of {flavour}"] = share(o for o in there if o.text == flavour)
    shares["stops by itself"] = wilson(sum(o.stopped for o in outcomes), len(outcomes))
    return shares
