"""tools/setup.sh: each missing tool ends in one clear message, before anything is made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ("bash", "dirname", "df", "awk", "cut", "env", "rm", "touch")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but the script, and a `bin` that holds nothing but what the script calls."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", tmp_path / "tools")
    (tmp_path / "bin").mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def program(checkout: Path, name: str, text: str) -> None:
    path = checkout / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def python(checkout: Path, *, lacks: str = "nothing") -> None:
    """A python3 that is this one, except that importing what it lacks fails."""
    program(checkout, "python3", f'case "$*" in *{lacks}*) exit 1;; esac\nexec {sys.executable} "$@"')


def setup(checkout: Path, kind: str = "report", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shutil.which("bash") or "bash", "tools/setup.sh", kind],
        cwd=checkout,
        env={"PATH": str(checkout / "bin"), "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def refused(done: subprocess.CompletedProcess[str], checkout: Path, what: str, fix: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    [message, remedy] = done.stderr.strip().splitlines()
    assert what in message
    assert remedy.startswith("  fix: ")
    assert fix in remedy
    assert sorted(path.name for path in checkout.iterdir()) == ["bin", "tools"]


def test_no_python(checkout: Path) -> None:
    refused(setup(checkout), checkout, "Python 3.11 or newer is needed, found: no python3", "apt-get install")


def test_python_too_old(checkout: Path) -> None:
    program(checkout, "python3", '[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1')
    refused(setup(checkout), checkout, "found: Python 3.9.2", "PYTHON=")


def test_named_python_is_not_one(checkout: Path) -> None:
    python(checkout)
    refused(setup(checkout, PYTHON="/bin/false"), checkout, "PYTHON=/bin/false is not", "name another one")


def test_no_venv_module(checkout: Path) -> None:
    python(checkout, lacks="ensurepip")
    refused(setup(checkout), checkout, "this Python has no venv module", "python3-venv")


def test_no_disk(checkout: Path) -> None:
    python(checkout)
    program(checkout, "df", 'printf "Filesystem 1M Used Available\\n/dev/x 100 0 123 100%% /\\n"')
    refused(setup(checkout), checkout, "only 123 MiB free", "free space")
