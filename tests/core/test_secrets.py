from __future__ import annotations

import json
import timeit

import pytest

from nemolab.core.secrets import find_key_shapes, redact, redact_log, secret_like


@pytest.mark.parametrize(
    "name", ["api_key", "token", "hf_token", "password", "client_secret", "auth", "API_KEY", "bearer", "db_pwd"]
)
def test_names_that_would_hold_a_secret(name: str) -> None:
    assert secret_like(name)


@pytest.mark.parametrize(
    "name",
    [
        "api_key_env", "token_env", "max_tokens", "max_token", "prompt_tokens", "num_key_value_heads", "keyboard",
        "tokenizer", "key_count", "author", "monkey", "tokens_per_second", "secret_file", "needle_keys",
    ],
)  # fmt: skip
def test_names_that_do_not(name: str) -> None:
    assert not secret_like(name)


# Built at run time, so that no scanner of this repository takes a fixture for a leak.
KEYS = {
    "NVIDIA API key": "nvapi-" + "a1B2" * 16,
    "Hugging Face token": "hf_" + "aB3d" * 9,
    "OpenAI-style key": "sk-" + "proj-" + "aB3d" * 8,
    "GitHub token": "ghp_" + "aB3d" * 9,
    "AWS access key": "AKIA" + "ABCD" * 4,
    "Google API key": "AIza" + "aB3d5" * 7,
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "bearer token": "Authorization: Bearer " + "aB3d" * 8,
    "JSON web token": "eyJ" + "hbGciOiJI" * 2 + "." + "eyJzdWIiOiIx" + "." + "dBjftJeZ4CVP",
}


@pytest.mark.parametrize("kind", KEYS)
def test_key_shapes_are_found_and_redacted(kind: str) -> None:
    text = f"before {KEYS[kind]} after"
    assert kind in [found for found, _ in find_key_shapes(text)]
    cleaned = redact(text)
    assert KEYS[kind] not in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")
    assert not find_key_shapes(cleaned)


@pytest.mark.parametrize(
    "text",
    [
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "task-specific-tokens-and-other-long-hyphenated-words",
        "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
        "hf_transfer is on",
        "the bearer of this letter is a friend",
    ],
)
def test_ordinary_text_has_none(text: str) -> None:
    assert find_key_shapes(text) == []


@pytest.mark.parametrize("before", ["\n", "\t", "\x1b", '"', "\\n", ""])
def test_a_key_is_found_in_json_text(before: str) -> None:
    text = json.dumps({"source": ["first" * bool(before) + before + "nvapi-" + "a" * 30]})
    assert [kind for kind, _ in find_key_shapes(text)] == ["NVIDIA API key"]


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("server_args=ServerArgs(port=8000, api_key='swordfish', admin_api_key=None)", "admin_api_key=None"),
        ("non-default args: {'model_tag': 'm', 'api_key': ['swordfish'], 'port': 8000}", "'port': 8000"),
        ('{"hf_token": "swordfish", "model": "m"}', '"model": "m"'),
        ("auth_token: 'swordfish'", "auth_token: "),
    ],
)
def test_keys_in_printed_settings_are_removed_from_a_log(printed: str, kept: str) -> None:
    cleaned = redact_log(printed)
    assert "swordfish" not in cleaned
    assert kept in cleaned


@pytest.mark.parametrize(
    "line", ["api_key=None", "api_key='none'", 'api_key="EMPTY"', "tokenizer='swordfish'", "keys: 'a'"]
)
def test_settings_without_a_key_stay(line: str) -> None:
    assert redact_log(line) == line


def test_a_long_line_of_a_log_costs_its_length() -> None:
    """Every line that an engine writes goes through it: twice the word must not take four times as long."""

    def took(length: int) -> float:
        line = "a" * length
        return min(timeit.repeat(lambda: redact_log(line), number=3, repeat=5))

    assert took(12_000) < 9 * took(3_000)
