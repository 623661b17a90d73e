"""Enabling a long context: everything that a launch needs for it, from its profile, before anything is started."""

from __future__ import annotations

from dataclasses import dataclass

from nemolab.core.finding import Finding, Severity
from nemolab.engines import serving_prepare
from nemolab.engines.serving_prepare import Prepared
from nemolab.engines.serving_spec import ServeSpec
from nemolab.longctx import enable_case, enable_hops, enable_memory, enable_settings
from nemolab.longctx.enable_case import Row
from nemolab.longctx.enable_hops import Hop
from nemolab.longctx.enable_memory import Cost

_RENDER = {"nim": "compose", "dynamo": "dynamo"}  # where docker alone does not start an engine, or not as published

_COLUMNS = {"settings": ("about", "here", "know", "source"), "lost": ("what", "at 256K", "here", "source")}


@dataclass(frozen=True, slots=True)
class EnableSpec:
    """What to look at.

    Attributes:
        profile: name, `:variant` may follow; or the path of a YAML file.
        settings: changes, `NAME=value`.
        render_to: what the files start; "" for the engine's usual.
        client_limit_s, proxy_idle_s: what client and proxy allow; 0: not said.
    """

    profile: str
    settings: tuple[str, ...] = ()
    render_to: str = ""
    client_limit_s: float = 0.0
    proxy_idle_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Enabling:
    """A launch, looked at for its context.

    Attributes:
        prepared: the profile's settings, plan, findings of lint, and rendered files.
        native, length: tokens that the checkpoint allows, and that this launch asks for.
        switched: the engine's variable for longer contexts is set; None where it has none.
        prefill_s: planned first token of the longest prompt; None without a plan.
        findings: of lint, plan and time-outs.
    """

    prepared: Prepared
    native: int
    length: int
    switched: bool | None
    settings: tuple[Row, ...]
    costs: tuple[Cost, ...]
    hops: tuple[Hop, ...]
    lost: tuple[Row, ...]
    prefill_s: float | None
    findings: tuple[Finding, ...]

    def rows(self, name: str) -> list[Row]:
        """The table `settings` or `lost`, columns in order."""
        found: tuple[Row, ...] = getattr(self, name)
        return [{column: row[column] for column in _COLUMNS[name]} for row in found]

    @property
    def enabled(self) -> bool:
        """Whether the launch gets the length it asks for: both switches where both are needed."""
        return self.length <= self.native or self.switched is not False

    @property
    def cost(self) -> Cost | None:
        """Cost of one request of the whole length."""
        return next((cost for cost in self.costs if cost.tokens == self.length), None)

    @property
    def sound(self) -> bool:
        """Whether nothing known speaks against the launch."""
        return self.enabled and self.prepared.fits is not False and not self.prepared.open_errors

    @property
    def sentence(self) -> str:
        """The launch in words."""
        if not self.enabled:
            return f"{self.length:,} tokens are asked for and {self.native:,} allowed: the engine's switch is not set."
        if self.prepared.fits is False:
            return self.prepared.plan_sentence
        if self.prepared.open_errors:
            return f"{self.prepared.open_errors} settings would be refused or break later; see the findings."
        once = f", {self.cost.at_once:.1f} requests at once" if self.cost else ""
        first = f", first token after about {self.prefill_s:,.0f} s" if self.prefill_s is not None else ""
        return f"{self.prepared.profile} allows {self.length:,} tokens{once}{first}."


def look_at(spec: EnableSpec) -> Enabling:
    """Look at a launch. Starts nothing.

    Raises:
        UsageError: no such profile or setting, or a target that the engine is not started by.
    """
    asked = ServeSpec("", spec.profile, spec.settings)
    profile = serving_prepare.load(asked)
    target = spec.render_to or _RENDER.get(profile.engine, "process" if profile.engine == "llamacpp" else "docker")
    prepared = serving_prepare.prepare(ServeSpec(profile.engine, spec.profile, spec.settings, render_to=target))
    here = enable_case.read(profile)
    costs = enable_memory.costs(here)
    hops = enable_hops.hops(here, spec.client_limit_s, spec.proxy_idle_s)
    found = [*prepared.findings, *enable_hops.findings(hops), *_unsaid(hops)]
    return Enabling(
        prepared=prepared,
        native=here.native,
        length=here.length,
        switched=here.switched,
        settings=tuple(enable_settings.rows(here)),
        costs=costs,
        hops=hops,
        lost=tuple(enable_memory.lost(here, costs)),
        prefill_s=enable_hops.prefill_s(here, here.length),
        findings=tuple(found),
    )


def _unsaid(hops: tuple[Hop, ...]) -> list[Finding]:
    open_ones = [hop for hop in hops if hop.needed_s is not None and hop.given_s is None and hop.hop != "engine"]
    if not open_ones:
        return []
    text = "; ".join(f"{hop.hop}, {hop.limit}: {hop.needed_s:,.0f} s" for hop in open_ones)
    return [Finding("X-HOP", Severity.INFO, f"Limits outside the engine that must allow the prefill: {text}.")]
