"""The door to training for callers without torch: says what is missing before anything is imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from nemolab.core.errors import UsageError

Which = Literal["shipped", "smoke", "full"]


def available() -> bool:
    """Whether torch is installed."""
    return find_spec("torch") is not None


def run(
    folder: Path,
    *,
    smoke: bool = False,
    workers: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Path:
    """Train into `folder` (see `nemolab.miniature.train.train`).

    Raises:
        UsageError: torch is not installed.
    """
    require("smoke" if smoke else "full")
    from nemolab.miniature import checkpoint_folder
    from nemolab.miniature.train import FULL, SMOKE, train

    plan = SMOKE if smoke else FULL
    if workers is not None:
        plan = replace(plan, workers=workers)
    template = (checkpoint_folder() / "chat_template.jinja").read_text()
    return train(plan, folder, template, progress=progress)


@dataclass(frozen=True, slots=True)
class Training:
    """A training that was made: its log, one line a report, and its record (date, versions, device, plan)."""

    log: list[dict[str, Any]]
    record: dict[str, Any]


def require(train: Which) -> None:
    """Refuse a training that cannot be made here.

    Raises:
        UsageError: torch is not installed.
    """
    if train != "shipped" and not available():
        raise UsageError("training needs torch", fix="install the extra: uv sync --extra train")


def obtain(train: Which, folder: str = "", *, progress: Callable[[float, float, str], None] | None = None) -> Training:
    """The shipped training's log, or that of a training made now into `folder`."""
    from nemolab.core import paths
    from nemolab.miniature import checkpoint_folder

    where = checkpoint_folder()
    if train != "shipped":
        where = Path(folder) if folder else paths.reports() / "scratch" / "miniature"
        run(where, smoke=train == "smoke", progress=progress)
    lines = (where / "training.jsonl").read_text().splitlines()
    return Training(log=[json.loads(line) for line in lines], record=json.loads((where / "training.json").read_bytes()))
