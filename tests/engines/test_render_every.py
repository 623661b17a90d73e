"""Every profile and variant to every target: it renders, lint clean, always the same, or says in one error why not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.support import rendered
from tests.support.rendered import every, expected, outcome

from nemolab.core.errors import UsageError
from nemolab.core.finding import Severity
from nemolab.engines.render import TARGETS
from nemolab.lint import Context, lint_text, read_text

GRAVE = (Severity.ERROR, Severity.WARNING, Severity.DISAGREE)


def test_each_renders_or_is_refused_with_one_clear_error() -> None:
    count: Counter[str] = Counter()
    for profile in every():
        for target in TARGETS:
            found = outcome(profile, target)
            at = (profile.full_name, target)
            if isinstance(found, dict):
                count["rendered"] += 1
                assert target in expected(profile), at
                assert all(text.strip() for text in found.values()), at
                continue
            count["refused"] += 1
            assert target not in expected(profile), (at, str(found))
            assert found.where == profile.full_name
            assert "\n" not in found.what
            assert found.fix
            named = re.match(r"render it to ([\w, ]+?)(?:;|, or (?:give|take)|$)", found.fix)
            for other in re.findall(r"\w+", named[1]) if named else ():
                assert other == "or" or other in expected(profile), (at, found.fix)
    assert count["rendered"] + count["refused"] == len(every()) * len(TARGETS)
    assert len(every()) > 100


@pytest.mark.parametrize("target", TARGETS)
def test_lint_finds_nothing_in_a_rendered_file_but_what_its_profile_names(target: str) -> None:
    """With what the profile knows, and with the file alone, as `nemolab lint FILE` has it."""
    for profile in rendered.rendering(target):
        named = {item.finding for item in profile.disagreements}
        hardware = profile.hardware
        knowing = Context(model=profile.model, gpu=hardware.gpu if hardware.gpus else None, gpus=hardware.gpus or None)
        files = outcome(profile, target)
        assert isinstance(files, dict)
        launches = [launch for text in files.values() for launch in read_text(text).launches]
        assert profile.engine in {launch.engine for launch in launches}, (profile.full_name, target)
        for name, text in files.items():
            found = lint_text(text, knowing)
            bad = [f for f in found if f.severity in GRAVE and f.code not in named]
            assert bad == [], (profile.full_name, target, name)
            alone = lint_text(text)
            assert [f for f in alone if f.severity is Severity.ERROR and f.code not in named] == []
            abstained = {f.code for f in alone if f.severity is Severity.UNKNOWN}
            assert "R-VERSION" not in abstained or profile.engine == "nim", (profile.full_name, target, name)


def test_what_does_not_fit_is_refused_unless_forced() -> None:
    from nemolab.engines.render import render

    too_big = [profile for profile in every() if not profile.fits]
    assert too_big
    for profile in too_big:
        for target in expected(profile):
            with pytest.raises(UsageError, match="does not fit"):
                render(profile, target)


def test_the_bytes_are_the_same_again_and_in_another_process() -> None:
    """Whatever order sets and hashes have there, and whatever the terminal and the locale are."""
    here = rendered.digest()
    assert rendered.digest() == here
    root = Path(__file__).parents[2]
    for seed in ("1", "4242"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root), "LC_ALL": "C", "COLUMNS": "40"}
        command = [sys.executable, "-m", "tests.support.rendered"]
        done = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, check=True, timeout=120)
        assert done.stdout.strip() == here
