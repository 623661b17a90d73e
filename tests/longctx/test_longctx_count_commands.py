"""`nemolab longctx` where the server counts, where it is sent ids, and where it is typed wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from miniserver import miniature
from oracle import Oracle, serving

from nemolab.cli import app
from nemolab.client import Endpoint
from nemolab.core.errors import NemolabError, UsageError


def nemolab(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command; its errors are raised."""
    result = CliRunner().invoke(app, ["longctx", *arguments], standalone_mode=False)
    if result.exception:
        raise result.exception
    return int(result.return_value or 0), result.output


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with miniature(tmp_path_factory.mktemp("state"), 2048) as served:
        yield served


@pytest.mark.live
@pytest.mark.parametrize("thinking", ["--thinking", "--no-thinking"])
def test_a_real_server_counts_a_prompt_longer_than_it_could_take(
    endpoint: Endpoint, tmp_path: Path, thinking: str
) -> None:
    out = str(tmp_path / "p.txt")
    where = ("--base-url", endpoint.base_url, "--out", out, thinking)
    made = json.loads(nemolab("build", "--tokens", "100K", *where, "--json")[1])  # its context is 2,048
    assert (made["tokens"], made["server_tokens"], made["server_counted_by"]) == (102400, 102400, "/tokenize")
    code, text = nemolab("build", "--tokens", "1K", *where)
    assert code == 0
    assert "the server counts 1,024 (+0), by its /tokenize, without a prefill" in text


@pytest.mark.live
def test_run_by_text_and_by_ids_says_the_same(endpoint: Endpoint, tmp_path: Path) -> None:
    asked = ("run", "--base-url", endpoint.base_url, "--lengths", "600,1500", "--n", "4", "--questions", "4", "--json")
    found = []
    for send in ("text", "ids"):
        document = json.loads(nemolab(*asked, "--send", send, "--out", str(tmp_path / f"{send}.jsonl"))[1])
        results = document["results"]
        found.append((document["verdict"], {name: v for name, v in results.items() if not name.startswith("ttft")}))
    assert found[0] == found[1]
    assert found[0][1]["length_error_tokens"] == 0


def test_a_server_without_tokenize_counts_by_usage_and_takes_no_ids(tmp_path: Path) -> None:
    with serving(Oracle()) as endpoint:
        code, text = nemolab("build", "--tokens", "1K", "--base-url", endpoint.base_url, "--out", str(tmp_path / "p"))
        assert code == 0
        assert "the server counts 1,024 (+0), by the usage of a request for one token" in text
        rows = tmp_path / "rows.jsonl"
        with pytest.raises(NemolabError, match="cannot tell the tokens of a message") as raised:
            nemolab("run", "--base-url", endpoint.base_url, "--send", "ids", "--out", str(rows))
        assert raised.value.fix == "send the text: send=text, which is the default"
        assert not rows.exists()  # a journal begun by ids would stand in the way of what the error advises
        asked = ("--lengths", "600", "--n", "2", "--questions", "2", "--wanted", "0.1")
        assert nemolab("run", "--base-url", endpoint.base_url, *asked, "--out", str(rows))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("build --tokens 700 --overhead 690 --out p", "700 tokens are too few for niah_single_1 in a template of 690"),
        ("build --tokens 700 --base-url http://127.0.0.1:9/v1 --api-key-env NO_SUCH --out p", "NO_SUCH"),
        ("build --tokens much --out p", "--tokens: 'much' is not a length"),
        ("run --base-url http://127.0.0.1:9/v1 --tasks nope", "no task 'nope'"),
        ("run --base-url http://127.0.0.1:9/v1 --send tokens", "is not one of 'text', 'ids'"),
        ("run --base-url http://127.0.0.1:9/v1 --budget-s -1", "is not in the range"),
        ("plan --measured 128K=nan", "not a measured prefill"),
        ("plan --measured 128K=inf", "not a measured prefill"),
        ("plan --rate nan", "not an amount of money"),
    ],
)
def test_typed_wrong(arguments: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UsageError, click.UsageError), match=says):
        nemolab(*arguments.split())
    assert not list(tmp_path.iterdir())
