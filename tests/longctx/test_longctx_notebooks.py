"""Notebooks 51 and 52 against a server that finds every needle, and against ones that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oracle import Oracle, serving
from run_notebook import run_notebook

VALIDATE, COMPARE = "51_validate_long_context", "52_compare_long_context"


def test_validate_live_and_in_replay(tmp_path: Path) -> None:
    with serving(Oracle()) as endpoint:
        asked: dict[str, Any] = {
            "base_url": endpoint.base_url,
            "model": "oracle",
            "lengths": "600,1200",
            "wanted_share": 0.6,
        }
        live = run_notebook(VALIDATE, tmp_path, **asked)
    assert live.values["holds_to_tokens"] == 1200
    assert live.values["length_error_tokens"] == 0
    assert live.values["wrong_key_share"] == 1
    assert any(text.startswith("PASSED: Holds to 1,200 at 100 %") for text in live.text)
    assert run_notebook(VALIDATE, tmp_path, replay=True, **asked) == live


def test_validate_says_no(tmp_path: Path) -> None:
    with serving(Oracle(truncates_at=1000)) as endpoint:
        done = run_notebook(
            VALIDATE, tmp_path, base_url=endpoint.base_url, model="oracle", lengths="600,1200", tasks="niah_single_1",
            questions=2, haystacks=2,
        )  # fmt: skip
    assert done.values["holds_to_tokens"] == 0
    assert done.values["suspect"] == 4
    assert "X-FAULT" in done.codes
    assert any(text.startswith("FAILED: ") for text in done.text)


def test_compare_live_and_in_replay(tmp_path: Path) -> None:
    with serving(Oracle()) as good, serving(Oracle(corrupts_beyond=1000)) as bad:
        asked: dict[str, Any] = {
            "base_url": good.base_url,
            "model": "oracle",
            "against": "other server",
            "other_url": bad.base_url,
            "lengths": "600,1200",
            "haystacks": 1,
        }
        live = run_notebook(COMPARE, tmp_path, **asked)
    assert (live.values["only_first"], live.values["only_second"]) == (8, 0)
    assert "X-WORSE" in live.codes
    assert any(text.startswith("FAILED: All lengths: other server -50.0 points") for text in live.text)
    assert run_notebook(COMPARE, tmp_path, replay=True, **asked) == live
