"""What is priced: one profile under several settings, and the lengths to ask."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nemolab.core.errors import UsageError
from nemolab.core.finding import Severity
from nemolab.engines import checkpoint, smoke_launch
from nemolab.engines import profile as profiles
from nemolab.engines.profile import Profile
from nemolab.engines.smoke_launch import SmokeSpec
from nemolab.models import units

Target = Literal["plan", "process", "attach"]
_NAME = re.compile(r"[\w.+ -]{1,40}")
AS_IT_IS = "as it is"
_FIX = 'write "chunk 8192: args.max-num-batched-tokens=8192"'


@dataclass(frozen=True, slots=True)
class Arm:
    """A name and what it changes, `NAME=value` each; longer prompts than `upto` tokens are not asked, 0 for all."""

    name: str
    settings: tuple[str, ...] = ()
    upto: int = 0


@dataclass(frozen=True, slots=True)
class PriceSpec:
    """What to start and what to ask.

    Attributes:
        profile: name, `:variant` may follow; or the path of a YAML file.
        settings: changes for every arm, below the arm's own.
        arms: at least one.
        target: `plan` starts nothing; `process` starts each arm here; `attach` asks a server that runs.
        python, model_dir, timeout_s, extra_args: for `process`, as `29_engine_smoke` takes them.
        base_url, api_key_env: for `attach`; of several models, the profile's is asked.
        tokenizer: path of a tokenizer.json, or `miniature`; "" for the one in `model_dir`.
        lengths: of prompts in tokens, the template included.
        decode_tokens: generated after each prompt, to time a decode step.
        max_s: for all questions of an arm, its start not counted; 0 for no limit.
        probe: compare answers between arms, cold and warm, alone and beside another request.
    """

    profile: str
    lengths: tuple[int, ...]
    arms: tuple[Arm, ...] = (Arm(AS_IT_IS),)
    settings: tuple[str, ...] = ()
    target: Target = "plan"
    base_url: str = ""
    api_key_env: str = ""
    python: str = ""
    model_dir: str = ""
    timeout_s: float = 1800.0
    extra_args: str = ""
    tokenizer: str = ""
    decode_tokens: int = 64
    max_s: float = 0.0
    probe: bool = True
    seed: int = 0

    def each(self) -> Iterator[PriceSpec]:
        """The same question for each arm alone, so that each is measured, and recorded, by itself."""
        return (replace(self, arms=(arm,)) for arm in self.arms)

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer that counts.

        Raises:
            UsageError: it is not said, and cannot be known.
        """
        if self.tokenizer:
            return self.tokenizer
        if self.model_dir and not self.model_dir.endswith(".gguf"):
            return f"{self.model_dir.rstrip('/')}/tokenizer.json"
        if load(self, self.arms[0]).model == "miniature":
            return "miniature"
        raise UsageError("no tokenizer", where="tokenizer", fix="path of the served model's tokenizer.json")


def parse_arms(texts: Iterable[str]) -> tuple[Arm, ...]:
    """Arms from lines `name: NAME=value NAME=value`; without any, the profile as it is. `upto=LENGTH` among the words
    spares an arm the longest prompts.

    Raises:
        UsageError: a line of another form, or two arms of one name.
    """
    arms = tuple(_arm(text) for text in texts) or (Arm(AS_IT_IS),)
    names = [arm.name for arm in arms]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two arms are called {twice[0]!r}", where="arms", fix="give each a name of its own")
    return arms


def load(spec: PriceSpec, arm: Arm) -> Profile:
    """The profile with the changes of all arms, then the arm's own.

    Raises:
        UsageError: no such profile, an engine that does not run as one process, or no such setting.
    """
    found = profiles.load(spec.profile)
    if found.engine not in smoke_launch.ENGINES:
        raise UsageError(
            f"{found.engine} does not run as one process here",
            where=found.full_name,
            fix=f"a profile of {', '.join(smoke_launch.ENGINES)}",
        )
    return smoke_launch.loaded(_smoke(spec, arm, found.engine))


def smoke_spec(spec: PriceSpec, arm: Arm) -> SmokeSpec:
    """The arm's launch, as the smoke test starts one."""
    return _smoke(spec, arm, load(spec, arm).engine)


def check(spec: PriceSpec) -> None:
    """Refuse what cannot be priced, before anything starts.

    Raises:
        UsageError: an unknown setting, arms that cannot be told apart, no length, or no address to attach to.
    """
    if not spec.lengths or min(spec.lengths) < 1:
        raise UsageError("no lengths", where="lengths", fix='such as "32K,128K"')
    if spec.target == "attach" and len(spec.arms) > 1:
        raise UsageError(
            f"{len(spec.arms)} arms and one server: a running server has the settings it has",
            where="target=attach",
            fix="attach with one arm, or target=process, which starts each arm",
        )
    if spec.target == "attach" and not spec.base_url:
        raise UsageError("base_url is not set", where="target=attach", fix="where the server answers, with /v1")
    for arm in spec.arms:
        where = f"arm {arm.name}"
        try:
            checked = smoke_launch.check(smoke_spec(spec, arm))
        except UsageError as error:
            raise UsageError(error.what, where=where, fix=error.fix) from None
        for finding in checked.findings:
            if finding.code == "F-UNKNOWN" and finding.severity is Severity.ERROR:
                raise UsageError(finding.message, where=where, fix=finding.fix)
        if spec.target == "process" and spec.model_dir:
            checkpoint.of_profile(load(spec, arm), Path(spec.model_dir).expanduser())


def _arm(text: str) -> Arm:
    name, colon, rest = text.partition(":")
    name = name.strip()
    if not colon or not _NAME.fullmatch(name):
        raise UsageError(f"not an arm: {text!r}", where="arms", fix=_FIX)
    try:
        settings = tuple(shlex.split(rest))
    except ValueError as error:
        raise UsageError(f"not an arm: {text!r}: {error}", where="arms", fix="quote as in a shell") from None
    if wrong := [word for word in settings if not word.partition("=")[1] or word.startswith("=")]:
        raise UsageError(f"not a setting: {wrong[0]!r}", where=f"arm {name}", fix=_FIX)
    limits = [word.partition("=")[2] for word in settings if word.startswith("upto=")]
    if len(limits) > 1:
        raise UsageError("upto is said twice", where=f"arm {name}", fix="once, such as upto=512K")
    upto = units.length(limits[0], where=f"arm {name}, upto") if limits else 0
    return Arm(name, tuple(word for word in settings if not word.startswith("upto=")), upto)


def _smoke(spec: PriceSpec, arm: Arm, engine: str) -> SmokeSpec:
    return SmokeSpec(
        engine=engine,
        profile=spec.profile,
        settings=(*spec.settings, *arm.settings),
        python=spec.python,
        model=spec.model_dir,
        extra_args=spec.extra_args,
        timeout_s=spec.timeout_s,
    )
