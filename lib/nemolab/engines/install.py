"""Installing an engine from its lock into an environment of its own; the lab's environment is never touched.

plan(...) says what would be done and how large it is; apply(...) does it. An install that was interrupted goes on when
it is started again, because uv keeps every file that it has finished.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.files import sha256, write_json
from nemolab.core.finding import Severity
from nemolab.engines import install_uv as uv
from nemolab.engines.install_check import check
from nemolab.engines.install_plan import MARKER, InstallPlan, folder_of, installed, plan, state_of

Progress = Callable[[float, float | None, str | None], None]

__all__ = ["InstallPlan", "apply", "check", "folder_of", "installed", "plan", "remove"]


def apply(asked: InstallPlan, *, disk_check: bool = True, progress: Progress | None = None) -> Path:
    """Install; Python of the new environment. Does nothing when it is installed already.

    Args:
        progress: called as `progress(bytes done, bytes in all, package)`.

    Raises:
        UsageError: it cannot work here (machine, folder, disk), or another install of it runs.
        NemolabError: uv failed, or what was installed is not what the lock says.
    """
    if refused := [f for f in check(asked, disk=disk_check) if f.severity is Severity.ERROR]:
        raise UsageError(refused[0].message, where=str(asked.folder), fix=refused[0].fix)
    with _alone(asked.folder):
        if state_of(asked.folder, asked.lock) == "installed":
            return asked.interpreter
        if not asked.interpreter.exists():
            uv.run(["venv", "--quiet", "--clear", "--no-project", "--python", asked.lock.python, str(asked.folder)])
        _mark(asked, complete=False)
        _sync(asked, progress)
        _verify(asked)
        _mark(asked, complete=True)
    return asked.interpreter


def remove(engine: str, version: str) -> bool:
    """Remove an installed engine; false when it was not there. What uv has cached stays until `uv cache prune`.

    Raises:
        NemolabError: an install of it runs, or the folder cannot be removed.
    """
    folder = folder_of(engine, version)
    if not folder.is_dir():
        return False
    with _alone(folder):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise NemolabError(f"cannot remove: {error.strerror}", where=str(folder)) from None
    return True


def _sync(asked: InstallPlan, progress: Progress | None) -> None:
    sizes = {package.name: package.size for package in asked.lock.packages}
    done: dict[str, int] = {}

    def on_package(name: str) -> None:
        done[name] = sizes.get(name, 0)
        if progress:
            progress(sum(done.values()), asked.download, name)

    if progress:
        progress(0, asked.download, None)
    # Hashes of a pylock file are always checked. What has a wheel is never built; what has none is built with tools
    # of the same day, for a build takes the newest tools otherwise.
    wheels = [f"--only-binary={package.name}" for package in asked.lock.packages if not package.built]
    sync = ["pip", "sync", "--python", str(asked.interpreter), f"--exclude-newer={asked.lock.exclude_newer}"]
    uv.run([*sync, *wheels, str(asked.lock.path)], on_package=on_package)
    if progress:
        progress(asked.download, asked.download, None)


def _verify(asked: InstallPlan) -> None:
    """The environment's own Python must know the engine in the locked version."""
    code = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    command = [str(asked.interpreter), "-I", "-c", code, asked.engine]
    said = subprocess.run(command, capture_output=True, text=True, env=uv.environment())
    if said.stdout.strip() != asked.version:
        raise NemolabError(
            f"the environment holds {asked.engine} {said.stdout.strip() or 'in no version'}, not {asked.version}",
            where=str(asked.folder),
            fix=f"nemolab install {asked.engine} --version {asked.version} --remove, then install again",
        )


def _mark(asked: InstallPlan, *, complete: bool) -> None:
    document = {
        "engine": asked.engine,
        "version": asked.version,
        "python": asked.lock.python,
        "lock_sha256": sha256(asked.lock.path.read_bytes()),
        "complete": complete,
    }
    write_json(asked.folder / MARKER, document)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One install of an engine version at a time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another install of {folder.name} runs", where=str(folder), fix="wait for it") from None
        yield
