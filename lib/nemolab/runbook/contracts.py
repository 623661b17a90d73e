"""What a notebook promises: its title, its code, and the models of its parameters and results. Reads JSON only."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from nemolab.core import paths
from nemolab.core.contract import Params, Results
from nemolab.core.errors import UsageError
from nemolab.core.files import sha256
from nemolab.core.located import nearest
from nemolab.core.secrets import secret_like
from nemolab.notebook import params as notebook_params
from nemolab.notebook import source
from nemolab.runbook.normalise import code_sha256


@dataclass(frozen=True)
class Contract:
    """A source notebook.

    Attributes:
        relative: path relative to the checkout, as it is recorded.
        code_sha256: digest of ids and sources of the code cells; text may change without a new measurement.
    """

    path: Path
    relative: str
    title: str
    params: type[Params]
    results: type[Results]
    code_sha256: str


def find(name: str, *, where: str) -> Path:
    """The notebook that a runbook calls `name`: its path in `notebooks/`, with or without `.ipynb`."""
    stem = name.removesuffix(".ipynb").removeprefix("notebooks/")
    path = paths.notebooks() / f"{stem}.ipynb"
    if ".." in Path(stem).parts or not path.is_file():
        known = [str(p.relative_to(paths.notebooks()).with_suffix("")) for p in paths.notebooks().rglob("*.ipynb")]
        raise UsageError(f"no notebook {name!r}", where=where, fix=nearest(stem, known))
    return path


def read(path: Path) -> Contract:
    """The contract of the notebook at `path`.

    Raises:
        UsageError: it is no notebook, or does not say which models it keeps to, or they are none.
    """
    document = source.read(path)
    params = notebook_params.model_of(path)
    results = results_model(path)
    for field in params.model_fields:
        if secret_like(field):
            raise UsageError(f"parameter {field!r} would hold a secret", where=str(path), fix=f"take `{field}_env`")
    text = next((cell.source for cell in source.cells(document) if not cell.code), "")
    title = next((line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("#")), path.stem)
    return Contract(path, paths.inside(path) or str(path), title, params, results, code_sha256(document))


def results_model(path: Path) -> type[Results]:
    """The pydantic model that the notebook's metadata names as `nemolab.results`; errors as for `read`."""
    name = str(source.lab_metadata(source.read(path)).get("results", ""))
    model = notebook_params.imported(name, str(path))
    if not (isinstance(model, type) and issubclass(model, Results)):
        raise UsageError("metadata nemolab.results names no subclass of nemolab.core.contract.Results", where=str(path))
    return model


@functools.cache
def library_sha256() -> str:
    """Digest of the library's own files: a measurement by other code is another measurement."""
    base = Path(__file__).resolve().parents[1]
    files = sorted(p for p in base.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return sha256("".join(f"{p.relative_to(base)} {sha256(p.read_bytes())}\n" for p in files).encode())
