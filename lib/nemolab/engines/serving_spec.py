"""What a serve notebook is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Target = Literal["render", "process", "attach"]


@dataclass(frozen=True, slots=True)
class ServeSpec:
    """A profile and what to do with it.

    Attributes:
        engine: that the notebook serves.
        profile: name, `:variant` may follow; or the path of a YAML file.
        settings: changes, `NAME=value`, as `nemolab render --set` takes them.
        target: `render` writes files only; `process` starts the engine here; `attach` takes a server that runs.
        render_to: what the files start: docker, compose, k8s and so on.
        python: of the engine's environment, for `process`; "" for the installed one.
        model_dir: folder of the checkpoint, for `process`; "" for the repository.
        base_url, served_model, api_key_env: the server to attach to.
        port: on loopback, for `process`; 0 takes the profile's.
    """

    engine: str
    profile: str
    settings: tuple[str, ...] = ()
    target: Target = "render"
    render_to: str = "docker"
    python: str = ""
    model_dir: str = ""
    base_url: str = ""
    served_model: str = ""
    api_key_env: str = ""
    port: int = 0
    timeout_s: float = 1800.0
    keep_running: bool = False
