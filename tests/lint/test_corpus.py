"""Published commands have no wrong errors; broken ones have the right finding, and no other error beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemolab.lint.evaluate import entries, judge

FOLDER = Path(__file__).with_name("corpus")
PUBLISHED, BROKEN = entries(FOLDER, "published"), entries(FOLDER, "broken")


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(PUBLISHED) >= 60
    assert len(BROKEN) >= 60
    names = [entry["id"] for entry in (*PUBLISHED, *BROKEN)]
    assert len(set(names)) == len(names)
    assert all(entry["source"] for entry in (*PUBLISHED, *BROKEN))


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: entry["id"])
def test_published_commands_have_no_wrong_error(entry: dict[str, Any]) -> None:
    verdict = judge(entry, "published")
    assert not verdict.wrong, [f.message for f in verdict.findings if f.code in verdict.wrong]
    assert not verdict.missed


@pytest.mark.parametrize("entry", BROKEN, ids=lambda entry: entry["id"])
def test_broken_commands_have_the_right_finding(entry: dict[str, Any]) -> None:
    verdict = judge(entry, "broken")
    assert not verdict.missed, [(f.code, str(f.severity), f.flag, f.message) for f in verdict.findings]
    assert not verdict.wrong, [f.message for f in verdict.findings if f.code in verdict.wrong]
    assert all(f.fix and f.source for f in verdict.findings if f.code == entry["code"] and f.severity == "error")
