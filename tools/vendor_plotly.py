"""Fetch plotly.js for the reports again: the cartesian bundle, in the version that the installed plotly draws for.

Run by a maintainer after plotly was updated, never by a test or a set-up:

    uv run --with zopfli python tools/vendor_plotly.py

It asks the npm registry through npm, packs the bundle with zopfli (5 % smaller than gzip -9, the same for every run)
and writes it beside its licence and a note of where it came from, which a test holds against the file.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

import zopfli.gzip
from plotly.offline import get_plotlyjs_version

PACKAGE, MEMBER = "plotly.js-cartesian-dist-min", "package/plotly-cartesian.min.js"
ASSETS = Path(__file__).resolve().parents[1] / "lib" / "nemolab" / "runbook" / "assets"


def main() -> None:
    """Write `plotly-cartesian.min.js.gz`, its licence and `plotly-cartesian.json` into the report's assets."""
    version = get_plotlyjs_version()
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--json", f"{PACKAGE}@{version}"], cwd=folder, check=True, capture_output=True, text=True
        )
        about = json.loads(packed.stdout)[0]
        with tarfile.open(Path(folder) / about["filename"]) as archive:
            script, licence = (archive.extractfile(name) for name in (MEMBER, "package/LICENSE"))
            assert script is not None
            assert licence is not None
            source, terms = script.read(), licence.read()
    compressed = zopfli.gzip.compress(source)
    (ASSETS / "plotly-cartesian.min.js.gz").write_bytes(compressed)
    (ASSETS / "plotly-cartesian.LICENSE.txt").write_bytes(terms)
    note = {
        "package": PACKAGE,
        "version": version,
        "registry": "npm",
        "integrity": about["integrity"],
        "file": MEMBER,
        "licence": "MIT",
        "sha256": hashlib.sha256(source).hexdigest(),
        "gzip_sha256": hashlib.sha256(compressed).hexdigest(),
        "made_by": "tools/vendor_plotly.py",
    }
    (ASSETS / "plotly-cartesian.json").write_text(json.dumps(note, indent=1, sort_keys=True) + "\n")
    print(f"{PACKAGE} {version}: {len(source):,} bytes, {len(compressed):,} compressed")


if __name__ == "__main__":
    main()
