"""Endpoint, event stream, metrics, openai client: the parts of the client that need no model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemolab.client import Endpoint, prometheus
from nemolab.client.api import openai_client
from nemolab.client.params import ProbeParams
from nemolab.client.sse import Events
from nemolab.core.errors import NemolabError, UsageError

FIXTURES = Path(__file__).parent / "fixtures"


def test_endpoint_knows_where_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Endpoint("http://127.0.0.1:8080/v1/", "m")
    assert (end.base_url, end.root, end.loopback) == ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080", True)
    assert not Endpoint("https://llm.example/v1", "m").loopback
    assert Endpoint("http://localhost:1/v1", "m").loopback
    for wrong in ("", "127.0.0.1:8080", "ftp://x/v1", "http://"):
        with pytest.raises(UsageError, match="not an http URL"):
            Endpoint(wrong, "m")
    with pytest.raises(UsageError, match="must not hold a password"):
        Endpoint("http://user:pass@h/v1", "m")
    monkeypatch.delenv("LAB_KEY", raising=False)
    with pytest.raises(UsageError, match="LAB_KEY is not set"):
        Endpoint("http://h/v1", "m", api_key_env="LAB_KEY").headers()


def test_openai_client_does_not_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "k")
    client = openai_client(Endpoint("http://127.0.0.1:9/v1", "m", api_key_env="LAB_KEY"), timeout_s=3)
    assert (client.max_retries, client.timeout, client.api_key) == (0, 3, "k")
    assert openai_client(Endpoint("http://127.0.0.1:9/v1", "m")).api_key == "none"


def test_probe_without_an_address_says_how_to_get_one() -> None:
    with pytest.raises(UsageError, match="nemolab serve miniature"):
        ProbeParams().endpoint()


EVENTS = [b'{"a": 1}', "ü".encode(), b"two\nlines", b"", b"[DONE]"]
WIRE = (
    b": ping\n\ndata: " + EVENTS[0] + b"\n\ndata:" + EVENTS[1] + b"\r\n\r\nevent: x\nid: 7\ndata: two\ndata: lines\n\n"
    b"data:\n\n\n\ndata: [DONE]\n\n"
)


@given(st.lists(st.integers(0, len(WIRE)), max_size=20))
def test_events_are_the_same_however_the_network_cuts_them(cuts: list[int]) -> None:
    events, got = Events(), []
    edges = [0, *sorted(cuts), len(WIRE)]
    for begin, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007 - empty pieces are wanted too
        got += events.feed(WIRE[begin:end])
    assert got + events.close() == EVENTS


def test_an_event_without_its_closing_line_counts_at_the_end() -> None:
    events = Events()
    assert events.feed(b"data: 1") == []
    assert events.close() == [b"1"]
    assert events.close() == []


def test_metrics_of_vllm() -> None:
    found = prometheus.parse((FIXTURES / "vllm-0.22.0-metrics.txt").read_text())
    assert found.engine == "vllm"
    assert (found.running, found.waiting, found.kv_usage) == (0, 0, 0)
    assert (found.prompt_tokens, found.cached_prompt_tokens, found.generated_tokens) == (1_212_840, 0, 256)
    assert found.preemptions == 0
    assert found.sums["vllm:time_to_first_token_seconds_count"] == 4


def test_metrics_of_llamacpp_count_cached_prompt_tokens_too() -> None:
    found = prometheus.parse((FIXTURES / "llamacpp-2026.10-metrics.txt").read_text())
    assert found.engine == "llamacpp"
    assert (found.prompt_tokens, found.cached_prompt_tokens, found.generated_tokens) == (280 + 438, 438, 243)
    assert (found.kv_usage, found.preemptions) == (None, None), "what is not said is unknown, not zero"


def test_metrics_of_sglang_and_of_several_engine_processes() -> None:
    text = "\n".join(
        f'sglang:{name}{{tp_rank="{rank}"}} {value}'
        for rank in (0, 1)
        for name, value in (("num_running_reqs", 3), ("num_queue_reqs", 2), ("token_usage", 0.25 + rank / 2))
    )
    found = prometheus.parse(text + "\n")
    assert (found.engine, found.running, found.waiting, found.kv_usage) == ("sglang", 6, 4, 0.75)
    assert found.prompt_tokens is None


def test_metrics_of_nobody() -> None:
    found = prometheus.parse("up 1\n")
    assert (found.engine, found.running, found.waiting, found.generated_tokens) == ("", None, None, None)
    assert found.sums == {"up": 1}
    with pytest.raises(NemolabError, match="not a Prometheus exposition"):
        prometheus.parse("<html>no such page</html>\n")
    assert prometheus.scrape(Endpoint("http://127.0.0.1:9/v1", "m")) is None
