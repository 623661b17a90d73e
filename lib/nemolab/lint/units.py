"""Launches in systemd units: `ExecStart=` with the variables of `Environment=`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nemolab.lint.commands import add_command
from nemolab.lint.launch import Script, Word

_PREFIX = "@-:+!|"  # what may stand before the program (systemd.service(5), special executable prefixes)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def read_unit(text: str) -> Script:
    """What a unit starts. Specifiers (`%i`) stay as they are written."""
    script = Script(text, "unit")
    env: dict[str, tuple[str, int]] = {}
    for key, value, line in _settings(text):
        words = _words(value, line)
        if key == "Environment":
            pairs = ((word.text.partition("="), word.line) for word in words)
            env |= {name: (content, at) for (name, equals, content), at in pairs if equals}
        elif key == "ExecStart" and words:
            program = words[0]._replace(text=words[0].text.lstrip(_PREFIX))
            add_command(script, [program, *words[1:]], env)
    return script


def _settings(text: str) -> Iterator[tuple[str, str, int]]:
    """Key, value and line of each setting of `[Service]`. Line ends of continued lines are kept, to count lines."""
    section, key, value, line = "", "", "", 0
    for number, raw in enumerate(text.split("\n"), start=1):
        stripped = raw.strip()
        if stripped.startswith(("#", ";")):
            value += "\n" if key else ""
            continue
        if not key:
            if stripped.startswith("["):
                section = stripped.strip("[]")
            key, equals, stripped = stripped.partition("=") if section == "Service" else ("", "", "")
            key, value, line = (key.strip(), "", number) if equals else ("", "", 0)
            if not key:
                continue
        value += stripped.removesuffix("\\")
        if stripped.endswith("\\"):
            value += "\n"
            continue
        yield key, value, line
        key = ""


def _words(value: str, line: int) -> list[Word]:
    """The words of a setting (systemd.syntax(7), quoting): quotes around whole words, C escapes, `%%` and `$$`."""
    words: list[Word] = []
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|((?:[^\s\\]|\\.)+)', value, re.S):
        quoted = match[3] is None
        piece = match[3] if match[3] is not None else match[1] if match[1] is not None else match[2]
        plain = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), piece, flags=re.S)
        at = line + value.count("\n", 0, match.start())
        raw = f"'{plain}'" if "$$" in plain else plain  # as in single quotes: a dollar that was doubled is one
        words.append(Word(plain.replace("%%", "%").replace("$$", "$"), at, quoted, raw))
    return words
