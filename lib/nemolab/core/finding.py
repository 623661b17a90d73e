"""A finding: what a check has to say, how grave it is, where it comes from and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    WARNING = "warning"
    DISAGREE = "sources disagree"
    UNKNOWN = "unknown"  # a fact is missing, so the check abstained and says so
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a check found.

    Attributes:
        code: stable: `R-...` of launches, `H-...` of hosts, `N...` of notebooks, `P-...` of reports, `A-...` of APIs,
            `L-...` of logs and load.
        message: one or two sentences, with the values that led to it.
        fix: what to do; empty only for `INFO`.
        source: the document or code, with version or date, that says so.
        flag: the option the finding is about, spelled as the engine spells it.
        where: file, line, step or device that it is about.
    """

    code: str
    severity: Severity
    message: str
    fix: str = ""
    source: str = ""
    flag: str | None = None
    where: str | None = None

    def as_dict(self) -> dict[str, str | None]:
        """The finding as JSON-ready values."""
        return {key: (str(value) if value is not None else None) for key, value in asdict(self).items()}
