"""Options of `docker run`, and of podman and nerdctl, which take the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nemolab.lint.launch import Word

# Options of `docker run` (and podman, nerdctl) that take no value; every other one does.
_DOCKER_SWITCHES = {
    "-d",
    "-i",
    "-t",
    "-P",
    "-q",
    "-h",
    "--detach",
    "--interactive",
    "--tty",
    "--rm",
    "--privileged",
    "--init",
    "--read-only",
    "--publish-all",
    "--oom-kill-disable",
    "--no-healthcheck",
    "--sig-proxy",
    "--disable-content-trust",
    "--quiet",
    "--help",
    "--replace",
}
_DOCKER_SHORT = {
    "-e": "--env",
    "-v": "--volume",
    "-p": "--publish",
    "-u": "--user",
    "-w": "--workdir",
    "-m": "--memory",
    "-l": "--label",
    "-c": "--cpu-shares",
    "-a": "--attach",
    "-h": "--hostname",
    "-d": "--detach",
    "-i": "--interactive",
    "-t": "--tty",
    "-P": "--publish-all",
    "--net": "--network",
    "-q": "--quiet",
}


def docker_options(words: Sequence[Word], at: int) -> tuple[dict[str, list[tuple[str, int]]], int]:
    """Options of `docker run` from index `at`, by long name, and the index of the image."""
    options: dict[str, list[tuple[str, int]]] = {}
    while at < len(words) and words[at].text.startswith("-") and len(words[at].text) > 1:
        text, line = words[at].text, words[at].line
        at += 1
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            if not equals and name not in _DOCKER_SWITCHES and at < len(words):
                value, at = words[at].text, at + 1
            options.setdefault(_DOCKER_SHORT.get(name, name), []).append((value, line))
            continue
        letters = text[1:]
        for index, letter in enumerate(letters):
            short = f"-{letter}"
            name = _DOCKER_SHORT.get(short, short)
            if short in _DOCKER_SWITCHES:
                options.setdefault(name, []).append(("", line))
                continue
            value = letters[index + 1 :].removeprefix("=")
            if not value and at < len(words):
                value, at = words[at].text, at + 1
            options.setdefault(name, []).append((value, line))
            break
    return options, at


def gpu_count(values: Iterable[str]) -> int | None:
    for value in values:
        text = value.strip("'\"")
        if text.isdigit():
            return int(text)
        if match := re.match(r"(?:device=)([\w,:-]+)$", text):
            return len(match[1].split(","))
    return None
