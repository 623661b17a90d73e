"""One entry of the catalogue: a checkpoint, with everything the lab knows of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from nemolab.models.architecture import Architecture
from nemolab.models.evidence import Disagreement, Source
from nemolab.models.layout import BF16, Layout
from nemolab.models.parameters import Parameters, active, parameters


@dataclass(frozen=True)
class Model:
    """A checkpoint.

    Attributes:
        name: in the catalogue, such as "ultra-nvfp4".
        repo: on Hugging Face; "" for what has none.
        family: "ultra", "teacher", "super", "nano", "lightning", "miniature", "drafter" or "local".
        precision: "bf16", "fp8" or "nvfp4": of the routed experts.
        architecture: None for a drafter, whose config was not seen.
        layout: formats by tensor class.
        licence: as the source names it; "" when it was not seen.
        released: date as year-month-day or year-month; "" when unknown.
        published_parameters: as published, next to the count that the architecture gives.
        published_bytes: size of the checkpoint as published; None when it is only derived.
        revisions: commit on Hugging Face -> where it was seen.
        reasoning_plugin: parser file that the repository ships; "" when none is needed or known.
        engines: engine -> lowest version that serves it.
        drafter_of: names of the models that a drafter speeds up.
    """

    name: str
    repo: str
    family: str
    precision: str
    architecture: Architecture | None
    layout: Layout = BF16
    licence: str = ""
    released: str = ""
    published_parameters: int | None = None
    published_bytes: int | None = None
    revisions: dict[str, str] = field(default_factory=dict)
    reasoning_plugin: str = ""
    engines: dict[str, str] = field(default_factory=dict)
    drafter_of: tuple[str, ...] = ()
    gated: bool | None = None
    notes: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()

    @property
    def shape(self) -> Architecture:
        """The architecture.

        Raises:
            UsageError: it is a drafter, whose architecture was not seen.
        """
        if self.architecture is None:
            from nemolab.core.errors import UsageError

            raise UsageError(
                f"the architecture of {self.name} is not known", fix=f"plan one of {', '.join(self.drafter_of)}"
            )
        return self.architecture

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters by tensor class."""
        return parameters(self.shape)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets, without input embedding and MTP."""
        return active(self.shape)

    @property
    def size(self) -> int:
        """Bytes of the checkpoint's tensors: as published, else as the layout gives."""
        return self.published_bytes or self.layout.size(self.parameters)

    @property
    def max_model_len(self) -> int:
        """Longest context without a long-context override: `max_position_embeddings`."""
        return self.shape.max_position_embeddings

    def as_dict(self) -> dict[str, Any]:
        """The entry as JSON-ready values, with what follows from it."""
        found: dict[str, Any] = asdict(self)
        if self.architecture is not None:
            p = self.parameters
            found["parameters"] = {
                "total": p.total,
                "backbone": sum(p.backbone.values()),
                "mtp": sum(p.mtp.values()),
                "router_biases": p.router_biases,
                "active": self.active_parameters,
                "by_class": {str(name): number for name, number in p.backbone.items()},
            }
            found["bytes"] = self.size
            found["layers"] = {kind: self.shape.count(kind) for kind in "M*E-"}
        return found
