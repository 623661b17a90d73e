"""How the host is asked: files that may be missing, commands that may hang. Nothing here raises; None is *unknown*."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Reads below `root` (another than `/` is a recorded tree, and there no command is run).

    Attributes:
        timeout: seconds that one command may take.
    """

    root: Path = Path("/")
    timeout: float = 5.0

    @property
    def live(self) -> bool:
        """Whether this is the running machine."""
        return self.root == Path("/")

    def at(self, path: str) -> Path:
        """`path` on the probed machine."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | None:
        """Text of a small file, stripped."""
        try:
            return self.at(path).read_text(errors="replace").strip("\0\n\t ")
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """A file that holds one integer."""
        text = self.read(path)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def names(self, path: str) -> tuple[str, ...] | None:
        """Names in a folder, sorted; None when it cannot be listed."""
        try:
            return tuple(sorted(os.listdir(self.at(path))))
        except OSError:
            return None

    def which(self, command: str) -> bool | None:
        """Whether a command is installed; also where root's tools are."""
        if not self.live:
            return None
        search = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
        return shutil.which(command, path=search) is not None

    def run(self, *argv: str, timeout: float | None = None) -> Answer | None:
        """Run a command without a shell, in the C locale. None: not installed, refused, or out of time."""
        if not self.live:
            return None
        environment = {**os.environ, "LC_ALL": "C"}
        environment["PATH"] = os.pathsep.join((environment.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout or self.timeout,
                env=environment,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def output(self, *argv: str, timeout: float | None = None) -> str | None:
        """Stripped standard output of a command that succeeded."""
        answer = self.run(*argv, timeout=timeout)
        return answer.out.strip() if answer is not None and answer.code == 0 else None
