"""`nemolab longctx` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from oracle import Oracle, serving

from nemolab.cli import app
from nemolab.core.errors import UsageError
from nemolab.longctx import price


def nemolab(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command; its errors are raised."""
    result = CliRunner().invoke(app, ["longctx", *arguments], standalone_mode=False)
    if result.exception:
        raise result.exception
    return int(result.return_value or 0), result.output


def document(*arguments: str) -> Any:
    return json.loads(nemolab(*arguments, "--json")[1])


def test_build_says_what_it_made_and_makes_it_again(tmp_path: Path) -> None:
    out, again = str(tmp_path / "p.txt"), str(tmp_path / "q.txt")
    made = document(
        "build", "--task", "niah_multikey_1", "--tokens", "3K", "--overhead", "17", "--depth", "0.3", "--out", out
    )
    assert made["tokens"] == 3072
    needle = made["needles"][[n["wanted"] for n in made["needles"]].index(0.3)]
    assert needle["depth"] == pytest.approx(0.3, abs=0.02)
    assert made["expected"][0] in Path(out).read_text()
    assert made["cpu_seconds"] > 0
    assert made["peak_memory_mib"] > 10
    same = document("build", "--tokens", "1", "--recipe", made["recipe"], "--out", again)
    assert same["sha256"] == made["sha256"]
    assert Path(out).read_bytes() == Path(again).read_bytes()


def test_build_is_confirmed_by_the_server(tmp_path: Path) -> None:
    out = str(tmp_path / "p.txt")
    with serving(Oracle()) as endpoint:
        made = document("build", "--tokens", "2K", "--base-url", endpoint.base_url, "--out", out)
    assert (made["tokens"], made["overhead"], made["server_tokens"]) == (2048, 17, 2048)
    with serving(Oracle(truncates_at=1000)) as endpoint:
        code, text = nemolab("build", "--tokens", "2K", "--base-url", endpoint.base_url, "--out", out)
    assert code == 1
    assert "the server counts 1,000 (-1048)" in text


def test_a_recipe_that_makes_something_else(tmp_path: Path) -> None:
    out = str(tmp_path / "p.txt")
    recipe = Path(document("build", "--tokens", "1K", "--out", out)["recipe"])
    edited = json.loads(recipe.read_text()) | {"seed": 5}
    recipe.write_text(json.dumps(edited))
    with pytest.raises(Exception, match="another text than it did"):
        nemolab("build", "--tokens", "1K", "--recipe", str(recipe), "--out", out)
    recipe.write_text(json.dumps(edited | {"tokenizer": "0" * 64}))
    with pytest.raises(UsageError, match="another tokenizer"):
        nemolab("build", "--tokens", "1K", "--recipe", str(recipe), "--out", out)
    recipe.write_text("{}")
    with pytest.raises(UsageError, match="not a recipe"):
        nemolab("build", "--tokens", "1K", "--recipe", str(recipe), "--out", out)


def test_nothing_is_written_when_it_cannot_be_built(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too few"):
        nemolab("build", "--tokens", "20", "--out", str(tmp_path / "p.txt"))
    assert not list(tmp_path.iterdir())


def test_run_and_score_and_compare(tmp_path: Path) -> None:
    rows, worse = str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")
    same = ("--lengths", "600,1200", "--n", "16", "--questions", "4", "--wanted", "0.6", "--model", "oracle")
    with serving(Oracle()) as endpoint:
        code, text = nemolab("run", "--base-url", endpoint.base_url, *same, "--out", rows)
    assert code == 0
    assert "PASSED: Holds to 1,200 at 100 %" in text
    with serving(Oracle(corrupts_beyond=1000)) as endpoint:
        code, text = nemolab("run", "--base-url", endpoint.base_url, *same, "--out", worse)
    assert code == 1
    assert "wrong value not in context" in text
    code, text = nemolab("score", rows, "--wanted", "0.6")
    assert code == 0
    assert "Holds to 1,200" in text
    code, text = nemolab("score", rows, worse)
    assert code == 1
    assert "1,200 tokens: b -100.0 points" in text
    assert "600 tokens: b +0.0 points" in text
    compared = document("score", rows, worse)
    assert [pair["length"] for pair in compared] == [600, 1200, None]
    scored = document("score", rows)
    assert scored["lengths"][1]["n"] == 16
    assert sum(cell["n"] for cell in scored["depths"]) == 32


def test_score_of_what_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("hello\n")
    with pytest.raises(UsageError, match="journal"):
        nemolab("score", str(path))


def test_plan_says_what_n_proves_and_what_it_costs() -> None:
    (one,) = document("plan", "--lengths", "1M", "--n", "256", "--measured", "128K=3", "--gpus", "4", "--rate", "2")
    assert one["texts"] == 32
    assert one["worth"] == pytest.approx(150.6, abs=0.1)  # 32 texts of 8 questions at rho 0.1
    assert one["seconds"] == pytest.approx(32 * 24)
    assert one["seconds_uncached"] == pytest.approx(256 * 24)
    assert one["gpu_hours"][0] == pytest.approx(32 * 24 * 4 / 3600)
    assert one["money"][0] == pytest.approx(2 * one["gpu_hours"][0])
    code, text = nemolab("plan", "--lengths", "1M", "--model", "nano-bf16", "--gpu", "h200", "--rate", "3")
    assert code == 0
    assert "GPU-h" in text
    with pytest.raises(UsageError, match="go together"):
        nemolab("plan", "--model", "nano-bf16")
    with pytest.raises(UsageError, match="not a measured prefill"):
        nemolab("plan", "--measured", "128K")


def test_the_share_of_attention_bends_the_estimate() -> None:
    linear, bent = price.from_measured(1000, 1.0), price.from_measured(1000, 1.0, attention_share=0.5)
    assert linear(8000) == pytest.approx(8)
    assert bent(8000) == pytest.approx(0.5 * 8 + 0.5 * 64)


def test_tasks_are_listed() -> None:
    code, text = nemolab("tasks")
    assert code == 0
    assert "niah_multikey_3" in text
    assert "graph_bfs" in text
