"""Writes the golden files anew: `python tests/engines/golden/renew.py`. Read the diff before you commit it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_render import COMMITTED, GOLDEN

from nemolab.engines import profile as profiles
from nemolab.engines.render import render, write

if __name__ == "__main__":
    for folder in GOLDEN.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    for name, target in COMMITTED:
        profile = profiles.load(name)
        write(render(profile, target), GOLDEN / profile.slug / target)
