"""Reading and writing the weights without torch: safetensors with bfloat16, which numpy does not know."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from nemolab.core.errors import NemolabError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tensors = dict[str, NDArray[np.float32]]

FILE = "model.safetensors"


def load(folder: Path) -> Tensors:
    """Every tensor of `folder`/model.safetensors as float32 (bfloat16 is widened, which is exact).

    Raises:
        NemolabError: the file is missing or damaged.
    """
    import numpy as np
    from safetensors import SafetensorError, deserialize

    path = folder / FILE
    try:
        entries = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except FileNotFoundError:
        raise NemolabError("no weights here", where=str(path), fix="`nemolab miniature train` writes them") from None
    except SafetensorError as error:
        raise NemolabError(f"damaged weights: {error}", where=str(path), fix="restore the file from git") from None
    tensors: Tensors = {}
    for name, entry in entries:
        if entry["dtype"] == "BF16":
            raw = np.frombuffer(entry["data"], dtype="<u2")
            values = (raw.astype(np.uint32) << 16).view(np.float32)
        elif entry["dtype"] == "F32":
            values = np.frombuffer(entry["data"], dtype="<f4")
        else:
            raise NemolabError(f"tensor {name} is {entry['dtype']}, not BF16 or F32", where=str(path))
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def digest(folder: Path) -> str:
    """Hash of everything that a GGUF is made from: weights, config, tokenizer and chat template."""
    total = hashlib.sha256()
    for name in ("config.json", "tokenizer.json", "chat_template.jinja", FILE):
        total.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return total.hexdigest()
