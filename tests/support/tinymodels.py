"""Contracts of the notebooks that `tinylab` writes."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit


class TinyParams(Params):
    """What a tiny notebook takes."""

    n: int = Field(default=1, ge=0, le=1000, description="a whole number")
    text: str = Field(default="", description="some text")
    rates: list[float] = Field(default=[1.0], description="some rates")
    api_key_env: str = Field(default="", description="variable that holds the key")


class TinyResults(Results):
    """What a tiny notebook leaves."""

    total: Annotated[float, Unit("things", "higher", noise=0.1)] = Field(description="a sum")
    ok: bool = Field(default=True, description="whether all is well")
    label: Literal["small", "large"] = Field(default="small", description="a choice")
    base_url: str = Field(default="", description="where a server answers")


def measure(seconds: float) -> float:
    """A long call to record: returns how long it took."""
    began = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - began
