"""Makes the lint-only schema of an engine version from its published wheel."""

from nemolab.lint.extract.build import extract

__all__ = ["extract"]
