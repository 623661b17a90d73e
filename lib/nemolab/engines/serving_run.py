"""A profile brought up: started as a process, or attached to; then asked, compared with its plan, and let go."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nemolab.client.attach import attach
from nemolab.client.endpoint import Endpoint
from nemolab.client.outcome import ProbeReport, check_rows
from nemolab.client.probe import probe
from nemolab.client.prometheus import scrape
from nemolab.core import step
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.engines import process, serving
from nemolab.engines.command import launch as launch_of
from nemolab.engines.launch import Owner
from nemolab.engines.logs import Phase, Quantity
from nemolab.engines.serving_against import against, of_noise, passed, unlike
from nemolab.engines.serving_look import phases_sentence
from nemolab.engines.serving_prepare import Prepared, load
from nemolab.engines.serving_spec import ServeSpec
from nemolab.engines.smoke_launch import through_interpreter

Progress = Callable[[float, float | None, str | None], None]
State = Literal["rendered", "started", "attached"]


@dataclass(frozen=True, slots=True)
class Running:
    """A server, or that there is none because only files were wanted.

    Attributes:
        id: of a started one, for `nemolab servers`.
        ready_s: seconds from the start until it answered; None for one that ran already.
        phases, capacity, notes: what its log said by then; empty for one that ran already.
    """

    state: State
    engine: str
    engine_version: str = ""
    id: str = ""
    base_url: str = ""
    model: str = ""
    api_key_env: str | None = None
    ready_s: float | None = None
    phases: tuple[Phase, ...] = ()
    capacity: dict[str, Quantity] | None = None
    notes: tuple[Finding, ...] = ()

    @property
    def up(self) -> bool:
        """Whether there is a server to ask."""
        return self.state != "rendered"

    def endpoint(self) -> Endpoint:
        """The server as clients take it."""
        return Endpoint(self.base_url, self.model, self.engine, self.engine_version, self.api_key_env)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a server answered.

    Attributes:
        first: the first answer; None when nothing was asked.
        probe: reasoning, tools, counts and the rest.
        metrics: values of its /metrics; empty when it has none.
    """

    first: serving.Answer | None = None
    probe: ProbeReport | None = None
    metrics: dict[str, float] | None = None


def bring_up(spec: ServeSpec, progress: Progress | None = None) -> Running:
    """Start the profile, attach to a server, or do neither.

    Raises:
        UsageError: no address, no environment, an engine that does not run as one process.
        StartError: it did not become ready; says why.
    """
    if spec.target == "render":
        return Running("rendered", spec.engine)
    if spec.target == "attach":
        if not spec.base_url:
            raise UsageError("base_url is not set", where="target=attach", fix="where the server answers, with /v1")
        found = attach(spec.base_url, spec.served_model, api_key_env=spec.api_key_env or None)
        return Running(
            "attached",
            found.engine or spec.engine,
            found.engine_version,
            base_url=found.base_url,
            model=found.model,
            api_key_env=found.api_key_env,
        )
    with tempfile.TemporaryDirectory(prefix="nemolab-") as folder:
        made = launch_of(
            load(spec), model=spec.model_dir, port=spec.port or None, files=Path(folder), timeout_s=spec.timeout_s
        )
        made = through_interpreter(made, spec.engine, spec.python)
        owner = Owner.nobody() if spec.keep_running and not step.current().run else None
        server = process.start(made, owner, progress=_teller(progress))
    return Running(
        "started",
        server.engine,
        server.report.version,
        id=server.id,
        base_url=server.base_url,
        model=server.model,
        ready_s=server.ready_s,
        phases=server.report.phases,
        capacity=server.report.capacity,
        notes=tuple(server.report.findings()),
    )


def ask(running: Running, progress: Progress | None = None) -> Asked:
    """First request, then every check of the API, then the counters. Asks nothing of a server that is not there."""
    if not running.up:
        return Asked()
    endpoint = running.endpoint()
    first = serving.ask(endpoint.base_url, endpoint.model, api_key_env=running.api_key_env)
    probed = probe(endpoint, progress=progress)
    try:
        found = scrape(endpoint)
    except NemolabError:
        found = None
    names = ("running", "waiting", "kv_usage", "prompt_tokens", "cached_prompt_tokens", "generated_tokens")
    values = {name: getattr(found, name) for name in (*names, "preemptions") if found}
    return Asked(first, probed, {name: value for name, value in values.items() if value is not None})


def release(running: Running, keep_running: bool = False) -> str:
    """Stop what was started, unless later steps or a person need it; what happened, in a sentence."""
    if running.state == "started":
        return serving.release(running.id, keep_running)
    return "Nothing was started here." if running.state == "rendered" else "The server ran before, and is left alone."


def sentence(running: Running) -> str:
    """What there is now, in words."""
    if running.state == "rendered":
        return "Files only: nothing was started."
    where = f"{running.model} on {running.engine} {running.engine_version}".rstrip()
    if running.state == "attached":
        return f"{where} answers at the given address."
    return f"{where} answers after {running.ready_s:.1f} s. {phases_sentence(running.phases)}"


def comparison(prepared: Prepared, running: Running) -> list[dict[str, object]]:
    """What the plan said beside what the engine printed, for every number that both have."""
    return against(prepared.expected, running.capacity or {})


def probe_rows(asked: Asked) -> list[dict[str, object]]:
    """One row a check of the API."""
    if asked.probe is None:
        return [{"check": "none", "status": "skipped", "what came of it": "there is no server to ask", "took": None}]
    return check_rows(asked.probe)


def metric_rows(asked: Asked) -> list[dict[str, object]]:
    """One row a counter, under names of no engine."""
    rows: list[dict[str, object]] = [
        {"metric": name.replace("_", " "), "value": value} for name, value in (asked.metrics or {}).items()
    ]
    return rows or [{"metric": "none", "value": None}]


def answer_text(asked: Asked) -> str:
    """The first answer, thoughts and content apart."""
    if asked.first is None:
        return "(nothing was asked)"
    return f"reasoning: {asked.first.reasoning or '(none)'}\ncontent: {asked.first.content or '(none)'}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it all ended: whether anything that was tried speaks against it, why, and every finding."""

    sound: bool
    why: str
    findings: tuple[Finding, ...]


def outcome(prepared: Prepared, running: Running, asked: Asked) -> Outcome:
    """What is to be said of this launch, from before its start and after it."""
    sound, why = _verdict(prepared, running, asked)
    found = [*prepared.findings, *running.notes]
    if running.state == "attached" and running.engine != prepared.engine:
        found.append(
            Finding(
                "S-201",
                Severity.WARNING,
                f"the server is {running.engine}, the profile is one of {prepared.engine}",
                "attach to the engine that the profile is for, or take it as a rehearsal",
            )
        )
    found += unlike(prepared.expected, running.capacity or {})
    said = asked.probe.findings() if asked.probe else []
    return Outcome(sound, why, tuple(found + (of_noise(said) if prepared.without_weights else said)))


def _verdict(prepared: Prepared, running: Running, asked: Asked) -> tuple[bool, str]:
    if prepared.fits is False:
        return False, prepared.plan_sentence
    if prepared.open_errors:
        return False, f"{prepared.open_errors} settings would be refused or break later; see the findings."
    if not running.up:
        return True, f"{prepared.title}: nothing speaks against it. {sentence(running)}"
    noise = prepared.without_weights
    if asked.first is None or not (asked.first.content or (noise and asked.first.completion_tokens)):
        return False, "The server runs, but its first answer has no content."
    if not passed(asked.probe, noise):
        return False, "The server answers, but a check of its API failed."
    return True, sentence(running) + (" It has no weights: sizes and times are real, words are noise." if noise else "")


def _teller(progress: Progress | None) -> Callable[[process.Progress], None]:
    def tell(at: process.Progress) -> None:
        if progress:
            progress(round(at.elapsed_s, 1), None, at.phase)

    return tell
