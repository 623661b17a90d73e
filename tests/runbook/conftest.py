"""Tests of what runs notebooks use a tiny checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tinylab import TinyLab


@pytest.fixture
def lab(tmp_path: Path) -> TinyLab:
    """An empty tiny checkout."""
    return TinyLab(tmp_path / "lab")
