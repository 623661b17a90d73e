"""What notebook 51_validate_long_context takes and leaves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nemolab.client.endpoint import Endpoint
from nemolab.core.contract import Params, Results, Unit
from nemolab.longctx.rows import Send, Suite
from nemolab.models import units


def lengths(text: str) -> tuple[int, ...]:
    """Lengths in tokens from `"512,128K,1M"`, suffixes as vLLM reads them: `K` and `M` are binary, `k` and `m` not.

    Raises:
        UsageError: something else.
    """
    return tuple(units.length(part, where="lengths") for part in text.split(","))


class ContextParams(Params):
    """Parameters of `51_validate_long_context`."""

    base_url: str = Field("", description="where the server answers, such as http://127.0.0.1:8080/v1")
    model: str = Field("", description="model name to ask for")
    api_key_env: str = Field("", description="environment variable that holds the key, empty for none")
    tokenizer: str = Field("miniature", description="path of the model's tokenizer.json, or miniature")
    tasks: str = Field("niah_multikey_1", description="tasks, comma between; nemolab longctx tasks lists them")
    lengths: str = Field("512,2048,8192", description="prompt lengths in tokens, template included; 128K and 1M work")
    haystacks: int = Field(4, ge=1, description="texts for each task and length")
    questions: int = Field(8, ge=1, le=64, description="questions on each text")
    budget_s: float = Field(4.0, ge=0, description="seconds for each length, no new text after them; 0 for no limit")
    wanted_share: float = Field(0.8, gt=0, lt=1, description="share of right answers that a length must prove")
    thinking_tokens: int = Field(
        0, ge=-1, description="room for thoughts; 0 turns them off, -1 leaves it to the server"
    )
    stop_early: bool = Field(False, description="end a length as soon as it is settled")
    documents: str = Field("", description="text files to hide needles in, comma between; empty for our own prose")
    send: Send = Field("text", description="text of a message, or ids of tokens: the server tokenizes nothing then")
    roofline: str = Field("", description="to hold times against: a profile, or model, GPU and number of GPUs")

    def endpoint(self) -> Endpoint:
        """Where to ask."""
        return Endpoint(self.base_url, self.model, api_key_env=self.api_key_env or None)

    def suite(self) -> Suite:
        """What to ask."""
        return Suite(
            tasks=tuple(name.strip() for name in self.tasks.split(",")),
            lengths=lengths(self.lengths),
            haystacks=self.haystacks,
            questions=self.questions,
            thinking=None if self.thinking_tokens < 0 else self.thinking_tokens > 0,
            thinking_tokens=max(0, self.thinking_tokens),
            budget_s=self.budget_s or None,
            stop_at=self.wanted_share if self.stop_early else None,
            documents=tuple(path.strip() for path in self.documents.split(",") if path.strip()),
            send=self.send,
        )


class ContextResults(Results):
    """Results of `51_validate_long_context`."""

    holds_to_tokens: Annotated[int, Unit("tokens", "higher")] = Field(
        description="longest length up to which every length proves the wanted share; 0 for none"
    )
    longest_tokens: Annotated[int, Unit("tokens", "higher")] = Field(description="longest length with an answer")
    correct_share: Annotated[float | None, Unit("", "higher", 0.02)] = Field(
        description="share of right answers at the longest length"
    )
    correct_low: Annotated[float | None, Unit("", "higher", 0.05)] = Field(
        description="lower end of its 95 % interval, for the number of answers and texts"
    )
    answers: Annotated[int, Unit("", "none")] = Field(description="answers at the longest length")
    wrong_key_share: Annotated[float | None, Unit("", "higher", 0.05)] = Field(
        description="share of questions for an absent key that were answered without inventing a value"
    )
    leaks: Annotated[int, Unit("", "lower")] = Field(description="questions answered right without their text")
    not_answered: Annotated[int, Unit("", "lower")] = Field(description="requests that got no answer")
    suspect: Annotated[int, Unit("", "lower")] = Field(
        description="answers to another prompt than the one built, or changed by a cache"
    )
    length_error_tokens: Annotated[int | None, Unit("tokens", "lower")] = Field(
        description="largest difference between tokens built and tokens counted by the server"
    )
    ttft_cold_s: Annotated[float | None, Unit("s", "lower", 0.2)] = Field(
        description="median TTFT of the first question on a text, longest length"
    )
    ttft_warm_s: Annotated[float | None, Unit("s", "lower", 0.3)] = Field(
        description="median TTFT of further questions on the same text, longest length"
    )
