"""The notebook linter: every rule over every notebook, then what only shows over all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.notebook import source
from nemolab.notebook.rules import RULES, Subject, finding
from nemolab.notebook.rules.subject import SOURCE

COPIED_SHARE = 0.05  # of all code lines
_WINDOW = 3  # lines in a row that make a copy

TITLES = {
    "N001": "a readable notebook file",
    **{code: rule.title for code, rule in RULES.items()},
    "N080": f"at most {COPIED_SHARE:.0%} copied code",
}


def lint(paths: Sequence[Path], base: Path | None = None) -> list[Finding]:
    """Findings of all rules over these notebooks, in order of file, cell and rule.

    Args:
        base: folder that paths are shown relative to.
    """
    subjects, findings = [], []
    for path in paths:
        shown = str(path.relative_to(base)) if base and path.is_relative_to(base) else str(path)
        try:
            subject = Subject(path, source.read(path))
        except UsageError as error:
            findings.append(
                Finding("N001", Severity.ERROR, error.what, "restore it from git", source=SOURCE, where=shown)
            )
            continue
        subjects.append(subject)
        hits = [(hit, rule) for rule in RULES.values() for hit in rule.check(subject)]
        hits.sort(key=lambda pair: (pair[0][0].number if pair[0][0] else 0, pair[1].code))
        findings += [finding(rule, shown, hit) for hit, rule in hits]
    return [*findings, *_copies(subjects)]


def copied_share(notebooks: Sequence[Subject]) -> tuple[float, dict[str, int]]:
    """Share of code lines that were copied from an earlier place, and their number by notebook.

    A line counts as copied if it lies in a run of three lines that stood before, in this notebook or another one;
    layout, comments and quotes make no difference. Parameters cells are left out: sharing parameter names is wanted.
    """
    seen: set[tuple[str, ...]] = set()
    copied: dict[str, int] = {}
    total = 0
    for subject in notebooks:
        for cell in subject.code:
            tree = subject.trees.get(cell.number)
            if tree is None or "parameters" in cell.tags:
                continue
            text = [line.strip() for line in ast.unparse(tree).splitlines()]
            windows = [tuple(text[i : i + _WINDOW]) for i in range(len(text) - _WINDOW + 1)]
            lines = {i + k for i, window in enumerate(windows) if window in seen for k in range(_WINDOW)}
            seen.update(windows)
            total += len(text)
            if lines:
                copied[subject.path.name] = copied.get(subject.path.name, 0) + len(lines)
    return (sum(copied.values()) / total if total else 0.0), copied


def _copies(subjects: Sequence[Subject]) -> Iterator[Finding]:
    share, by_notebook = copied_share(subjects)
    if share > COPIED_SHARE:
        most = max(by_notebook, key=lambda name: by_notebook[name])
        yield Finding(
            code="N080",
            severity=Severity.ERROR,
            message=f"{share:.0%} of the code lines are copies, at most {COPIED_SHARE:.0%}; most in {most}",
            fix="move what is copied into lib/nemolab",
            source=SOURCE,
            where=most,
        )
