"""Secrets: names that a parameter may not have, and shapes that an output may not show."""

from __future__ import annotations

import re

# A parameter may name the environment variable that holds a secret (`api_key_env`), never hold the secret.
_NAME = re.compile(r"(?i)(?:^|_)(?:key|token|secret|password|passwd|pwd|credential|credentials|bearer|auth)(?:$|_)")
_NAME_FINE = re.compile(r"(?i)(?:_env|_name|_file|_path|_count|_per_.*|_id)$|^(?:max|min|num|n|prompt|completion)_")

# Where a key may begin: at a word, also after an escape in JSON text, where `\nnvapi-...` begins no word.
_START = r"(?:\b|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"

# Shapes of keys as their issuers document them; each with a name for the message.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("NVIDIA API key", re.compile(_START + r"nvapi-[A-Za-z0-9_-]{20,}")),
    ("Hugging Face token", re.compile(_START + r"hf_[A-Za-z0-9]{20,}")),
    ("OpenAI-style key", re.compile(_START + r"sk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}")),
    ("GitHub token", re.compile(_START + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})")),
    ("AWS access key", re.compile(_START + r"(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("Google API key", re.compile(_START + r"AIza[A-Za-z0-9_-]{35}\b")),
    ("Slack token", re.compile(_START + r"xox[abprs]-[A-Za-z0-9-]{10,}")),
    ("private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("bearer token", re.compile(r"(?i)" + _START + r"bearer\s+[A-Za-z0-9._~+/-]{20,}")),
    ("JSON web token", re.compile(_START + r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
)


def secret_like(name: str) -> bool:
    """Whether a parameter of this name would hold a secret."""
    return bool(_NAME.search(name)) and not _NAME_FINE.search(name)


def find_key_shapes(text: str) -> list[tuple[str, int]]:
    """Kind and offset of everything in `text` that has the shape of a key. The key itself is never returned."""
    return sorted(((kind, m.start()) for kind, shape in _SHAPES for m in shape.finditer(text)), key=lambda hit: hit[1])


def redact(text: str) -> str:
    """`text` with every key-shaped part replaced by its kind."""
    for kind, shape in _SHAPES:
        text = shape.sub(f"[{kind} removed]", text)
    return text
