"""A part of a model: its first layers, for a stack that cannot hold them all.

cut(find("ultra-bf16"), 9)      # catalogue name ultra-bf16@9
"""

from __future__ import annotations

from dataclasses import replace

from nemolab.core.errors import UsageError
from nemolab.models.architecture import ATTENTION, MAMBA
from nemolab.models.model import Model


def cut(model: Model, layers: int) -> Model:
    """The model with its first `layers` layers, embeddings and head; its name ends in `@LAYERS`. MTP is left out.

    Raises:
        UsageError: more layers than it has, or too few to hold both a Mamba and an attention layer.
    """
    shape = model.shape
    kept = shape.layers[:layers]
    if not 0 < layers <= len(shape.layers) or MAMBA not in kept or ATTENTION not in kept:
        least = max(shape.layers.index(MAMBA), shape.layers.index(ATTENTION)) + 1
        raise UsageError(
            f"{model.name} cannot be cut to {layers} layers",
            where=f"{model.name}@{layers}",
            fix=f"{least} to {len(shape.layers)}: a Mamba and an attention layer are needed",
        )
    return replace(
        without_mtp(model),
        name=f"{model.name}@{layers}",
        repo="",
        architecture=replace(without_mtp(model).shape, layers=kept),
        published_parameters=None,
        published_bytes=None,
        revisions={},
        notes=(f"the first {layers} of {len(shape.layers)} layers of {model.name}: for --load-format dummy only",),
    )


def without_mtp(model: Model) -> Model:
    """The model without its MTP layers, which dummy weights have no use for."""
    return replace(model, architecture=replace(model.shape, mtp_layers="", num_nextn_predict_layers=0))
