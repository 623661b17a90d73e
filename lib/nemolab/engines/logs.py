"""An engine's log, read: phases with times, capacity, warnings, and failures with cause and fix. Pure functions.

What an engine prints is data of its module (`LOG` in `nemolab.engines.llamacpp_log`, `nemolab.engines.vllm`); this
module only knows how to apply it, line by line while a server starts, or at once to a saved log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from nemolab.core.finding import Finding, Severity
from nemolab.core.secrets import redact_log
from nemolab.engines.log_rules import COMMON, EngineLog, Marker, Symptom

Number = int | float
_CUT = 400  # characters of a quoted line


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of the start: `begins_s` from the first line, `seconds` long (None while it lasts)."""

    name: str
    begins_s: float
    seconds: float | None = None
    saves: str = ""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that the engine printed."""

    value: Number
    unit: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A symptom that was found.

    Attributes:
        line: as printed, cut, without secrets.
        number: of the first such line, from 1.
        times: how often it came.
    """

    symptom: Symptom
    cause: str
    fix: str
    line: str
    number: int
    times: int = 1

    def as_finding(self, severity: Severity) -> Finding:
        """The symptom as a finding; the line stands in the message."""
        times = f" ({self.times} times)" if self.times > 1 else ""
        where = f"log line {self.number}"
        message = f"{self.cause}{times}: {_INSTALLED.sub('', self.line)}"
        return Finding(self.symptom.code, severity, message, self.fix, self.symptom.source, where=where)


# Where an engine is installed is this machine's affair: a report names its files from the package on.
_INSTALLED = re.compile(r"(?<![\w./])(?:/[^\s/'\",:]+)+/(?=(?:vllm|sglang|tensorrt_llm|dynamo|flashinfer|torch)/)")


@dataclass(frozen=True, slots=True)
class LogReport:
    """What a log says.

    Attributes:
        engine: whose log it is, "" if no engine's banner was found.
        phases: in the order of their begin.
        capacity: numbers by name.
        warnings, failures: by rank; the first failure is the likeliest cause.
        ready: the engine said that it takes requests.
        ready_s: when, from the first line.
    """

    engine: str
    version: str
    phases: tuple[Phase, ...]
    capacity: dict[str, Quantity]
    warnings: tuple[Seen, ...]
    failures: tuple[Seen, ...]
    ready: bool
    ready_s: float | None
    lines: int

    @property
    def cause(self) -> Seen | None:
        """The likeliest cause of a failure."""
        return self.failures[0] if self.failures else None

    def findings(self) -> list[Finding]:
        """Failures as errors, then warnings."""
        errors = [seen.as_finding(Severity.ERROR) for seen in self.failures]
        return errors + [seen.as_finding(Severity.WARNING) for seen in self.warnings]


@dataclass(slots=True)
class _Open:
    marker: Marker | None
    name: str
    begins: float
    stated: float | None = None


@dataclass
class LogReader:
    """Reads a log as it grows. `feed` takes text in pieces of any size; `report` may be asked at any time."""

    rules: EngineLog
    _rest: str = ""
    _lines: int = 0
    _zero: float | None = None
    _now: float = 0.0
    _opened: list[_Open] = field(default_factory=list)
    _capacity: dict[str, Quantity] = field(default_factory=dict)
    _seen: dict[str, Seen] = field(default_factory=dict)
    _ready: float | None = None
    _version: str = ""
    _banner: bool = False
    tail: list[str] = field(default_factory=list)

    def feed(self, text: str, now: float | None = None) -> list[str]:
        """Take more of the log; names of the phases that began.

        Args:
            now: seconds since the start, for lines that carry no time of their own.
        """
        *lines, self._rest = re.split(r"\r\n|\n|\r", self._rest + text)
        began: list[str] = []
        for line in lines:
            began += self._line(line, now)
        return began

    def finish(self) -> None:
        """Take the last line, whose end never came."""
        if self._rest:
            self.feed("\n")

    @property
    def phase(self) -> str:
        """What goes on now."""
        return self._opened[-1].name if self._opened else self.rules.first_phase

    @property
    def fatal(self) -> Seen | None:
        """A symptom after which waiting is in vain."""
        return next((seen for seen in self._ranked(self._failures()) if seen.symptom.fatal), None)

    def report(self) -> LogReport:
        """What the log says so far."""
        ends = [after.begins for after in self._opened[1:]]
        ends.append(self._ready if self._ready is not None else self._now)
        last_open = self._ready is None
        phases = (
            tuple(
                Phase(
                    name=o.name,
                    begins_s=round(o.begins, 3),
                    seconds=round(o.stated if o.stated is not None else max(0.0, end - o.begins), 3)
                    if not (last_open and o is self._opened[-1])
                    else None,
                    saves=o.marker.saves if o.marker else "",
                )
                for o, end in zip(self._opened, ends, strict=True)
            )
            if self._opened
            else ()
        )
        return LogReport(
            engine=self.rules.engine if self._banner else "",
            version=self._version,
            phases=phases,
            capacity=dict(self._capacity),
            warnings=self._ranked(self.rules.warnings),
            failures=self._ranked(self._failures()),
            ready=self._ready is not None,
            ready_s=None if self._ready is None else round(self._ready, 3),
            lines=self._lines,
        )

    def _failures(self) -> tuple[Symptom, ...]:
        return tuple(sorted(self.rules.failures + COMMON, key=lambda symptom: symptom.aftermath))

    def _ranked(self, symptoms: Iterable[Symptom]) -> tuple[Seen, ...]:
        return tuple(self._seen[s.code] for s in symptoms if s.code in self._seen)

    def _line(self, line: str, now: float | None) -> list[str]:
        self._lines += 1
        if line.strip():
            self.tail = [*self.tail[-39:], redact_log(line)[:_CUT]]
        stamp = self.rules.stamp(line)
        if stamp is not None:
            if self._zero is None:  # what came before the first stamp took until now
                self._zero = stamp - (self._now if now is None else now)
            self._now = max(self._now, stamp - self._zero)
        elif now is not None and self._zero is None:
            self._now = now
        if not self._opened:
            self._opened.append(_Open(None, self.rules.first_phase, 0.0))
        self._banner = self._banner or bool(self.rules.banner.search(line))
        if self.rules.version and not self._version and (match := self.rules.version.search(line)):
            self._version = match["v"]
        for value in self.rules.values:
            if match := value.pattern.search(line):
                self._capacity[value.name] = Quantity(_number(match["v"]), value.unit)
        if not (self.rules.echo and self.rules.echo.search(line)):
            self._symptoms(line)
        if self._ready is None and self.rules.ready.search(line):
            self._ready = self._now
        return self._phases(line)

    def _symptoms(self, line: str) -> None:
        for symptom in (*self._failures(), *self.rules.warnings):
            if not (match := symptom.pattern.search(line)):
                continue
            if known := self._seen.get(symptom.code):
                self._seen[symptom.code] = replace(known, times=known.times + 1)
                continue
            groups = {name: value or "?" for name, value in match.groupdict().items()}
            self._seen[symptom.code] = Seen(
                symptom,
                symptom.cause.format(**groups),
                symptom.fix.format(**groups),
                redact_log(line.strip())[:_CUT],
                self._lines,
            )

    def _phases(self, line: str) -> list[str]:
        began: list[str] = []
        for marker in self.rules.markers:
            opened = next((o for o in self._opened if o.marker is marker), None)
            if opened is None and self._ready is None and marker.begins.search(line):
                opened = _Open(marker, marker.phase, self._now)
                self._opened.append(opened)
                began.append(marker.phase)
            if opened is not None and marker.took and (match := marker.took.search(line)):
                opened.stated = float(match["s"])
        return began


def read_log(text: str, rules: EngineLog) -> LogReport:
    """What a whole log says, by the rules of one engine."""
    reader = LogReader(rules)
    reader.feed(text)
    reader.finish()
    return reader.report()


def _number(text: str) -> Number:
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)
