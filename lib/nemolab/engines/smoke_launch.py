"""The miniature through an engine and its flags, as data: which program, which words, what lint says of them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding
from nemolab.engines import install, ports, profile_check
from nemolab.engines import profile as profiles
from nemolab.engines.command import launch as launch_of
from nemolab.engines.launch import Launch
from nemolab.engines.profile import Profile

# Modules that are the engines' programs, for an environment without its scripts on PATH: (words of the profile's
# launch that name the program, module). vLLM's entry point is `vllm = vllm.entrypoints.cli.main:main`.
_PROGRAMS: dict[str, tuple[int, str]] = {
    "vllm": (1, "vllm.entrypoints.cli.main"),
    "sglang": (3, "sglang.launch_server"),
}
ENGINES = ("llamacpp", "vllm", "sglang")
_FLAG = re.compile(r"--?[A-Za-z]")


@dataclass(frozen=True, slots=True)
class SmokeSpec:
    """What is to be tried.

    Attributes:
        profile: name of a profile, `:variant` may follow; "" for the engine's miniature.
        settings: changes to it, `NAME=value`, as `nemolab render --set` takes them; `null` takes a flag away.
        engine_version: release that lint reads the flags for; "" for the profile's.
        python: interpreter of the engine's environment; "" for the one that `nemolab install` made.
        model: folder or file to load; "" for the miniature's own weights.
        extra_args: further words, as on a command line; an engine takes the last of two equal flags.
        env: further variables, `NAME=value`.
        lengths: prompts to hide needles in, tokens.
        needles: in each of these prompts.
        base_url: a server that runs already: then nothing is started or stopped.
    """

    engine: str = "llamacpp"
    profile: str = ""
    settings: tuple[str, ...] = ()
    engine_version: str = ""
    python: str = ""
    model: str = ""
    extra_args: str = ""
    env: tuple[str, ...] = ()
    port: int = 0
    lengths: tuple[int, ...] = (512, 4096)
    needles: int = 6
    timeout_s: float = 900.0
    base_url: str = ""
    served_model: str = ""


def words(spec: SmokeSpec) -> list[str]:
    """The extra words.

    Raises:
        UsageError: an open quote.
    """
    try:
        return shlex.split(spec.extra_args)
    except ValueError as error:
        raise UsageError(f"extra_args: {error}", where=spec.extra_args, fix="quote as in a shell") from None


def loaded(spec: SmokeSpec) -> Profile:
    """The profile that is tried.

    Raises:
        UsageError: there is none, or it is another engine's.
    """
    changes = dict(_pair(text, "settings") for text in spec.settings)
    found = profiles.changed(profiles.load(spec.profile or f"miniature_{spec.engine}"), changes)
    if found.engine != spec.engine:
        raise UsageError(f"that is a profile of {found.engine}", where=found.full_name, fix=f"engine={found.engine}")
    return replace(found, engine_version=spec.engine_version or found.engine_version)


def launch(spec: SmokeSpec, folder: Path) -> Launch:
    """The process that is started.

    Args:
        folder: for options files.

    Raises:
        UsageError: no profile, no environment, or variables that are none.
    """
    profile = loaded(spec)
    port = spec.port or (0 if spec.engine == "llamacpp" else ports.free_port())
    made = launch_of(profile, model=spec.model, port=port, files=folder, timeout_s=spec.timeout_s)
    made = through_interpreter(made, spec.engine, spec.python)
    env = dict(made.env) | dict(_variable(text) for text in spec.env)
    return replace(made, argv=(*made.argv, *words(spec)), env=tuple(env.items()))


def through_interpreter(made: Launch, engine: str, python: str) -> Launch:
    """The same launch through the Python of the engine's environment, whose scripts need not be on PATH.

    Raises:
        UsageError: that Python is not there.
    """
    if engine not in _PROGRAMS:
        return made
    count, module = _PROGRAMS[engine]
    return replace(made, argv=(str(interpreter(engine, python)), "-m", module, *made.argv[count:]))


def interpreter(engine: str, python: str = "") -> Path:
    """Python of the engine's environment; "" for the one that `nemolab install` made.

    Raises:
        UsageError: it is not there.
    """
    found = Path(python).expanduser() if python else install.installed(engine)
    if found is None:
        raise UsageError(
            f"{engine} is not installed here",
            fix=f"nemolab install {engine}, or name its environment's Python in `python`",
        )
    if not found.is_file():
        raise UsageError("no interpreter there", where=str(found), fix="such as /opt/vllm/bin/python")
    return found


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the launch, and who set it."""

    setting: str
    value: str
    set_by: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A launch before it is made: its settings, and what lint says of them."""

    settings: tuple[Setting, ...]
    findings: tuple[Finding, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row a setting; of the extra words, those after a flag are its value."""
        rows: list[dict[str, object]] = []
        for each in self.settings:
            extra = each.set_by == "extra_args"
            if extra and rows and rows[-1]["from"] == "extra_args" and not _FLAG.match(each.setting):
                rows[-1]["value"] = f"{rows[-1]['value']} {each.setting}".strip()
                continue
            flag, _, value = each.setting.partition("=") if extra else (each.setting, "", each.value)
            rows.append({"setting": flag, "value": value, "from": each.set_by})
        return rows


def check(spec: SmokeSpec) -> Checked:
    """What would be started, and what lint says of the profile with the extra words.

    Raises:
        UsageError: there is no such profile, or the extra words or variables cannot be read.
    """
    from nemolab.lint import lint_script
    from nemolab.lint.launch import Word

    profile = loaded(spec)
    extra = words(spec)
    name = profile.full_name
    settings = [Setting(f"--{flag}", _text(value), name) for flag, value in profile.args.items()]
    settings += [Setting(variable, value, name) for variable, value in profile.env.items()]
    settings += [Setting(text, "", "extra_args") for text in extra]
    settings += [Setting(variable, value, "env") for variable, value in map(_variable, spec.env)]
    script = profile_check.script(profile)
    added = tuple(Word(text, 0, quoted=True) for text in extra)
    script.launches = [replace(each, words=(*each.words, *added)) for each in script.launches]
    found = lint_script(script, profile_check.context(profile))
    return Checked(tuple(settings), tuple(replace(finding, where=None) for finding in found))


def _variable(text: str) -> tuple[str, str]:
    name, value = _pair(text, "env")
    if not name.isidentifier():
        raise UsageError(f"not a variable: {text!r}", where="env", fix="NAME=value")
    return name, value


def _pair(text: str, where: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"not NAME=value: {text!r}", where=where, fix="such as args.max-num-seqs=8")
    return name, value


def _text(value: object) -> str:
    return "" if value is True else str(value)
