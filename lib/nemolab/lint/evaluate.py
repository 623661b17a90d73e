"""Precision and recall of lint over a corpus: commands as published, with the defects they have, and broken ones.

A corpus is a folder with `published.yaml` and `broken.yaml`. An entry has `id`, `source`, `text` and, where the text
does not tell, `context` (engine, engine_version, model, gpu, gpus). A published entry lists its confirmed
`defects` by code; a broken entry the one finding meant (`code`, `severity` if not error, `flag`), and codes that come
with it (`also`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.lint import Context, Finding, Severity, lint_text


@dataclass(frozen=True, slots=True)
class Verdict:
    """What lint made of one entry.

    Attributes:
        errors: codes of the errors it reported.
        wrong: those that the entry does not have.
        missed: those that it has and lint did not report.
    """

    id: str
    kind: str
    source: str
    errors: tuple[str, ...]
    wrong: tuple[str, ...]
    missed: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Totals over a corpus."""

    verdicts: tuple[Verdict, ...]

    @property
    def reported(self) -> int:
        """Errors reported, by code and entry."""
        return sum(len(v.errors) for v in self.verdicts)

    @property
    def wrong(self) -> int:
        """Errors reported that the entry does not have."""
        return sum(len(v.wrong) for v in self.verdicts)

    @property
    def expected(self) -> int:
        """Findings that should be there."""
        return sum(len(v.errors) - len(v.wrong) + len(v.missed) for v in self.verdicts if v.kind == "published") + sum(
            v.kind == "broken" for v in self.verdicts
        )

    @property
    def missed(self) -> int:
        """Findings that should be there and are not."""
        return sum(len(v.missed) for v in self.verdicts)

    @property
    def precision(self) -> float:
        """Share of reported errors that are right."""
        return 1 - self.wrong / self.reported if self.reported else 1.0

    @property
    def recall(self) -> float:
        """Share of the findings that should be there."""
        return 1 - self.missed / self.expected if self.expected else 1.0


def entries(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Entries of `published.yaml` or `broken.yaml`.

    Raises:
        UsageError: no such file.
    """
    import yaml

    path = folder / f"{kind}.yaml"
    if not path.is_file():
        raise UsageError("no corpus here", where=str(path), fix="name a folder with published.yaml and broken.yaml")
    loaded: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def context(entry: Mapping[str, Any]) -> Context:
    """What the entry says beside its text."""
    given = entry.get("context", {})
    words = {key: str(value) for key, value in given.items() if key != "gpus"}
    return Context(**words, gpus=given.get("gpus"))


def judge(entry: Mapping[str, Any], kind: str) -> Verdict:
    """Lint one entry and hold the findings against what it should have."""
    findings = tuple(lint_text(entry["text"], context(entry)))
    errors = tuple(dict.fromkeys(f.code for f in findings if f.severity is Severity.ERROR))
    if kind == "published":
        meant: Sequence[str] = entry.get("defects", ())
        missed = tuple(code for code in meant if code not in errors)
    else:
        meant = (entry["code"], *entry.get("also", ()))
        severity, flag = entry.get("severity", "error"), entry.get("flag")
        hit = any(f.code == entry["code"] and f.severity == severity and flag in (None, f.flag) for f in findings)
        missed = () if hit else (entry["code"],)
    wrong = tuple(code for code in errors if code not in meant)
    return Verdict(entry["id"], kind, entry["source"], errors, wrong, missed, findings)


def evaluate(folder: Path) -> Score:
    """Lint every entry of a corpus."""
    return Score(tuple(judge(entry, kind) for kind in ("published", "broken") for entry in entries(folder, kind)))
