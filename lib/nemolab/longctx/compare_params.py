"""What notebook 52_compare_long_context takes and leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from nemolab.client.endpoint import Endpoint
from nemolab.core.contract import Params, Results, Unit
from nemolab.core.errors import UsageError
from nemolab.longctx.params import lengths
from nemolab.longctx.rows import Suite


class CompareParams(Params):
    """Parameters of `52_compare_long_context`."""

    base_url: str = Field("", description="where the first server answers, such as http://127.0.0.1:8080/v1")
    model: str = Field("", description="model name to ask the first server for")
    against: Literal["cold cache", "side by side", "other server"] = Field(
        "cold cache", description="what the second row of answers comes from"
    )
    other_url: str = Field("", description="the other server, if against is that")
    other_model: str = Field("", description="its model name, empty for the same")
    api_key_env: str = Field("", description="environment variable that holds the key, empty for none")
    tokenizer: str = Field("miniature", description="path of the model's tokenizer.json, or miniature")
    tasks: str = Field("niah_multikey_1", description="tasks, comma between; nemolab longctx tasks lists them")
    lengths: str = Field("512,2048", description="prompt lengths in tokens, template included; 128K and 1M work")
    haystacks: int = Field(4, ge=1, description="texts for each task and length")
    questions: int = Field(8, ge=2, le=64, description="questions on each text, and in flight at a time side by side")
    thinking_tokens: int = Field(
        0, ge=-1, description="room for thoughts; 0 turns them off, -1 leaves it to the server"
    )
    largest_loss: float = Field(0.05, gt=0, lt=1, description="loss of right answers that would matter")
    seed: int = Field(0, ge=0, description="of texts, needles and questions: the same for both")

    def suites(self) -> tuple[Suite, Suite]:
        """What to ask first and second: the same questions, asked another way where that is what is compared."""
        first = Suite(
            tasks=tuple(name.strip() for name in self.tasks.split(",")),
            lengths=lengths(self.lengths),
            haystacks=self.haystacks,
            questions=self.questions,
            seed=self.seed,
            controls=False,
            thinking=None if self.thinking_tokens < 0 else self.thinking_tokens > 0,
            thinking_tokens=max(0, self.thinking_tokens),
            recheck=0,
        )
        if self.against == "cold cache":
            return first, replace(first, cold=True)
        return first, replace(first, together=self.questions) if self.against == "side by side" else first

    def endpoints(self) -> tuple[Endpoint, Endpoint]:
        """Where to ask first and second.

        Raises:
            UsageError: the other server is to be compared with and has no address.
        """
        first = Endpoint(self.base_url, self.model, api_key_env=self.api_key_env or None)
        if self.against != "other server":
            return first, first
        if not self.other_url:
            raise UsageError("the other server has no address", where="other_url", fix="give it, or another `against`")
        return first, replace(first, base_url=self.other_url, model=self.other_model or self.model)

    def names(self) -> tuple[str, str]:
        """How the two are called in figures."""
        second = {"cold cache": "without cache", "side by side": "side by side", "other server": "other server"}
        return ("first server" if self.against == "other server" else "as usual"), second[self.against]


class CompareResults(Results):
    """Results of `52_compare_long_context`."""

    pairs: Annotated[int, Unit("", "none")] = Field(description="questions answered both times")
    difference: Annotated[float, Unit("", "higher", 0.02)] = Field(
        description="share right of the second minus that of the first"
    )
    difference_low: Annotated[float, Unit("", "higher")] = Field(description="lower end of its 95 % interval")
    difference_high: Annotated[float, Unit("", "higher")] = Field(description="upper end of its 95 % interval")
    p_value: Annotated[float, Unit("", "none")] = Field(description="of McNemar's exact test, all lengths together")
    only_first: Annotated[int, Unit("", "lower")] = Field(description="questions that only the first got right")
    only_second: Annotated[int, Unit("", "none")] = Field(description="questions that only the second got right")
    same_answers: Annotated[float, Unit("", "higher", 0.02)] = Field(description="share of answers equal to the letter")
    ttft_ratio: Annotated[float | None, Unit("", "none")] = Field(
        description="median TTFT of the second over that of the first, longest length"
    )
