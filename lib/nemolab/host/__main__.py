"""`python -m nemolab.host`: print the facts of this host as JSON. Needs no more than the standard library and NVML."""

from __future__ import annotations

import json
import sys

from nemolab.host.collect import facts

if __name__ == "__main__":
    json.dump(facts().as_dict(), sys.stdout, indent=1)
    sys.stdout.write("\n")
