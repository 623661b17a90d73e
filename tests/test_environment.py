"""environment.yml says the same as pyproject.toml, and every spec is one that conda can read.

Not proven here: that a channel carries these versions. That needs a solve against a channel.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler import MatchSpec
from rattler.exceptions import InvalidMatchSpecError

ROOT = Path(__file__).parents[1]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# Named otherwise on conda-forge than on PyPI.
PYPI_NAME = {"prometheus_client": "prometheus-client"}
# What a conda user gets beyond the default dependencies: the lab itself, and what replays a report.
BEYOND = {"python", "pip", "jupyterlab", "nbval", "pytest"}


def conda_specs() -> list[str]:
    return [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)]


def pip_specs() -> list[str]:
    [section] = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    return [spec for spec in section if not spec.startswith("-")]


def declared() -> dict[str, str]:
    """Name -> version range of every package in environment.yml."""
    found = {}
    for spec in conda_specs():
        name, _, version = spec.partition(" ")
        found[str(canonicalize_name(PYPI_NAME.get(name, name)))] = version
    for spec in pip_specs():
        requirement = Requirement(spec)
        found[str(canonicalize_name(requirement.name))] = str(requirement.specifier)
    return found


def wanted() -> dict[str, str]:
    """Name -> version range of what pyproject.toml asks for, with the extras and groups that the file covers."""
    project = PYPROJECT["project"]
    specs = [*project["dependencies"], *project["optional-dependencies"]["lab"], *PYPROJECT["dependency-groups"]["dev"]]
    requirements = {str(canonicalize_name(r.name)): str(r.specifier) for r in map(Requirement, specs)}
    default = {str(canonicalize_name(Requirement(s).name)) for s in project["dependencies"]}
    kept = default | (BEYOND - {"python", "pip"})
    ranges = {name: version for name, version in requirements.items() if name in kept}
    return {**ranges, "python": project["requires-python"], "pip": ""}


def test_keys_and_channels() -> None:
    assert set(ENVIRONMENT) == {"name", "channels", "dependencies"}
    assert ENVIRONMENT["channels"] == ["conda-forge", "nodefaults"]


@pytest.mark.parametrize("spec", conda_specs())
def test_conda_spec_is_strict(spec: str) -> None:
    MatchSpec(spec, strict=True)


@pytest.mark.parametrize("wrong", ["jupyterlab=4.6.*", "pandas >=3 <4", "papermill==2.7="])
def test_strict_parser_refuses_what_conda_misreads(wrong: str) -> None:
    with pytest.raises(InvalidMatchSpecError):
        MatchSpec(wrong, strict=True)


def test_same_packages_and_ranges_as_pyproject() -> None:
    assert declared() == wanted()


def test_pip_can_read_its_section() -> None:
    """conda writes the section to a requirements file, where options such as --no-deps are not allowed."""
    [section] = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    assert "-e ." in section
    assert all(re.fullmatch(r"-e \.|[\w.-]+[<>=!~\d.,]*", line) for line in section)


@pytest.mark.parametrize("name", sorted(set(declared()) - BEYOND))
def test_installed_version_is_inside_the_range(name: str) -> None:
    version = importlib.metadata.version(name)
    assert Requirement(f"{name}{re.sub(' ', '', declared()[name])}").specifier.contains(version, prereleases=True)
