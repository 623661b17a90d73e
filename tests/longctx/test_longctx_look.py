"""Figures in words: what was not measured is not said."""

from __future__ import annotations

import math

from nemolab.core.intervals import Quantile
from nemolab.longctx import look
from nemolab.longctx.stats import Clustered, clustered
from nemolab.longctx.summary import Length

NONE = Quantile(0.5, math.nan, None, None, 0)


def length(tokens: int, cold: Quantile, warm: Quantile) -> Length:
    right: Clustered = clustered([[True]])
    return Length(tokens, right, 1.0, cold, warm, None, (), ())


def test_times_that_were_not_measured_are_left_out() -> None:
    seen = Quantile(0.5, 0.114, 0.1, 0.2, 3)
    found = [length(512, seen, NONE), length(8192, seen, seen), length(65536, NONE, NONE)]
    assert look.ttft_sentence(found) == (
        "512 tokens: cold 0.11 s; 8,192 tokens: cold 0.11 s, warm 0.11 s; 65,536 tokens: not measured"
    )
