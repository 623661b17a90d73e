"""The rules. Importing this package registers them all."""

from nemolab.lint.rules import spelling, variables

__all__ = ["spelling", "variables"]
