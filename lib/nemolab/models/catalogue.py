"""The catalogue: every checkpoint of the families, found by name."""

from __future__ import annotations

import difflib
import re
from functools import cache
from pathlib import Path

from nemolab.core.errors import UsageError
from nemolab.models import checkpoints, config
from nemolab.models.cut import cut
from nemolab.models.layout import BF16
from nemolab.models.model import Model


@cache
def entries() -> dict[str, Model]:
    """All entries by name, in the order of the families."""
    return {model.name: model for model in (*checkpoints.ALL, checkpoints.miniature())}


def names() -> tuple[str, ...]:
    """Names of the catalogue."""
    return tuple(entries())


def find(name: str) -> Model:
    """The model of that name: a catalogue name, a Hugging Face repository, or a folder or file with a config.json.

    Upper and lower case, `_` and `-`, and the owner of a repository do not matter. `NAME@N` is its first N layers
    (see `cut`).

    Raises:
        UsageError: nothing of that name; the message names the nearest ones; a cut that leaves no model.
    """
    base, at, layers = name.rpartition("@")
    if at and layers.isdigit():
        return cut(find(base), int(layers))
    wanted = _folded(name)
    if not wanted:  # a checkpoint without a repository has no name to be empty
        raise UsageError("no model is named", fix=f"one of: {', '.join(names())}")
    for model in entries().values():
        if wanted in (_folded(model.name), _folded(model.repo), _folded(model.repo.rpartition("/")[2])):
            return model
    path = Path(name).expanduser()
    if path.exists():
        return local(path)
    near = difflib.get_close_matches(wanted, [_folded(known) for known in names()], n=3, cutoff=0.4)
    raise UsageError(
        f"no model {name!r} in the catalogue and no such folder",
        fix=f"did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(names())}",
    )


def match(text: str) -> Model | None:
    """The model that a path or an alias inside a command names, or None: `/models/NVIDIA-Nemotron-3-Ultra-...-NVFP4`.

    The longest repository name contained in `text` wins.
    """
    folded = _folded(text)
    found = [model for model in entries().values() if model.repo and _folded(model.repo.rpartition("/")[2]) in folded]
    return max(found, key=lambda model: len(model.repo), default=None)


def local(path: Path) -> Model:
    """A model from its config.json alone; formats from `quantization_config` or `hf_quant_config.json` if present.

    A checkpoint of a known shape and precision is the first such of the catalogue, with its sources (Ultra's sisters
    cannot be told from it); otherwise it is "local".
    """
    from nemolab.models.quant import read_layout

    document = config.document(path)
    arch = config.from_config(document, where=str(path))
    precision, layout = read_layout(path if path.is_dir() else path.parent, document)
    for model in entries().values():
        if model.architecture == arch and model.precision == precision:
            return model
    return Model(
        name=path.name if path.is_dir() else path.stem,
        repo="",
        family="local",
        precision=precision,
        architecture=arch,
        layout=layout or BF16,
        notes=() if layout else ("the quantisation could not be read: sizes assume BF16",),
    )


def _folded(name: str) -> str:
    return re.sub(r"[_\s]+", "-", name.strip().lower()).strip("/")
