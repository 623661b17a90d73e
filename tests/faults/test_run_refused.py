"""What is refused before anything starts, at the command line: exit code 2, one message, nothing written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tinylab import TinyLab, notebook, step


@pytest.mark.parametrize(
    ("steps", "more", "says"),
    [
        ([{**step("a"), "with": {"nn": 1}}], {}, "takes no parameter 'nn'"),
        ([{**step("a"), "with": {"n": "many"}}], {}, "n = 'many'"),
        ([{**step("a"), "with": {"hf_token": "x"}}], {}, "parameter 'hf_token' would hold a secret"),
        ([step("a", tiemout="60s")], {}, "unknown key 'tiemout'\n  fix: did you mean 'timeout'?"),
        ([step("a", needs=["b"]), step("b")], {}, "a cycle: 'a' needs 'b' needs 'a'"),
        ([step("a", "tinny")], {}, "no notebook 'tinny'\n  fix: did you mean 'tiny'?"),
        ([step("a", expect={"totl": 1})], {}, "publishes no result 'totl'\n  fix: did you mean 'total'?"),
        ([step("a")], {"parameters": {"api_key": {"type": "str", "default": "", "help": ""}}}, "would hold a secret"),
    ],
)
def test_refused(tmp_path: Path, steps: list[dict[str, Any]], more: dict[str, Any], says: str) -> None:
    lab = TinyLab(tmp_path / "lab")
    lab.write("tiny", notebook())
    lab.book(steps, **more)
    done = lab.nemolab("run", "book")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"nemolab: {lab.root}/runbooks/book.yaml:")
    assert says in done.err
    assert "Traceback" not in done.err
    assert not (lab.root / "reports").exists()
