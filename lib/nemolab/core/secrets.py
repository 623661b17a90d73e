"""Secrets: names that a parameter may not have, and shapes that an output may not show."""

from __future__ import annotations

import re

# A parameter may name the environment variable that holds a secret (`api_key_env`), never hold the secret.
_NAME = re.compile(r"(?i)(?:^|_)(?:key|token|secret|password|passwd|pwd|credential|credentials|bearer|auth)(?:$|_)")
_NAME_FINE = re.compile(r"(?i)(?:_env|_name|_file|_path|_count|_per_.*|_id)$|^(?:max|min|num|n|prompt|completion)_")

# Where a key may begin: at a word, also after an escape in JSON text, where `\nnvapi-...` begins no word.
_START = r"(?:\b|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"

# Shapes of keys as their issuers document them; each with a name for the message. The words of a shape are looked for
# first: a report of a megabyte is scanned in milliseconds, for hardly any text has them.
_SHAPES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    ("NVIDIA API key", ("nvapi-",), re.compile(_START + r"nvapi-[A-Za-z0-9_-]{20,}")),
    ("Hugging Face token", ("hf_",), re.compile(_START + r"hf_[A-Za-z0-9]{20,}")),
    ("OpenAI-style key", ("sk-",), re.compile(_START + r"sk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}")),
    (
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(_START + r"(?:gh[pousr]|github_pat)_\w{30,}"),
    ),
    ("AWS access key", ("AKIA", "ASIA"), re.compile(_START + r"(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("Google API key", ("AIza",), re.compile(_START + r"AIza[A-Za-z0-9_-]{35}\b")),
    ("Slack token", ("xox",), re.compile(_START + r"xox[abprs]-[A-Za-z0-9-]{10,}")),
    ("private key", ("PRIVATE KEY",), re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("bearer token", ("bearer", "Bearer", "BEARER"), re.compile(r"(?i)" + _START + r"bearer\s+[A-Za-z0-9._~+/-]{20,}")),
    (
        "JSON web token",
        ("eyJ",),
        re.compile(_START + r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ),
)


# Engines print the settings they were started with, a key in plain words among them: `api_key='...'` (SGLang),
# `'api_key': ['...']` (vLLM). The name's own beginning is not matched: on a long word that would cost its square.
_SETTING = re.compile(
    r"(?i)((?:api_?key|password|secret|auth_?token|hf_?token)['\"]?\s*[:=]\s*\[?\s*)(['\"])(?!\2|none\2|empty\2)[^'\"]+\2"
)


def secret_like(name: str) -> bool:
    """Whether a parameter of this name would hold a secret."""
    return bool(_NAME.search(name)) and not _NAME_FINE.search(name)


def find_key_shapes(text: str) -> list[tuple[str, int]]:
    """Kind and offset of everything in `text` that has the shape of a key. The key itself is never returned."""
    hits = ((kind, match.start()) for kind, shape in _present(text) for match in shape.finditer(text))
    return sorted(hits, key=lambda hit: hit[1])


def redact(text: str) -> str:
    """`text` with every key-shaped part replaced by its kind."""
    for kind, shape in _present(text):
        text = shape.sub(f"[{kind} removed]", text)
    return text


def redact_log(text: str) -> str:
    """A piece of an engine's log: key shapes, and keys in the settings that it prints, replaced."""
    return _SETTING.sub(r"\1\2[key removed]\2", redact(text))


def _present(text: str) -> list[tuple[str, re.Pattern[str]]]:
    return [(kind, shape) for kind, words, shape in _SHAPES if any(word in text for word in words)]
