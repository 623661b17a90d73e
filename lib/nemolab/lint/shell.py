"""Splits pasted shell text into commands.

Nothing is executed or expanded. `pasting` mends what pasting breaks, and says so.
"""

from __future__ import annotations

import re

from nemolab.lint.launch import Word
from nemolab.lint.pasting import Char, Split, clean, defect, here_documents, join

_OPERATORS = ("&&", "||", ";;", ";", "|&", "|", "&", "(", ")")


def split(text: str, first_line: int = 1) -> Split:
    """Read shell text into simple commands."""
    out = Split()
    lines = clean(text, first_line, out)
    lines = here_documents(lines, out)
    joined = join(lines, out)
    for statement in joined:
        _statement(statement, out)
    return out


def _placeholder(chars: list[Char], at: int) -> str:
    """`<model>` as documents write it, which a shell would take for a redirection."""
    match = re.match(r"<[A-Za-z_][\w./ -]{0,40}>", "".join(item.text for item in chars[at : at + 44]))
    return match[0] if match else ""


def _starts(chars: list[Char], at: int, operator: str) -> bool:
    return "".join(item.text for item in chars[at : at + len(operator)]) == operator


def _statement(chars: list[Char], out: Split) -> None:
    """Split a statement into commands at operators, and each into words."""
    words: list[Word] = []
    text, raw, quoted, quote, started, line = "", "", False, "", False, 0
    index = 0

    def end_word() -> None:
        nonlocal text, raw, quoted, started
        if started:
            words.append(Word(text, line, quoted, raw))
        text, raw, quoted, started = "", "", False, False

    def end_command() -> None:
        nonlocal words
        end_word()
        if words:
            out.commands.append(_unquoted_json(words, out))
        words = []

    while index < len(chars):
        char, number = chars[index].text, chars[index].line
        index += 1
        if not started:
            line = number
        if quote:
            raw += char
            if char == quote:
                quote = ""
            elif char == "\\" and quote == '"' and index < len(chars) and chars[index].text in '"\\$`':
                text += chars[index].text
                raw += chars[index].text
                index += 1
            else:
                text += char
            continue
        if char in "'\"":
            quote, quoted, started = char, True, True
            raw += char
            opened = number
        elif char == "\\":
            started = True
            raw += char
            if index < len(chars):
                text += chars[index].text
                raw += chars[index].text
                index += 1
        elif char == "$" and index < len(chars) and chars[index].text in "({":
            closing, depth, piece = {"(": ")", "{": "}"}[chars[index].text], 0, char
            while index < len(chars):
                inner = chars[index].text
                index += 1
                piece += inner
                depth += {closing: -1, "(" if closing == ")" else "{": 1}.get(inner, 0)
                if depth == 0:
                    break
            text, raw, started = text + piece, raw + piece, True
        elif char.isspace():
            end_word()
        elif char == "#" and not started:
            while index < len(chars) and chars[index].text != "\n":
                index += 1
        elif char == "<" and (placeholder := _placeholder(chars, index - 1)):
            text, raw, started, index = text + placeholder, raw + placeholder, True, index - 1 + len(placeholder)
        elif char in "><":
            if text.isdigit():
                text, raw, started = "", "", False
            end_word()
            while index < len(chars) and (chars[index].text in ">&" or chars[index].text.isspace()):
                index += 1
            while index < len(chars) and not chars[index].text.isspace() and chars[index].text not in ";|&":
                index += 1
        elif char in "&|;()":
            operator = next(o for o in _OPERATORS if char == o[0] and _starts(chars, index - 1, o))
            if operator in "()" and started:
                text, raw = text + char, raw + char
                continue
            index += len(operator) - 1
            end_command()
        else:
            text, raw, started = text + char, raw + char, True
    if quote:
        out.findings.append(defect(opened, f"the {quote} opened here is never closed", f"close it with {quote}"))
    end_command()


def _unquoted_json(words: list[Word], out: Split) -> list[Word]:
    """JSON without quotes around it: the shell takes its quotes away and splits it at blanks. Put back together."""
    kept: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.raw.startswith("{") and not word.raw.startswith("{{"):
            raw, end = word.raw, index
            while raw.count("{") > raw.count("}") and end < len(words):
                raw += f" {words[end].raw}"
                end += 1
            if '"' in raw and raw.count("{") == raw.count("}"):
                out.findings.append(
                    defect(
                        word.line,
                        "JSON without quotes around it: the shell takes its quotes away",
                        "put it in single quotes",
                    )
                )
                word, index = Word(raw, word.line, True, raw), end
        kept.append(word)
    return kept
