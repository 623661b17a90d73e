"""A cliff is told from a slope."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nemolab.longctx import Outcome, Row, conclude
from nemolab.longctx.cliff import cliff
from nemolab.longctx.summary import by_length

ROW = Row(
    id="x", task="niah_multikey_1", length=1000, seed=1, question=0, control="", built=1000, counted=1000, cached=0,
    warm=False, depth=0.5, offset=500, sha256="", expected=("1",), given=(), answer="", outcome=Outcome.CORRECT, why="",
    correct=True, precision=1, recall=1, ruler=1, finish_reason="stop", ttft_s=1, total_s=1, thought_chars=0,
    completion_tokens=8, lag_s=0,
)  # fmt: skip


def rows(lengths: list[int], share: dict[int, float], n: int = 20) -> list[Row]:
    """`n` answers a length, the given share of them right, needles spread evenly."""
    out = []
    for length in lengths:
        for i in range(n):
            good = i < round(share[length] * n)
            offset = int(length * ((i * 7) % n + 0.5) / n)
            outcome = Outcome.CORRECT if good else Outcome.WRONG_NOT_IN_CONTEXT
            out.append(replace(ROW, length=length, offset=offset, correct=good, outcome=outcome))
    return out


LENGTHS = [8192, 32768, 65536, 131072, 262144, 524288]


def test_a_state_that_breaks_at_a_length() -> None:
    found = cliff(rows(LENGTHS, dict(zip(LENGTHS, [1, 1, 1, 1, 0, 0], strict=True))))
    assert found is not None
    assert (found.of, found.after, found.before) == ("length", 131072, 262144)


def test_addresses_that_overflow_at_an_offset() -> None:
    broken = [
        replace(row, correct=row.offset < 208_000, outcome=Outcome.CORRECT)
        if row.offset is not None and row.offset < 208_000
        else replace(row, correct=False, outcome=Outcome.GARBAGE)
        for row in rows(LENGTHS, dict.fromkeys(LENGTHS, 1.0))
    ]
    found = cliff(broken)
    assert found is not None
    assert found.of == "offset"
    assert found.after < 208_000 <= found.before


@pytest.mark.parametrize(
    "shares", [[1, 0.95, 0.9, 0.75, 0.5, 0.2], [1, 1, 0.9, 0.6, 0.4, 0.1], [1, 1, 1, 1, 1, 1], [0] * 6]
)
def test_a_model_that_fades_or_holds_or_never_did_has_no_cliff(shares: list[float]) -> None:
    assert cliff(rows(LENGTHS, dict(zip(LENGTHS, shares, strict=True)))) is None


def test_fading_models_are_rarely_taken_for_broken_kernels() -> None:
    rng = np.random.default_rng(2)
    taken = 0
    for _ in range(40):
        shares = {length: 1 / (1 + np.exp(1.5 * (np.log2(length) - 17))) for length in LENGTHS}
        drawn = {length: rng.binomial(20, share) / 20 for length, share in shares.items()}
        taken += cliff(rows(LENGTHS, drawn)) is not None
    assert taken <= 2


def test_transport_faults_make_no_cliff() -> None:
    cut = [
        replace(row, correct=False, outcome=Outcome.CLIENT_TIMEOUT) if row.length > 131072 else row
        for row in rows(LENGTHS, dict.fromkeys(LENGTHS, 1.0))
    ]
    assert cliff(cut) is None


def test_the_finding_names_it() -> None:
    broken = rows(LENGTHS, dict(zip(LENGTHS, [1, 1, 1, 1, 0, 0], strict=True)))
    found = conclude.findings(broken, by_length(broken), 0.8)
    (named,) = [f for f in found if f.code == "X-CLIFF"]
    assert "between 131,072 and 262,144 tokens of prompt" in named.message
