"""What the notebook `13_lint_launch` shows: rows and a figure from findings and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nemolab.core import paths
from nemolab.core.finding import Finding, Severity
from nemolab.lint.evaluate import Score, Verdict, evaluate
from nemolab.lint.schema import ENGINES, LABELS, load, versions

if TYPE_CHECKING:
    import plotly.graph_objects as go

Rows = list[dict[str, Any]]


def corpus(folder: str) -> Score:
    """Lint the corpus in a folder, named from the checkout."""
    path = Path(folder)
    return evaluate(path if path.is_absolute() else paths.root() / path)


def schema_rows() -> Rows:
    """The command lines that lint knows, and where each comes from."""
    return [
        {
            "engine": LABELS[engine],
            "version": version,
            "options": len(made.flags),
            "variables": len(made.env),
            "how": made.provenance["method"],
            "date": made.provenance["date"],
        }
        for engine in ENGINES
        for version in versions(engine)
        if (made := load(engine, version))
    ]


def score_rows(score: Score) -> Rows:
    """Totals by kind of command."""
    rows = []
    for kind in ("published", "broken"):
        verdicts = [v for v in score.verdicts if v.kind == kind]
        rows.append(
            {
                "commands": kind,
                "count": len(verdicts),
                "with errors": sum(bool(v.errors) for v in verdicts),
                "errors reported": sum(len(v.errors) for v in verdicts),
                "wrong errors": sum(len(v.wrong) for v in verdicts),
                "findings missed": sum(len(v.missed) for v in verdicts),
            }
        )
    return rows


def defect_rows(score: Score) -> Rows:
    """Published commands with a confirmed defect, and how it is reported."""
    return [
        {"published command": v.id, "finding": code, "says": _message(v, code), "source": v.source}
        for v in score.verdicts
        if v.kind == "published"
        for code in v.errors
    ]


def _message(verdict: Verdict, code: str) -> str:
    return next(f.message for f in verdict.findings if f.code == code and f.severity is Severity.ERROR)


def codes_figure(score: Score) -> tuple[go.Figure, Rows, str]:
    """How often each code fired on published and on broken commands, with its severity."""
    import plotly.graph_objects as go

    kinds: tuple[tuple[str, tuple[Severity, ...]], ...] = (
        ("errors", (Severity.ERROR,)),
        ("warnings", (Severity.WARNING, Severity.DISAGREE)),
        ("not checked", (Severity.UNKNOWN,)),
    )
    counts = {name: _counted(score, severities) for name, severities in kinds}
    total = Counter[str]()
    for counted in counts.values():
        total.update(counted)
    codes = [code for code, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))]
    fig = go.Figure()
    for name, _ in kinds:
        fig.add_bar(name=name, y=codes, x=[counts[name][code] for code in codes], orientation="h")
    fig.update_layout(barmode="stack")
    fig.update_yaxes(autorange="reversed", showgrid=False, dtick=1)
    fig.update_xaxes(title_text="commands")
    rows = [{"code": code, **{name: counts[name][code] for name, _ in kinds}} for code in codes]
    return fig, rows, f"{len(codes)} codes fired; most often {', '.join(codes[:3])}."


def _counted(score: Score, severities: Iterable[Severity]) -> Counter[str]:
    wanted = set(severities)
    return Counter(code for v in score.verdicts for code in {f.code for f in v.findings if f.severity in wanted})


def sentence(findings: Sequence[Finding], score: Score) -> str:
    """The outcome in one sentence."""
    errors = sum(f.severity is Severity.ERROR for f in findings)
    launch = "the launch has no error" if not errors else f"the launch has {errors} error{'s' * (errors > 1)}"
    return (
        f"{launch}; on {len(score.verdicts)} commands lint reported {score.reported} errors, {score.wrong} of them "
        "wrong "
        f"(precision {score.precision:.3f}), and missed {score.missed} of {score.expected} findings "
        f"(recall {score.recall:.3f})"
    )


def good(score: Score) -> bool:
    """No wrong error and nothing missed."""
    return not score.wrong and not score.missed
