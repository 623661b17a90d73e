"""One launch together with everything known about it: what a rule looks at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint import argv
from nemolab.lint.launch import Launch, Script
from nemolab.lint.schema import LABELS, Candidates, Flag, Schema, candidates, version_key, versions
from nemolab.lint.values import BadKey, Unreadable, convert

if TYPE_CHECKING:
    from nemolab.lint.settings import Settings
    from nemolab.models.gpus import GpuKind
    from nemolab.models.model import Model


# Every name that the catalogue matches has one of these in it.
FAMILY = ("nemotron", "miniature")


@dataclass(frozen=True, slots=True)
class Context:
    """What the caller knows beyond the text; each value wins over what the text says.

    Attributes:
        engine: `vllm`, `sglang` or `trtllm`.
        engine_version: such as `0.22.0`.
        model: catalogue name, repository or folder.
        gpu: kind of GPU, such as `h200`.
        gpus: how many there are in all.
    """

    engine: str | None = None
    engine_version: str | None = None
    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None


@dataclass(frozen=True)
class Case:
    """A launch as the rules see it.

    Attributes:
        schema: the command line it is held against: that of its version, or the best guess.
        schemas: all that it could be; one when the version is known exactly.
        reading: its arguments as that parser reads them.
    """

    launch: Launch
    context: Context
    script: Script
    engine: str | None
    version: str | None
    schemas: Candidates | None
    schema: Schema | None
    reading: argv.Reading = field(default_factory=argv.Reading)

    # --- settings ---

    def option(self, *dests: str) -> argv.Option | None:
        """The option that decides a setting, by the engine's own names of it."""
        return next((option for dest in dests if (option := self.reading.last(dest))), None)

    def spelled(self, *dests: str) -> str | None:
        """How the flag of a setting is written in the launch, else the engine's name of it."""
        if option := self.option(*dests):
            return option.spelled
        if self.schema:
            return next((flag.name for dest in dests if (flag := self.schema.by_dest.get(dest))), None)
        return None

    def text(self, *dests: str) -> str | None:
        """The value of a setting as written; None when it is not given."""
        option = self.option(*dests)
        return option.values[0] if option and option.values else None

    def value(self, *dests: str) -> Any:
        """The value of a setting as the engine reads it; None when it is absent or unreadable."""
        option = self.option(*dests)
        if not option or not option.values or not self.schema:
            return None
        try:
            return convert(self.schema, option.flag, option.values[0])
        except (Unreadable, BadKey):
            return None

    def number(self, *dests: str) -> int | None:
        value = self.value(*dests)
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def on(self, *dests: str) -> bool | None:
        """Whether a switch is on; None when the launch does not say."""
        option = self.option(*dests)
        return None if option is None else not option.negative

    def document(self, *dests: str) -> dict[str, Any] | None:
        """A JSON-valued setting, without holding it against its class."""
        import json

        text = self.text(*dests)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def yaml(self, path: str) -> Any:
        """A key of the launch's options file, such as `kv_cache_config.avg_seq_len`."""
        value: Any = self.launch.yaml
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def has(self, dest: str) -> bool:
        """Whether this version has the setting at all."""
        return bool(self.schema and dest in self.schema.by_dest)

    def default(self, dest: str) -> Any:
        flag: Flag | None = self.schema.by_dest.get(dest) if self.schema else None
        return flag.default if flag else None

    def env(self, name: str) -> str | None:
        found = self.launch.env.get(name)
        return found[0] if found else None

    # --- facts ---

    @cached_property
    def model_text(self) -> str | None:
        """The model as the launch names it."""
        if self.context.model:
            return self.context.model
        if self.engine == "sglang" or self.launch.entry == "dynamo.sglang":
            return self.text("model_path", "model")
        if self.reading.positionals:
            return self.reading.positionals[0][0]
        return self.text("model", "model_path") or (self.text("hf_config_path"))

    @cached_property
    def model(self) -> Model | None:
        """The model from the catalogue; None when the launch does not say which, or it is another one."""
        from nemolab.core.errors import NemolabError

        if self.context.model:
            from nemolab import models

            try:
                return models.find(self.context.model)
            except NemolabError:
                return None
        served = self.option("served_model_name")
        names = [self.model_text, *(served.values if served else ()), self.launch.image]
        named = [name for name in names if name and any(word in name.lower() for word in FAMILY)]
        if not named:
            return None  # and the catalogue need not be loaded
        from nemolab import models

        return next((model for name in named if (model := models.match(name))), None)

    @cached_property
    def settings(self) -> Settings:
        """The settings under one name each."""
        from nemolab.lint import settings

        return settings.read(self)

    @cached_property
    def gpu(self) -> GpuKind | None:
        """The kind of GPU, when the caller or the manifest says it."""
        from nemolab.core.errors import NemolabError
        from nemolab.lint import hardware

        if self.context.gpu:
            return hardware.find(self.context.gpu)
        product = self.launch.container.product if self.launch.container else None
        if product:
            try:
                return hardware.find(product)
            except NemolabError:
                return None
        return None

    @property
    def gpus(self) -> int | None:
        """How many GPUs there are, when the caller or the container says it."""
        return self.context.gpus or (self.launch.container.gpus if self.launch.container else None)

    @property
    def hybrid(self) -> bool:
        """Whether the model is of this family: attention and Mamba layers mixed."""
        return self.model is not None and self.model.architecture is not None and "M" in self.model.architecture.layers

    def at_least(self, version: str) -> bool | None:
        """Whether the engine is of that version or newer; None when its version is unknown."""
        return None if self.version is None else version_key(self.version) >= version_key(version)

    def before(self, version: str) -> bool | None:
        known = self.at_least(version)
        return None if known is None else not known

    # --- findings ---

    def where(self, *dests: str, env: str | None = None, yaml: str | None = None) -> str | None:
        line = 0
        if env and env in self.launch.env:
            line = self.launch.env[env][1]
        elif yaml and yaml in self.launch.yaml_lines:
            line = self.launch.yaml_lines[yaml]
        elif (option := self.option(*dests)) and 0 <= option.at < len(self.launch.words):
            line = self.launch.words[option.at].line
        else:
            line = self.launch.line
        return f"line {line}" if line else None

    def find(self, code: str, severity: Severity, message: str, fix: str = "", source: str = "", *dests: str,
             flag: str | None = None, env: str | None = None, yaml: str | None = None) -> Finding:  # fmt: skip
        """A finding about a setting (`dests`), a variable or a YAML key."""
        named = flag or env or yaml or (self.spelled(*dests) if dests else None)
        return Finding(code, severity, message, fix, source, named, self.where(*dests, env=env, yaml=yaml))


def build(launch: Launch, context: Context, script: Script) -> Case:
    """Put a launch and what is known of it together."""
    engine = context.engine or _engine(launch)
    version = context.engine_version or launch.version
    if engine not in ("vllm", "sglang", "trtllm") or not versions(engine):
        return Case(launch, context, script, engine, version, None, None, argv.Reading())
    schemas = candidates(engine, version)
    schema = schemas.first
    reading = (
        argv.read(schema, launch.argv)
        if launch.entry not in ("options file", "trtllm-build", "trtllm-server")
        else argv.Reading()
    )
    return Case(launch, context, script, engine, version, schemas, schema, reading)


def _engine(launch: Launch) -> str | None:
    """Engine whose command line the launch uses: a Dynamo worker takes its engine's flags."""
    if launch.engine == "dynamo":
        return {"dynamo.vllm": "vllm", "dynamo.sglang": "sglang", "dynamo.trtllm": "trtllm"}.get(launch.entry)
    return launch.engine


def label(case: Case) -> str:
    """Engine and version for a message."""
    name = LABELS.get(case.engine or "", case.engine or "the engine")
    return f"{name} {case.version}" if case.version else name


Findings = Iterable[Finding]
