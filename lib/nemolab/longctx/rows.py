"""What a suite asks and what it leaves: one row a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from nemolab.longctx.failures import Outcome
from nemolab.longctx.sample import Control

Send = Literal["text", "ids"]


@dataclass(frozen=True, slots=True)
class Suite:
    """What to ask.

    Attributes:
        tasks: names in `nemolab.longctx.tasks`.
        lengths: of prompts in tokens, the server's template included; answers come on top.
        haystacks: texts for each task and length; a task that asks one question a text gets `questions` times as many.
        questions: asked of each text, where the task can ask several.
        seed: of everything.
        controls: ask each question without its text too, and one for a key that is not there.
        thinking: `enable_thinking` of the chat template; None leaves the server's default.
        thinking_tokens: room for thoughts, on top of the answer.
        budget_s: for each length, after which no further text is begun; None for no limit.
        stop_at: stop a length when a share above or below this is certain; None never does.
        recheck: wrong answers a length that are asked again without the cache, to tell the cache from the model.
        cold: ask every question without the prefix cache, where the server knows how (llama.cpp, vLLM, SGLang).
        together: questions of one text in flight at the same time; 1 asks them one after another.
        stall_s: a stream without a byte for so long, once begun, is cut.
        documents: text files to hide needles in.
        send: "text" sends a chat message. "ids" sends the ids of the whole prompt, template included, to
            `/v1/completions`: the server has nothing to tokenize, which for a million tokens takes it seconds on its
            event loop. No reasoning parser sees the answer then; it is split at `</think>` here.
        extra_body: merged into every request.
    """

    tasks: tuple[str, ...]
    lengths: tuple[int, ...]
    haystacks: int = 4
    questions: int = 8
    seed: int = 0
    controls: bool = True
    thinking: bool | None = False
    thinking_tokens: int = 0
    budget_s: float | None = None
    stop_at: float | None = None
    recheck: int = 2
    cold: bool = False
    together: int = 1
    stall_s: float = 120.0
    documents: tuple[str, ...] = ()
    send: Send = "text"
    extra_body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One request.

    Attributes:
        id: `task/length/seed/question`, and the control's name; a suite is resumed by it.
        seed: of the text.
        built, counted: tokens by the builder and by the server.
        cached: of those, from the prefix cache, where the server says so.
        warm: whether the same text was asked before, so that its prefix may be cached.
        depth, offset: of the needle asked for: share of the haystack, and tokens from the start of the message.
        sha256: of the prompt; the seed makes it again.
        given: ids in the answer.
        ruler: RULER's string match.
        answer: cut to 500 characters.
        by_ids: whether token ids were sent, so that the server had nothing to tokenize.
    """

    id: str
    task: str
    length: int
    seed: int
    question: int
    control: Control
    built: int
    counted: int | None
    cached: int | None
    warm: bool
    depth: float | None
    offset: int | None
    sha256: str
    expected: tuple[str, ...]
    given: tuple[str, ...]
    answer: str
    outcome: Outcome
    why: str
    correct: bool
    precision: float
    recall: float
    ruler: float
    finish_reason: str | None
    ttft_s: float | None
    total_s: float
    thought_chars: int
    completion_tokens: int | None
    lag_s: float
    by_ids: bool = False


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """A whole suite.

    Attributes:
        overhead: tokens that the server's template adds.
        counter: what counted tokens.
        rows: in the order asked.
        build_s: CPU seconds spent on building prompts.
        notes: what a reader must know, in sentences.
    """

    suite: Suite
    overhead: int
    counter: str
    rows: tuple[Row, ...]
    build_s: float
    notes: tuple[str, ...] = ()
