"""Before anything is started: what a profile sets and why, how its engine gets here, what plan and lint say, its files.

Everything that the serve notebooks show of a profile comes from one call, `prepare(spec)`, as plain values.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.core.sizes import human
from nemolab.engines import install_image, install_lock, profile_check
from nemolab.engines import profile as profiles
from nemolab.engines import render as renderers
from nemolab.engines.profile import Profile
from nemolab.engines.serving_spec import ServeSpec

if TYPE_CHECKING:
    from nemolab.models import Plan

Row = dict[str, str]
_COLUMNS: dict[str, tuple[str, ...]] = {
    "settings": ("setting", "value", "why", "source"),
    "install": ("step", "command", "what it is"),
    "plan": ("value", "amount", "kind", "formula", "source"),
    "disagreements": ("about", "who says what", "chosen here"),
    "about": ("about", "here", "know"),
}
# What the engine's log calls a value of the plan, and how many of the plan's units make one of the log's.
_IN_LOG = {"weights": 2**30, "kv_cache": 2**30, "kv_tokens": 1, "max_concurrency": 1, "attention_block": 1}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A profile, looked at from every side.

    Attributes:
        settings: every flag, variable and option with its reason and source.
        install: how the engine gets here, step by step.
        plan: rows of the planner; empty where it has nothing to say.
        fits: None where the planner has nothing to say.
        expected: what the engine's log should print, by the log rules' names.
        findings: of lint and of the plan.
        open_errors: errors among them that the profile does not account for.
        disagreements: what sources contradict each other on, and what was chosen.
        about: what only this engine has to be told of.
        files: rendered, by name.
    """

    profile: str
    title: str
    engine: str
    engine_version: str
    model: str
    hardware: str
    settings: tuple[Row, ...]
    install: tuple[Row, ...]
    plan: tuple[Row, ...]
    plan_sentence: str
    fits: bool | None
    expected: dict[str, float]
    findings: tuple[Finding, ...]
    open_errors: int
    disagreements: tuple[Row, ...]
    about: tuple[Row, ...]
    files: dict[str, str]

    def rows(self, name: str) -> list[Row]:
        """One of the tables, columns in order; a row of dashes where there is nothing to say."""
        found: tuple[Row, ...] = getattr(self, name)
        columns = _COLUMNS[name]
        return [{column: row[column] for column in columns} for row in found] or [dict.fromkeys(columns, "-")]

    @property
    def without_weights(self) -> bool:
        """Whether nothing is loaded, so that answers are noise."""
        return any(row["setting"] == "load-format" and row["value"] == "dummy" for row in self.settings)

    @property
    def headline(self) -> str:
        """The profile in a line."""
        return f"{self.title}: {self.model} on {self.hardware}, {self.engine} {self.engine_version}"


def prepare(spec: ServeSpec) -> Prepared:
    """Look at the profile of `spec`. Starts nothing.

    Raises:
        UsageError: no such profile, another engine's, or a setting that does not exist.
    """
    profile = load(spec)
    plan_rows, sentence, fits, expected, plan_findings = _plan(profile)
    named = {item.finding for item in profile.disagreements}
    found = [*profile_check.findings(profile), *plan_findings]
    return Prepared(
        profile=profile.full_name,
        title=profile.title,
        engine=profile.engine,
        engine_version=profile.engine_version,
        model=profile.model,
        hardware=f"{profile.hardware.gpus} x {profile.hardware.gpu}" if profile.hardware.gpus else "CPU",
        settings=tuple(_settings(profile)),
        install=tuple(install_steps(profile)),
        plan=plan_rows,
        plan_sentence=sentence,
        fits=fits,
        expected=expected,
        findings=tuple(replace(item, where=None) for item in found),
        open_errors=sum(f.severity is Severity.ERROR and f.code not in named for f in found),
        disagreements=tuple(
            {"about": item.about, "who says what": _says(item.says), "chosen here": item.chosen}
            for item in profile.disagreements
        ),
        about=tuple(about(profile)),
        files=renderers.render(profile, spec.render_to, dict(_settings_of_target(spec)), force=True),
    )


def load(spec: ServeSpec) -> Profile:
    """The profile with its changes.

    Raises:
        UsageError: no such profile, another engine's, or a setting that does not exist.
    """
    changes = {name: value for name, value in map(_pair, spec.settings) if _of_profile(name)}
    found = profiles.changed(profiles.load(spec.profile), changes)
    if spec.engine and found.engine != spec.engine:
        raise UsageError(
            f"that is a profile of {found.engine}, and this notebook serves {spec.engine}",
            where=found.full_name,
            fix="`nemolab profiles` lists them by engine",
        )
    return found


def about(profile: Profile) -> list[Row]:
    """What only this engine has to be told of: its module's own rows; none for llama.cpp, which has no such module."""
    if profile.engine == "llamacpp":
        return []
    rows: list[Row] = importlib.import_module(f"nemolab.engines.serving_{profile.engine}").about(profile)
    return rows


def install_steps(profile: Profile) -> list[Row]:
    """How the engine gets onto a machine: its environment from a lock, its image, or both."""
    rows: list[Row] = []
    if profile.engine in install_lock.ENGINES:
        try:
            lock = install_lock.find(profile.engine, profile.engine_version, "x86_64")
            sizes = f"{human(lock.download)} to fetch, {human(lock.unpacked)} on disk"
            detail = f"{len(lock.packages)} packages as of {lock.exclude_newer}, CUDA {lock.cuda}; {sizes}"
        except UsageError:
            detail = "no lock of this version yet: add --relock once"
        command = f"nemolab install {profile.engine} --version {profile.engine_version}"
        rows.append({"step": "environment of its own", "command": command, "what it is": detail})
    if profile.image:
        image = install_image.of(profile.engine, profile.image)
        *login, pull = install_image.commands(image)
        if login:
            rows.append({"step": "log in", "command": login[0], "what it is": f"key by name: {image.key_env}"})
        name, _, digest = pull.partition("@")
        pinned = f"pinned to {digest[:19]}; whole in the files" if digest else "by tag: it can move"
        rows.append({"step": "image", "command": name, "what it is": pinned})
    return rows


def _settings(profile: Profile) -> list[Row]:
    rows: list[Row] = []
    given = {**profile.args, **profile.frontend}
    values = {name: _text(value) for name, value in given.items()} | dict(profile.env)
    for content in profile.files.values():
        values |= {key: _text(value) for key, value in _leaves(content)}
    for name in profile.settings:
        reason = _reason(profile, name)
        rows.append({"setting": name, "value": values.get(name, ""), "why": reason[0], "source": reason[1]})
    return rows


def _leaves(content: Mapping[str, object], path: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, value in content.items():
        at = f"{path}.{key}" if path else key
        found += _leaves(value, at) if isinstance(value, Mapping) and value else [(at, value)]
    return found


def _reason(profile: Profile, name: str) -> tuple[str, str]:
    parts = name.split(".")
    above = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    found = next((profile.reasons[key] for key in above if key in profile.reasons), None)
    return (found.why, found.source) if found else ("-", "-")


def _plan(profile: Profile) -> tuple[tuple[Row, ...], str, bool | None, dict[str, float], tuple[Finding, ...]]:
    from nemolab.models import report

    found = profile_check.plan(profile)
    if found is None:
        return (), "The planner has nothing to say: no GPU is asked for, or the engine decides by itself.", None, {}, ()
    rows = tuple(report.plan_rows(found))
    return rows, report.sentence(found, 1.0), found.fits, in_log(found), report.plan_findings(found, 1.0)


def in_log(found: Plan) -> dict[str, float]:
    """What the engine's log should print for a plan, by the log rules' names and in their units."""
    numbers: dict[str, float] = {
        "weights": float(found.weights.total),
        "kv_cache": float(found.available_kv),
        "kv_tokens": float(found.kv_tokens),
        "max_concurrency": found.concurrency,
    }
    if found.cache:
        numbers["attention_block"] = float(found.cache.block_size)
    return {name: round(value / _IN_LOG[name], 4) for name, value in numbers.items()}


def _says(says: Mapping[str, str]) -> str:
    return "; ".join(f"{what}: {who}" for what, who in says.items())


def _settings_of_target(spec: ServeSpec) -> list[tuple[str, str]]:
    return [(name, value) for name, value in map(_pair, spec.settings) if not _of_profile(name)]


def _of_profile(name: str) -> bool:
    return name.partition(".")[0] in ("args", "env", "ports") or name in ("image", "revision")


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"not a setting: {text!r}", where="settings", fix="NAME=value, such as args.max-num-seqs=8")
    return name, value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
