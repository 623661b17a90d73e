"""Parameters and results of the notebooks `60_train_miniature` and `61_evaluate_miniature`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nemolab.core.contract import Params, Results, Unit
from nemolab.miniature.evaluate import Examination


class TrainParams(Params):
    """Which training is shown, or made."""

    train: Literal["shipped", "smoke", "full"] = Field(
        "shipped", description="shipped: show the log of the shipped weights; smoke, full: train now (extra `train`)"
    )
    folder: str = Field("", description="where a training writes its checkpoint; empty for reports/scratch/miniature")


class TrainResults(Results):
    """What the training took and reached."""

    parameters: Annotated[int, Unit("", "none")] = Field(description="weights, embeddings included")
    steps: Annotated[int, Unit("", "none")] = Field(description="optimiser steps")
    tokens: Annotated[int, Unit("tokens", "none")] = Field(description="tokens seen")
    seconds: Annotated[float, Unit("s", "lower", 0.2)] = Field(description="time of the training")
    longest: Annotated[int, Unit("tokens", "higher")] = Field(description="longest training sequence")
    accuracy: Annotated[float, Unit("", "higher", 0.02)] = Field(
        description="share of whole answers right at the last report, teacher forced, up to 1,024 tokens"
    )
    device: str = Field(description="what it ran on")


class EvaluateParams(Params):
    """Which server is examined, and how much is asked."""

    base_url: str = Field("", description="where the server answers, such as http://127.0.0.1:8080/v1")
    model: str = Field("nemolab-miniature", description="model name to ask for")
    api_key_env: str = Field("", description="environment variable that holds the key, empty for none")
    lengths: str = Field("512,1024,2048,4096,8192,16384,32768,65536", description="prompt lengths in tokens")
    texts: str = Field("6,6,6,6,6,4,5,2", description="texts of each of these lengths")
    present: int = Field(8, ge=1, le=32, description="questions a text whose answer is in it")
    absent: int = Field(2, ge=0, le=32, description="questions a text whose answer is not in it")
    short: int = Field(50, ge=0, le=1000, description="cases each of multi-turn, tool call, tool answer and chat")
    seed: int = Field(1, description="of texts, keys and values")
    timeout_s: float = Field(900.0, gt=0, description="longest time for a request, s")

    @model_validator(mode="after")
    def _readable(self) -> EvaluateParams:
        lengths, texts = _numbers(self.lengths), _numbers(self.texts)
        if not all(256 <= length <= 1_048_576 for length in lengths):
            raise ValueError("lengths go from 256 to 1048576")
        if len(lengths) != len(texts) or not all(texts):
            raise ValueError(f"{len(lengths)} lengths need {len(lengths)} numbers of texts, each at least 1")
        return self

    def examination(self) -> Examination:
        """How much is asked."""
        return Examination(
            lengths=_numbers(self.lengths),
            texts=_numbers(self.texts),
            present=self.present,
            absent=self.absent,
            short=self.short,
            seed=self.seed,
        )


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{text!r} is not numbers with commas between them, such as 512,2048") from None


_Accuracy = Annotated[float | None, Unit("", "higher", 0.02)]


class EvaluateResults(Results):
    """Exact match against the miniature's own limits."""

    asked: Annotated[int, Unit("", "none")] = Field(description="requests made")
    to_8k: _Accuracy = Field(description="exact match up to 8,192 tokens, answer in the text; null if not asked")
    to_8k_low: _Accuracy = Field(description="lower end of its 95 % interval")
    at_32k: _Accuracy = Field(description="exact match at 32,768 tokens; null if not asked")
    at_32k_low: _Accuracy = Field(description="lower end of its 95 % interval")
    at_65k: _Accuracy = Field(description="exact match at 65,536 tokens; null if not asked")
    absent: _Accuracy = Field(description="plain refusals where the key is absent; null if not asked")
    others: _Accuracy = Field(description="multi-turn, tool call, tool answer and chat; null if not asked")
    stopped: _Accuracy = Field(description="answers that ended by themselves")
    good: bool = Field(description="99 % to 8k, 95 % at 32k and 95 % refusals, as far as asked")
