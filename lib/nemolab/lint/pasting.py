"""What pasting does to shell text: said once, and mended, so that the rest of the command is still checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Word

_SMART = {"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\u2018": "'", "\u2019": "'", "\u2032": "'"}
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_BLANKS = "\u00a0\u2002\u2003\u2009\u202f\u3000\u200b\ufeff"
_SHELL_SOURCE = "POSIX shell, section 2.2 (quoting)"


@dataclass(slots=True)
class Split:
    """Commands of a text, here-documents (`cat > FILE <<EOF`) by file name, assigned variables, and findings."""

    commands: list[list[Word]] = field(default_factory=list)
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def defect(line: int, message: str, fix: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("R-SHELL", severity, message, fix, _SHELL_SOURCE, where=f"line {line}")


def clean(text: str, first_line: int, out: Split) -> list[tuple[int, str]]:
    """Lines without prompts, fences and typographic characters; each kind of character is reported once."""
    lines: list[tuple[int, str]] = []
    seen: set[str] = set()

    def once(kind: str, line: int, message: str, fix: str) -> None:
        if kind not in seen:
            seen.add(kind)
            out.findings.append(defect(line, message, fix))

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


def here_documents(lines: list[tuple[int, str]], out: Split) -> list[tuple[int, str]]:
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
                defect(number, f"the here-document is never ended by {match[2]}", f"put {match[2]} alone on a line")
            )
        out.files[name[2] if name else f"<<{match[2]}"] = (
            "\n".join(text for _, text in body),
            body[0][0] if body else number,
        )
        kept[-1] = (number, line[: match.start()] + line[match.end() :])
        index = (end if end is not None else len(lines)) + 1
    return kept


class Char(NamedTuple):
    text: str
    line: int


def join(lines: list[tuple[int, str]], out: Split) -> list[list[Char]]:
    """Statements, one a shell line: continuation lines joined, broken continuations reported and mended."""
    joiner = _Joiner(out)
    for number, line in lines:
        joiner.add(number, line)
    return joiner.finish()


class _Joiner:
    """Collects physical lines into statements."""

    def __init__(self, out: Split) -> None:
        self.out = out
        self.statements: list[list[Char]] = []
        self.current: list[Char] = []
        self.quote = ""  # that is open at the end of `current`
        self.continued = False  # the last line ended in a backslash
        self.gap: tuple[int, str] | None = None  # a line that ended a continued command, and what it was
        self.number = 0

    def add(self, number: int, line: str) -> None:
        self.number = number
        stripped = line.strip()
        if not self.quote and (not stripped or stripped.startswith("#")):
            if self.continued:
                self.gap = (number, "a comment" if stripped else "an empty line")
            return
        self._attach(number, stripped)
        code, comment = (line, "") if self.quote else _before_comment(line)
        body = self._continuation(number, code, comment)
        self.quote = _open_quote(body, self.quote)
        self.current.extend(Char(char, number) for char in body)
        self.current.append(Char(" " if self.continued or not self.quote else "\n", number))

    def _attach(self, number: int, stripped: str) -> None:
        """Decide whether a line goes on with the statement above, and say so where only the meaning tells."""
        option = bool(re.match(r"-{1,2}[A-Za-z]", stripped)) and not self.quote
        if option and self.current and not self.continued:
            self._say(
                number,
                f"the line above has no backslash: {stripped.split()[0]} is not part of the command",
                "end the line above with a backslash",
            )
            self.continued = True
        elif self.gap:
            where, what = self.gap
            self._say(
                where,
                f"{what} inside the command ends it: what follows is not part of it",
                "take it out of the continued lines",
            )
            self.continued = option
        self.gap = None
        if not self.continued and not self.quote:
            self._end()

    def _continuation(self, number: int, code: str, comment: str) -> str:
        """The line without the backslash that continues it."""
        self.continued = False
        if match := re.search(r"(?<!\\)(\\)([ \t]*)$", code):
            if match[2] or comment:
                self._say(
                    number, "a blank after the backslash ends the command here", "delete everything after the backslash"
                )
            self.continued = True
            return code[: match.start()]
        if comment.rstrip().endswith("\\"):
            self._say(
                number, "the backslash stands inside a comment: the command ends on this line", "take the comment out"
            )
            self.continued = True
        return code

    def _say(self, number: int, message: str, fix: str) -> None:
        self.out.findings.append(defect(number, message, fix))

    def _end(self) -> None:
        if self.current:
            self.statements.append(self.current)
        self.current, self.quote = [], ""

    def finish(self) -> list[list[Char]]:
        if self.continued:
            self.out.findings.append(
                defect(
                    self.number,
                    "the text ends in a backslash: something is missing",
                    "delete the backslash or paste the rest",
                    Severity.WARNING,
                )
            )
        self._end()
        return self.statements


def _open_quote(text: str, quote: str) -> str:
    """The quote that is open after `text`, when `quote` was open before it."""
    skip = False
    for char in text:
        if skip:
            skip = False
        elif char == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return quote
