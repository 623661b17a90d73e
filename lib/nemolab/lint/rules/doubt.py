"""What is certain when the engine version is not: only what every version it could be refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from nemolab.core.finding import Finding, Severity
from nemolab.lint import argv
from nemolab.lint.case import Case
from nemolab.lint.schema import Schema, version_key

Against = Callable[[Schema, Case, argv.Reading], Iterator[Finding]]
_CATALOGUE_ENGINE = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm"}
# Errors that no release makes right.
_CERTAIN = {"F-NEVER", "F-UNDERSCORE", "F-TYPE", "F-INT", "F-NARGS", "F-EXTRA", "F-BOOLVALUE", "F-REQUIRED"}


def with_doubt(case: Case, found: list[Finding], against: Against) -> list[Finding]:
    """Errors that only some of the possible versions raise become dependent on the version."""
    if case.schemas is None or not any(f.severity is Severity.ERROR for f in found):
        return found
    if case.schemas.beyond:
        have = case.schemas.names[0]
        why = f"{case.version} is not between the versions known here; {have} refuses it"
        return [_doubted(f, why) if f.severity is Severity.ERROR and f.code not in _CERTAIN else f for f in found]
    accepted: dict[tuple[str | None, str | None], list[str]] = {}
    for schema in _possible(case):
        refused = {
            (f.flag, f.where)
            for f in against(schema, case, argv.read(schema, case.launch.argv))
            if f.severity is Severity.ERROR
        }
        for finding in found:
            if finding.severity is Severity.ERROR and (finding.flag, finding.where) not in refused:
                accepted.setdefault((finding.flag, finding.where), []).append(schema.version)
    unclear = f"{case.version} lies between versions that differ" if case.version else "the engine version is unknown"
    out = []
    for finding in found:
        fine = accepted.get((finding.flag, finding.where))
        if finding.severity is Severity.ERROR and fine:
            finding = _doubted(finding, f"{unclear}; {', '.join(fine)} accept{'s' if len(fine) == 1 else ''} it")
        out.append(finding)
    return out


def _possible(case: Case) -> Iterator[Schema]:
    """Schemas of the versions that it could be: none that is too old for the model."""
    low = case.model.engines.get(_CATALOGUE_ENGINE[case.engine or ""]) if case.model else None
    for schema in case.schemas or ():
        if not low or version_key(schema.version) >= version_key(low):
            yield schema


def _doubted(finding: Finding, why: str) -> Finding:
    return replace(
        finding,
        severity=Severity.UNKNOWN,
        message=f"depends on the version ({why}): {finding.message}",
        fix=f"say which version: --engine-version; then: {finding.fix}",
    )
