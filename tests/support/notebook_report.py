"""An executed report of the template notebook, made with a real kernel, for the fault tests to break."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from nbclient import NotebookClient

from nemolab.core.step import Step
from nemolab.notebook import source
from nemolab.runbook.normalise import normalise, to_text

TEMPLATE = Path(__file__).parents[2] / "notebooks" / "_template.ipynb"


def execute(document: Any, step: Step, sockets: Path, given: Mapping[str, Any] | None = None) -> Any:
    """Run a notebook document as `step` in a kernel with a private socket; returns it with its outputs."""
    nb = nbformat.from_dict(source_joined(document))
    if given:
        cell = nbformat.v4.new_code_cell("\n".join(f"{k} = {v!r}" for k, v in given.items()), id="injected-parameters")
        cell.metadata["tags"] = ["injected-parameters"]
        place = source.tagged(document, "parameters")[0].number
        nb.cells.insert(place, cell)
    client = NotebookClient(nb, timeout=60, kernel_name="python3")
    client.km = client.create_kernel_manager()
    client.km.transport, client.km.ip = "ipc", str(sockets / "k")
    environment = {**os.environ, **step.environment(), "PYTHONHASHSEED": "0"}
    with mock.patch.dict(os.environ, environment):
        client.execute(cwd=str(step.folder))
    return nb


def report(folder: Path, name: str, sockets: Path, given: Mapping[str, Any] | None = None) -> Path:
    """Execute the template into `folder` as the runner would; the path of the executed notebook."""
    folder.mkdir(parents=True, exist_ok=True)
    done = execute(source.read(TEMPLATE), Step(folder, name, False, None), sockets, given)
    path = folder / f"{name}.ipynb"
    path.write_text(to_text(normalise(done, hide={str(folder): "<run>"})), encoding="utf-8")
    return path


def source_joined(document: Any) -> Any:
    """A copy with every source as one string, as nbformat holds it in memory."""
    return {**document, "cells": [{**cell, "source": "".join(cell["source"])} for cell in document["cells"]]}
