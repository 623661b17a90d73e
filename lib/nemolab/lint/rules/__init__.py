"""The rules. Importing this package registers them all."""

from nemolab.lint.rules import (
    access,
    backends,
    context,
    images,
    mamba,
    memory,
    parallel,
    parsers,
    speculation,
    spelling,
    tensorrt,
    variables,
    versions,
)

__all__ = [
    "access",
    "backends",
    "context",
    "images",
    "mamba",
    "memory",
    "parallel",
    "parsers",
    "speculation",
    "spelling",
    "tensorrt",
    "variables",
    "versions",
]
