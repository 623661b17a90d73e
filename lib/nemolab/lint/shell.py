"""Splits pasted shell text into commands, repairs what pasting breaks, and says what it repaired.

Nothing is executed or expanded, but for variables that the text itself assigns. A defect is reported once and then
read as it was meant, so that the rest of the command is still checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Word

_SMART = {"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\u2018": "'", "\u2019": "'", "\u2032": "'"}
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_BLANKS = "\u00a0\u2002\u2003\u2009\u202f\u3000\u200b\ufeff"
_SHELL_SOURCE = "POSIX shell, section 2.2 (quoting)"
_OPERATORS = ("&&", "||", ";;", ";", "|&", "|", "&", "(", ")")


@dataclass(slots=True)
class Split:
    """Commands of a text, here-documents (`cat > FILE <<EOF`) by file name, assigned variables, and findings."""

    commands: list[list[Word]] = field(default_factory=list)
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def split(text: str, first_line: int = 1) -> Split:
    """Read shell text into simple commands."""
    out = Split()
    lines = _clean(text, first_line, out)
    lines = _here_documents(lines, out)
    joined = _join(lines, out)
    for statement in joined:
        _statement(statement, out)
    return out


def _shell(line: int, message: str, fix: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("R-SHELL", severity, message, fix, _SHELL_SOURCE, where=f"line {line}")


def _clean(text: str, first_line: int, out: Split) -> list[tuple[int, str]]:
    """Lines without prompts, fences and typographic characters; each kind of character is reported once."""
    lines: list[tuple[int, str]] = []
    seen: set[str] = set()

    def once(kind: str, line: int, message: str, fix: str) -> None:
        if kind not in seen:
            seen.add(kind)
            out.findings.append(_shell(line, message, fix))

    for number, line in enumerate(text.split("\n"), start=first_line):
        if line.endswith("\r"):
            if line.rstrip("\r").endswith("\\"):
                once(
                    "cr",
                    number,
                    "a carriage return after the backslash: the line does not continue",
                    "save the file with Unix line ends",
                )
            line = line.rstrip("\r")
        if re.match(r"\s*(```|~~~)", line):
            continue
        line = re.sub(r"^\s*(?:(?:\$|>|PS>|root@[\w.-]+:[^#$]*[#$])\s+(?=\S)|!(?=[A-Za-z]))", "", line)
        for char in set(line) & set(_BLANKS):
            once(
                "blank",
                number,
                f"an invisible character (U+{ord(char):04X}) that the shell does not take for a blank",
                "type the blanks again",
            )
            line = line.replace(char, "" if char in "\u200b\ufeff" else " ")
        code, comment = _before_comment(line)
        if smart := _outside_quotes(code, "".join(_SMART)):
            once(
                "quote",
                number,
                "typographic quotes: the shell passes them on as part of the value",
                "use plain ' and \"",
            )
            code = "".join(_SMART[c] if i in smart else c for i, c in enumerate(code))
        if dashes := [
            i for i in _outside_quotes(code, _DASHES) if i == 0 or code[i - 1].isspace() or code[i - 1] in f"-{_DASHES}"
        ]:
            once(
                "dash",
                number,
                "a typographic dash at the start of an option: the engine sees a positional word",
                "use two plain hyphens (--)",
            )
            code = "".join("--" if i in dashes else c for i, c in enumerate(code))
            code = re.sub(r"(^|\s)-{3,}(?=[A-Za-z])", r"\1--", code)
        lines.append((number, code + comment))
    return lines


def _outside_quotes(line: str, wanted: str) -> list[int]:
    """Where characters of `wanted` stand outside plain quotes."""
    quote, found = "", []
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in wanted:
            found.append(index)
    return found


def _before_comment(line: str) -> tuple[str, str]:
    """A line split where an unquoted `#` starts a comment (as far as one line tells)."""
    quote = ""
    for index, char in enumerate(line):
        if quote:
            if char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char == "#" and (index == 0 or line[index - 1].isspace()):
            return line[:index], line[index:]
    return line, ""


_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


def _here_documents(lines: list[tuple[int, str]], out: Split) -> list[tuple[int, str]]:
    """Take here-documents out of the lines and keep their text under the file they are written to."""
    kept: list[tuple[int, str]] = []
    index = 0
    while index < len(lines):
        number, line = lines[index]
        kept.append((number, line))
        index += 1
        match = _HERE.search(_before_comment(line)[0])
        if not match:
            continue
        end = next((i for i in range(index, len(lines)) if lines[i][1].strip() == match[2]), None)
        body = lines[index : end if end is not None else len(lines)]
        name = re.search(r">>?\s*(['\"]?)([^\s'\"<>|&;]+)\1", line) or re.search(
            r"\btee\s+(['\"]?)([^\s'\"<>|&;]+)\1", line
        )
        if end is None:
            out.findings.append(
                _shell(number, f"the here-document is never ended by {match[2]}", f"put {match[2]} alone on a line")
            )
        out.files[name[2] if name else f"<<{match[2]}"] = (
            "\n".join(text for _, text in body),
            body[0][0] if body else number,
        )
        kept[-1] = (number, line[: match.start()] + line[match.end() :])
        index = (end if end is not None else len(lines)) + 1
    return kept


@dataclass(slots=True)
class _Char:
    text: str
    line: int


def _join(lines: list[tuple[int, str]], out: Split) -> list[list[_Char]]:
    """Statements, one a shell line: continuation lines joined, broken continuations reported and mended."""
    statements: list[list[_Char]] = []
    current: list[_Char] = []
    continued, commented = False, 0
    last_number = 0
    for number, line in lines:
        last_number = number
        stripped = line.strip()
        quote = _open_quote(current)
        looks_like_option = bool(re.match(r"-{1,2}[A-Za-z]", stripped))
        if not quote and stripped.startswith("#"):
            if continued:
                commented = number
            continue
        if not quote and not stripped:
            if continued:
                commented = -number
            continue
        if not quote and current and not continued and looks_like_option:
            out.findings.append(
                _shell(
                    number,
                    f"the line above has no backslash: {stripped.split()[0]} is not part of the command",
                    "end the line above with a backslash",
                )
            )
            continued = True
        elif commented and continued:
            what = "a comment" if commented > 0 else "an empty line"
            out.findings.append(
                _shell(
                    abs(commented),
                    f"{what} inside the command ends it: what follows is not part of it",
                    "take it out of the continued lines",
                )
            )
        if (commented and not looks_like_option and continued) or (not continued and not quote and current):
            statements.append(current)
            current = []
        commented = 0
        code, comment = _before_comment(line) if not quote else (line, "")
        body, continued = code, False
        if match := re.search(r"(?<!\\)(\\)([ \t]*)$", code):
            if match[2] or comment:
                out.findings.append(
                    _shell(
                        number,
                        "a blank after the backslash ends the command here",
                        "delete everything after the backslash",
                    )
                )
            body, continued = code[: match.start()], True
        elif comment.rstrip().endswith("\\"):
            out.findings.append(
                _shell(
                    number,
                    "the backslash stands inside a comment: the command ends on this line",
                    "take the comment out",
                )
            )
            continued = True
        current.extend(_Char(char, number) for char in body)
        current.append(_Char(" " if continued or not quote else "\n", number))
        if quote and not continued:
            current[-1] = _Char("\n", number)
    if continued:
        out.findings.append(
            _shell(
                last_number,
                "the text ends in a backslash: something is missing",
                "delete the backslash or paste the rest",
                Severity.WARNING,
            )
        )
    if current:
        statements.append(current)
    return statements


def _open_quote(chars: list[_Char]) -> str:
    quote, skip = "", False
    for item in chars:
        char = item.text
        if skip:
            skip = False
        elif char == "\\" and quote != "'":
            skip = True
        elif quote:
            if char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
    return quote


def _placeholder(chars: list[_Char], at: int) -> str:
    """`<model>` as documents write it, which a shell would take for a redirection."""
    match = re.match(r"<[A-Za-z_][\w./ -]{0,40}>", "".join(item.text for item in chars[at : at + 44]))
    return match[0] if match else ""


def _starts(chars: list[_Char], at: int, operator: str) -> bool:
    return "".join(item.text for item in chars[at : at + len(operator)]) == operator


def _statement(chars: list[_Char], out: Split) -> None:
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
        out.findings.append(_shell(opened, f"the {quote} opened here is never closed", f"close it with {quote}"))
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
                    _shell(
                        word.line,
                        "JSON without quotes around it: the shell takes its quotes away",
                        "put it in single quotes",
                    )
                )
                word, index = Word(raw, word.line, True, raw), end
        kept.append(word)
    return kept
