from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from nemolab.core.errors import NemolabError
from nemolab.core.files import write_atomic, write_json


def test_writes_whole_and_leaves_no_other_file(tmp_path: Path) -> None:
    target = tmp_path / "new" / "run.json"
    write_atomic(target, "first")
    write_atomic(target, b"second")
    assert target.read_bytes() == b"second"
    assert os.listdir(target.parent) == ["run.json"]


def test_json_is_stable(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    write_json(a, {"z": 1, "ä": [1.5, None]})
    write_json(b, {"ä": [1.5, None], "z": 1})
    assert a.read_bytes() == b.read_bytes()
    assert json.loads(a.read_text()) == {"z": 1, "ä": [1.5, None]}


def test_value_that_is_no_json_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    write_json(target, {"ok": True})
    with pytest.raises(TypeError):
        write_json(target, {"not json": object()})
    assert json.loads(target.read_text()) == {"ok": True}


@pytest.fixture
def full_disk(tmp_path: Path) -> Path:
    """A file system of 64 KiB, filled to its last byte."""
    mount = tmp_path / "disk"
    mount.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def test_full_disk_keeps_the_old_content(full_disk: Path) -> None:
    target = full_disk / "run.json"
    write_atomic(target, "old")
    with pytest.raises(NemolabError, match="No space left") as caught:
        write_atomic(target, b"x" * 200_000)
    assert caught.value.where == str(target)
    assert target.read_text() == "old"
    assert os.listdir(full_disk) == ["run.json"]
