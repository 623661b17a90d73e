"""The two contracts of a notebook: the parameters it takes and the results it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Better = Literal["higher", "lower", "equal", "none"]


class Params(BaseModel):
    """Base of a notebook's parameters: frozen, no unknown names; every field has a default and a `description`.

    Limits are pydantic's own (`ge`, `le`, `Literal`). The `parameters` cell repeats name, default, type and help, and
    the notebook linter holds the two against each other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


@dataclass(frozen=True, slots=True)
class Unit:
    """Annotation of a result: its unit, which direction is better, and the change that counts.

    Attributes:
        unit: as printed, "" for a plain number.
        better: direction, for `nemolab diff`; "equal" means that any change matters, "none" that none does.
        noise: relative change below which two measurements count as the same.
    """

    unit: str = ""
    better: Better = "none"
    noise: float = 0.0


class Results(BaseModel):
    """Base of a notebook's results: flat typed values, each with a `description` and, for numbers, a `Unit`.

    Example: `throughput: Annotated[float, Unit("tokens/s", "higher", noise=0.1)] = Field(description="...")`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    @classmethod
    def units(cls) -> Iterator[tuple[str, Unit, str]]:
        """Name, unit and description of every value."""
        for name, field in cls.model_fields.items():
            unit = next((m for m in field.metadata if isinstance(m, Unit)), Unit())
            yield name, unit, field.description or ""

    def as_document(self) -> dict[str, Any]:
        """The results as they are stored and shown: `{name: {value, unit, better, noise, help}}`."""
        values = self.model_dump(mode="json")
        return {
            name: {"value": values[name], "unit": u.unit, "better": u.better, "noise": u.noise, "help": text}
            for name, u, text in self.units()
        }
