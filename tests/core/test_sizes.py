"""Bytes for people."""

from __future__ import annotations

import pytest

from nemolab.core.sizes import GIB, MIB, gib, human


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 MiB"),
        (MIB // 2, "0.5 MiB"),
        (4 * MIB, "4 MiB"),
        (10_692_336, "10.2 MiB"),
        (512 * MIB, "512 MiB"),
        (1023 * MIB, "1,023 MiB"),
        (GIB, "1.0 GiB"),
        (61.94 * GIB, "61.9 GiB"),
        (2048 * GIB, "2,048.0 GiB"),
    ],
)
def test_bytes_are_said_with_three_figures(size: float, said: str) -> None:
    assert human(size) == said


def test_a_column_keeps_its_unit() -> None:
    assert [gib(512 * MIB), gib(12 * GIB), gib(3 * GIB, 2)] == ["0.5 GiB", "12.0 GiB", "3.00 GiB"]
