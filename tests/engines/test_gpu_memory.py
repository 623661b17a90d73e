"""Waiting for an ended server's memory. No GPU here gives memory back late, so `free` is told what to say."""

from __future__ import annotations

import pytest

from nemolab.engines import gpu_memory

GIB = 1 << 30


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, int]]:
    """What the GPUs say in turn; the last again and again."""
    answers: list[dict[int, int]] = []
    monkeypatch.setattr(gpu_memory, "free", lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    monkeypatch.setattr(gpu_memory, "_POLL_S", 0.001)
    return answers


def test_memory_that_comes_back_is_waited_for(said: list[dict[int, int]]) -> None:
    said += [{0: 10 * GIB, 1: 80 * GIB}, {0: 79 * GIB, 1: 80 * GIB}, {0: 80 * GIB - (1 << 28), 1: 80 * GIB}]
    assert gpu_memory.settle({0: 80 * GIB, 1: 80 * GIB}, 60.0) == 256
    assert len(said) == 1, "it was asked until less than the allowance was missing"


def test_what_does_not_come_back_in_time_is_told(said: list[dict[int, int]]) -> None:
    said += [{0: 10 * GIB}]
    assert gpu_memory.settle({0: 80 * GIB, 1: 80 * GIB}, 0.01) == 70 * 1024, "a GPU that is gone lacks nothing"


def test_more_than_before_is_nothing_missing_and_without_a_gpu_nothing_is_said(said: list[dict[int, int]]) -> None:
    said += [{0: 81 * GIB}]
    assert gpu_memory.settle({0: 80 * GIB}, 0.0) == 0
    assert gpu_memory.settle({}, 60.0) is None
