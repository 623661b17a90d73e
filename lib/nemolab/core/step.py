"""What a notebook knows of the step it is run as: its folder, its name, whether it is replayed.

The runner sets it in the environment of the kernel. Without it a notebook runs on its own, in JupyterLab or by
plain papermill, and leaves its files under `reports/scratch`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nemolab.core import paths

FOLDER, NAME, REPLAY, RUN = "NEMOLAB_STEP_FOLDER", "NEMOLAB_STEP", "NEMOLAB_REPLAY", "NEMOLAB_RUN"
RECORDED = "NEMOLAB_RECORDED"


@dataclass(frozen=True, slots=True)
class Step:
    """The step a notebook runs as.

    Attributes:
        folder: run folder that `<name>.ipynb`, `<name>.results.json` and `recordings/` lie in.
        name: file stem of the executed notebook, such as `04_load`; None when run on its own.
        replay: recorded calls are read, never made; results are compared, never written.
        recorded: folders of earlier runs, whose recorded calls are taken where they are the same, from the first that
            has them; empty to make all.
        run: id of the run; servers started in this step belong to it and are stopped with it. None when on its own.
    """

    folder: Path
    name: str | None
    replay: bool
    run: str | None
    recorded: tuple[Path, ...] = ()

    def environment(self) -> dict[str, str]:
        """Environment variables that hand this step to a kernel."""
        values = {FOLDER: str(self.folder), REPLAY: "1" if self.replay else "0"}
        if self.name:
            values[NAME] = self.name
        if self.run:
            values[RUN] = self.run
        if self.recorded:
            values[RECORDED] = os.pathsep.join(map(str, self.recorded))
        return values


def current() -> Step:
    """The step of this process."""
    folder, recorded = os.environ.get(FOLDER), os.environ.get(RECORDED, "")
    return Step(
        folder=Path(folder) if folder else paths.reports() / "scratch",
        name=os.environ.get(NAME) or None,
        replay=os.environ.get(REPLAY) == "1",
        run=os.environ.get(RUN) or None,
        recorded=tuple(map(Path, recorded.split(os.pathsep))) if recorded else (),
    )
