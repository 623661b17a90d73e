"""Holds a launch against its engine version's command line, the model's arithmetic and the known troubles.

`lint_text(text, context)` is the whole interface: text in, findings out. Nothing of the text is executed.
"""

from __future__ import annotations

from nemolab.core.finding import Finding, Severity
from nemolab.lint.case import Context
from nemolab.lint.launch import Launch, Script, passed_through

__all__ = ["Context", "Finding", "Launch", "Script", "Severity", "lint_script", "lint_text", "read_text"]

_NOTHING = Finding(
    "R-NONE",
    Severity.UNKNOWN,
    "no server start was found in the text: nothing is checked",
    "paste a command such as vllm serve MODEL ..., a compose file, a manifest or a profile",
)
_ORDER = {Severity.ERROR: 0, Severity.DISAGREE: 1, Severity.WARNING: 2, Severity.UNKNOWN: 3, Severity.INFO: 4}


def read_text(text: str) -> Script:
    """Launches, commands and text defects of a command or a document. Never raises on text."""
    from nemolab.lint.commands import read_shell
    from nemolab.lint.documents import looks_like_document, read_document
    from nemolab.lint.pins import in_comments, with_versions

    kind = looks_like_document(text)
    script = read_document(text, kind) if kind else read_shell(text)
    script.launches = with_versions(script.launches, in_comments(text))
    script.launches += [inner for launch in script.launches if (inner := passed_through(launch))]
    return script


def lint_text(text: str, context: Context = Context()) -> list[Finding]:  # noqa: B008  frozen
    """Findings on every launch in `text`, gravest first.

    Args:
        text: a pasted shell command or script, a compose file, a Kubernetes manifest, a systemd unit, a profile, an
            options file.
        context: engine, version, model and GPUs where the text does not say them, or says them wrong.
    """
    return lint_script(read_text(text), context)


def lint_script(script: Script, context: Context = Context()) -> list[Finding]:  # noqa: B008  frozen
    """Findings on launches that were read already, or made by a program; gravest first."""
    from nemolab.lint import rules  # noqa: F401  registers the rules
    from nemolab.lint.case import build
    from nemolab.lint.registry import applicable, on_text

    findings = list(script.findings)
    for check in on_text(script):
        findings.extend(check(script))
    for launch in script.launches:
        case = build(launch, context, script)
        for rule in applicable(case):
            findings.extend(rule.check(case))
    if not script.launches and not findings:
        findings.append(_NOTHING)
    unique = dict.fromkeys(findings)
    return sorted(unique, key=lambda f: (_ORDER[f.severity], _line(f)))


def _line(finding: Finding) -> int:
    where = finding.where or ""
    return int(where.removeprefix("line ")) if where.startswith("line ") and where[5:].isdigit() else 0
