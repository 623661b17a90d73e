"""A launch for long context, read once: its settings, its plan, and the launch it is a variant of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nemolab.engines import profile as profiles
from nemolab.engines import profile_check
from nemolab.engines.profile import Profile
from nemolab.lint.case import build
from nemolab.lint.settings import Settings

if TYPE_CHECKING:
    from nemolab.lint.case import Case
    from nemolab.models import Plan

Row = dict[str, str]
SWITCHES = {  # engine -> variable, flag; R-LONG holds launches against the same pairs
    "vllm": ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "--max-model-len"),
    "sglang": ("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "--context-length"),
    "trtllm": ("TLLM_ALLOW_LONG_MAX_MODEL_LEN", "--max_seq_len"),
}
_UNSET = ("", "0", "false", "no")


@dataclass(frozen=True)
class Launched:
    """One profile, looked at for its context.

    Attributes:
        engine: whose command line counts: `vllm` inside Dynamo's workers.
        native: length in the checkpoint's config.json, tokens.
        length: tokens that one request of this launch may have, prompt and answer.
        plan: None where the planner has nothing to say.
        base: the profile without its variant; None when there is no variant.
    """

    profile: Profile
    case: Case
    engine: str
    native: int
    length: int
    plan: Plan | None
    base: Launched | None

    @property
    def settings(self) -> Settings:
        """The launch's settings under one name each."""
        return self.case.settings

    @property
    def beyond(self) -> bool:
        """Whether the length is above the checkpoint's own."""
        return self.length > self.native

    @property
    def switched(self) -> bool | None:
        """Whether the engine's variable is set; None for an engine without one."""
        if self.engine not in SWITCHES:
            return None
        return (self.case.env(SWITCHES[self.engine][0]) or "").strip().lower() not in _UNSET

    @property
    def chunk(self) -> int:
        """Tokens of a prompt that one step takes; all of it where prefill is not chunked."""
        if self.settings.chunked_prefill is False:
            return self.length
        return min(self.length, self.plan.request.max_num_batched_tokens if self.plan else 8192)

    def default(self, dest: str, otherwise: Any) -> Any:
        """The engine's own default of an option or variable, from this version's command line."""
        schema = self.case.schema
        if schema and (flag := schema.by_dest.get(dest)) and flag.default is not None:
            return flag.default
        if schema and isinstance(entry := schema.env.get(dest), dict) and entry.get("default") is not None:
            return entry["default"]
        return otherwise

    def reason(self, *settings: str) -> tuple[str, str]:
        """Why a setting is as it is and who says so, from the profile; empty where it does not say."""
        found = next((self.profile.reasons[name] for name in settings if name in self.profile.reasons), None)
        return (found.why, found.source) if found else ("", "")


def read(profile: Profile) -> Launched:
    """Look at a profile, and at the one that it is a variant of.

    Raises:
        UsageError: a value that the planner knows nothing of.
    """
    from nemolab import models

    script = profile_check.script(profile)
    case = build(script.launches[0], profile_check.context(profile), script)
    native = models.find(profile.model).max_model_len
    return Launched(
        profile=profile,
        case=case,
        engine=case.engine or profile.engine,
        native=native,
        length=case.settings.length or _told(profile) or native,
        plan=profile_check.plan(profile),
        base=read(profiles.load(profile.lines[""].rpartition(":")[0])) if profile.variant else None,
    )


def _told(profile: Profile) -> int | None:
    """Length where no command line is read: llama.cpp's slots share `--ctx-size`, NIM takes a variable."""
    size, slots = profile.args.get("ctx-size"), profile.args.get("parallel")
    if isinstance(size, int) and size > 0:
        return size // (slots if isinstance(slots, int) and slots > 0 else 1)
    told = profile.env.get("NIM_MAX_MODEL_LEN", "")
    return int(told) if told.isdigit() else None
