"""The notebook's surroundings: whether a person is there, what it is called, how an output reaches it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from nemolab.core import step

HEADLESS = "NEMOLAB_HEADLESS"


def kernel() -> Any | None:
    """The ipykernel of this process, None outside one. Imports nothing that is not there already."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    return getattr(shell, "kernel", None)


def person_is_there() -> bool:
    """Whether somebody looks at this notebook while it runs. When unsure: no.

    All of these must hold, because each alone is wrong somewhere:
    it is not a step of a run (the runner sets `NEMOLAB_STEP`); nobody said `NEMOLAB_HEADLESS=1`; a Jupyter server or
    VS Code started the kernel (`JPY_SESSION_NAME`, `VSCODE_*`: a console cannot draw widgets); and the cell that runs
    now came from a client that can answer a prompt (`allow_stdin` of its execute request: true from JupyterLab and
    VS Code, false from nbclient, papermill and nbval, also when these are started from inside JupyterLab).
    """
    running = kernel()
    if running is None or step.current().name or os.environ.get(HEADLESS) == "1":
        return False
    if "JPY_SESSION_NAME" not in os.environ and not any(name.startswith("VSCODE_") for name in os.environ):
        return False
    request = running.get_parent("shell") or {}
    return bool(request.get("content", {}).get("allow_stdin"))


def has_output() -> bool:
    """Whether this cell's execution has emitted anything yet."""
    return _emitted_in is not None and _emitted_in == _request()


def _request() -> str | None:
    """Id of the request that the kernel works on: one a cell and execution."""
    running = kernel()
    request = (running.get_parent("shell") or {}) if running else {}
    return request.get("header", {}).get("msg_id")  # type: ignore[no-any-return]


_emitted_in: str | None = None
_known_as = "notebook"


def known_as(name: str) -> None:
    """What this kernel's notebook is called if nobody outside says: plain papermill tells a kernel no name."""
    global _known_as
    _known_as = name


def notebook_name() -> str:
    """Name of this notebook's files: the step's, else the notebook's as Jupyter knows it, else what it calls itself."""
    if name := step.current().name:
        return name
    session = os.environ.get("JPY_SESSION_NAME", "")
    return Path(session).stem if session.endswith(".ipynb") else _known_as


def emit(data: dict[str, Any]) -> None:
    """Show one output, given as MIME type -> value with a `text/plain` in it; outside a kernel print that text."""
    if kernel() is None:
        print(data["text/plain"])
        return
    global _emitted_in
    _emitted_in = _request()
    from IPython.display import display

    display(data, raw=True)  # type: ignore[no-untyped-call]
