"""What a rule looks at, and how one is declared: a code, a title, a fix, and a function that yields what it found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.notebook.source import Cell, cells

Hit = tuple[Cell | None, str]  # the cell it is about, None for the whole notebook, and what is wrong
Check = Callable[["Subject"], Iterator[Hit]]
SOURCE = "docs/notebooks.md"


@dataclass(frozen=True, slots=True)
class Rule:
    """A house rule for notebooks."""

    code: str
    title: str
    fix: str
    check: Check


@dataclass(frozen=True)
class Subject:
    """A notebook as the rules see it, parsed once."""

    path: Path
    document: Mapping[str, Any]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells."""
        return tuple(cells(self.document))

    @cached_property
    def code(self) -> tuple[Cell, ...]:
        """The code cells that are not empty."""
        return tuple(cell for cell in self.cells if cell.code and cell.source.strip())

    @cached_property
    def trees(self) -> dict[int, ast.Module]:
        """Syntax trees of the code cells that are Python, by cell number."""
        found = {}
        for cell in self.code:
            try:
                found[cell.number] = parse(cell.source)
            except (SyntaxError, ValueError):
                continue
        return found

    def nodes(self) -> Iterator[tuple[Cell, ast.AST]]:
        """Every syntax node, with its cell."""
        for cell in self.code:
            if tree := self.trees.get(cell.number):
                for node in ast.walk(tree):
                    yield cell, node

    @cached_property
    def headings(self) -> tuple[tuple[Cell, int, str], ...]:
        """Cell, level and text of every heading."""
        found = []
        for cell in self.cells:
            fenced = False
            for line in cell.source.splitlines() if not cell.code else ():
                fenced ^= line.startswith("```")
                marks = len(line) - len(line.lstrip("#"))
                if marks and not fenced and line[marks : marks + 1] == " ":
                    found.append((cell, marks, line[marks:].strip()))
        return tuple(found)


def parse(code: str) -> ast.Module:
    """The syntax tree of a cell; `await` is allowed outside functions, as in a notebook."""
    tree = compile(code, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    return tree


class Rules(dict[str, Rule]):
    """The rules of one concern, by code."""

    def add(self, code: str, title: str, fix: str) -> Callable[[Check], Check]:
        """Declare the decorated function as a rule."""

        def declare(check: Check) -> Check:
            assert code not in self, code
            self[code] = Rule(code, title, fix, check)
            return check

        return declare


def finding(rule: Rule, path: str, hit: Hit) -> Finding:
    """A hit as a finding."""
    cell, message = hit
    return Finding(
        code=rule.code,
        severity=Severity.ERROR,
        message=message,
        fix=rule.fix,
        source=SOURCE,
        where=f"{path}: {cell.label}" if cell else path,
    )
