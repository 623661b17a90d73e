"""What `notebooks/_template.ipynb` measures: how fast this machine hashes. Small, real, and the same shape as the rest.

Copy the notebook and this module's three parts: parameters, results, and the function that does the long work.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.core.finding import Finding, Severity

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class ExampleParams(Params):
    """Parameters of the template notebook."""

    sizes_mib: list[int] = Field([1, 2, 4], description="block sizes to hash, MiB", min_length=1)
    repeats: int = Field(3, ge=1, le=100, description="measurements a size")
    wanted: float = Field(50.0, gt=0, description="rate that is enough, MiB/s")


class ExampleResults(Results):
    """Results of the template notebook."""

    rate: Annotated[float, Unit("MiB/s", "higher", noise=0.2)] = Field(description="median rate of the largest block")
    enough: Annotated[bool, Unit("", "equal")] = Field(description="whether the rate is what was wanted")


@dataclass(frozen=True)
class Rate:
    """Rates of one block size.

    Attributes:
        size_mib: of the block, MiB.
        rates: one a repeat, MiB/s.
    """

    size_mib: int
    rates: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median rate, MiB/s; of an even number the lower of the two in the middle."""
        return sorted(self.rates)[(len(self.rates) - 1) // 2]


def hash_rates(
    sizes_mib: Sequence[int], repeats: int, progress: Callable[[float, float, str], None] | None = None
) -> list[Rate]:
    """Hash blocks with SHA-256 and time it; the long call that the notebook records.

    Args:
        progress: called with what is done, the total and what comes next.
    """
    found = []
    for number, size in enumerate(sizes_mib):
        if progress:
            progress(number, len(sizes_mib), f"{size} MiB")
        block = bytes(size << 20)
        rates = []
        for _ in range(repeats):
            start = time.perf_counter()
            hashlib.sha256(block).digest()
            rates.append(size / (time.perf_counter() - start))
        found.append(Rate(size, tuple(rates)))
    return found


def rate_table(rates: Sequence[Rate]) -> pd.DataFrame:
    """One row a size: median, slowest and fastest rate."""
    import pandas as pd

    return pd.DataFrame(
        {
            "size": [rate.size_mib for rate in rates],
            "median": [rate.median for rate in rates],
            "slowest": [min(rate.rates) for rate in rates],
            "fastest": [max(rate.rates) for rate in rates],
        }
    )


def rate_figure(table: pd.DataFrame, wanted: float) -> go.Figure:
    """Median rate by block size, with the rate that was wanted."""
    import plotly.graph_objects as go

    fig = go.Figure()
    fig.add_scatter(x=table["size"], y=table["median"], name="median", mode="lines+markers")
    fig.add_scatter(x=table["size"], y=[wanted] * len(table), name="wanted", mode="lines")
    fig.update_xaxes(title="block size (MiB)").update_yaxes(title="rate (MiB/s)", rangemode="tozero")
    return fig


def rate_findings(rates: Sequence[Rate]) -> list[Finding]:
    """What a reader should know before believing the rates."""
    return [
        Finding(
            "X-SPREAD",
            Severity.WARNING,
            f"the rates of {rate.size_mib} MiB differ by more than a factor of two",
            "stop what else runs on this machine, then measure again",
            source="nemolab.notebook.example",
        )
        for rate in rates
        if max(rate.rates) > 2 * min(rate.rates)
    ]
