"""Words made safe for what reads them: a shell, systemd, compose, the kubelet. `Expr` words stay as they are."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence

from nemolab.engines.command import Expr

_WIDTH = 100  # characters of a line of words that are no options


def shell(word: str) -> str:
    """A word of a shell command."""
    return str(word) if isinstance(word, Expr) else shlex.quote(word)


def shell_lines(words: Sequence[str], indent: str = "  ") -> str:
    """A command over several lines: each option begins one and has its value beside it."""
    return f" \\\n{indent}".join(" ".join(map(shell, line)) for line in _lines(words))


def _lines(words: Sequence[str]) -> list[list[str]]:
    lines: list[list[str]] = [[]]
    for word in words:
        option = word.startswith("-") and not re.fullmatch(r"-[\d.]+", word)
        full = lines[-1] and (
            len(lines[-1]) == 2 if lines[-1][0].startswith("-") else len(" ".join([*lines[-1], word])) > _WIDTH
        )
        if lines[-1] and (option or full):
            lines.append([])
        lines[-1].append(word)
    return lines


def exports(env: Iterable[tuple[str, str]]) -> str:
    """`export NAME=value` lines; "" without variables."""
    return "".join(f"export {name}={shell(value)}\n" for name, value in env)


def systemd(word: str) -> str:
    """A word of `ExecStart=`: specifiers and variables do not expand in it (systemd.service(5), command lines)."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text) else f'"{text}"'


def systemd_lines(words: Sequence[str]) -> str:
    """A command line of a unit over several lines, as `shell_lines`."""
    return " \\\n    ".join(" ".join(map(systemd, line)) for line in _lines(words))


def compose(text: str) -> str:
    """A text of a compose file: `$` does not interpolate (compose specification, interpolation)."""
    return str(text) if isinstance(text, Expr) else text.replace("$", "$$")


def kubernetes(text: str) -> str:
    """A word of `args` or an `env` value: `$(NAME)` does not expand (Kubernetes, dependent variables)."""
    return str(text) if isinstance(text, Expr) else text.replace("$(", "$$(")


def comment(text: str) -> str:
    """Text as comment lines, of at most 110 characters where words allow it."""
    lines = [
        part
        for line in text.strip().split("\n")
        for part in textwrap.wrap(line, 108, break_long_words=False, break_on_hyphens=False)
    ]
    return "".join(f"# {line}\n" for line in lines)
