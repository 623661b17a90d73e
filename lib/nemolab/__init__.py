"""nemolab: a reproducible lab and runbook for serving NVIDIA's Nemotron 3 models right."""

__version__ = "0.1.0"
