"""Making a schema: a parser is built without the packages its engine imports, described, and read from text otherwise.

The engine here is a small package of the same make; the shipped schemas were made from the published wheels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nemolab.core.errors import UsageError
from nemolab.lint import schema
from nemolab.lint.compare import lines
from nemolab.lint.extract import sources
from nemolab.lint.extract.build import describe

SERVER_ARGS = """
import argparse
import torch
import absent_package.kernels as kernels
from absent_package import Config, register
from sglang.srt.environ import envs

@register("x")
class Model(torch.nn.Module, metaclass=type(Config)):
    hidden: torch.Tensor

REDUCE = int(torch.distributed.ReduceOp.SUM)

def human_readable_int(text):
    return int(text)

class DeprecatedAction(argparse.Action):
    new_flag = "--new-name"
    def __call__(self, *args):
        pass

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--tp-size", type=int, default=1)
        parser.add_argument("--context-length", type=human_readable_int)
        parser.add_argument("--dtype", choices=["auto", "half", None], default="auto")
        parser.add_argument("--names", nargs="+")
        parser.add_argument("--enable-x", action=argparse.BooleanOptionalAction)
        parser.add_argument("--old-name", action=DeprecatedAction, nargs=0)
        if BROKEN:
            raise RuntimeError("no parser today")
"""
ENVIRON = """
class EnvBool:
    def __init__(self, default, **_): pass
EnvInt = EnvBoolWithAlias = EnvBool
class Envs:
    SGLANG_ON = EnvBool(True)
    SGLANG_SIZE = EnvInt(4)
    SGLANG_NEW = EnvBoolWithAlias(False, deprecated_name="SGLANG_OLD")
envs = None
"""


def package(folder: Path, *, broken: bool = False) -> Path:
    srt = folder / "sglang" / "srt"
    srt.mkdir(parents=True)
    (folder / "sglang" / "__init__.py").touch()
    (srt / "__init__.py").touch()
    (srt / "server_args.py").write_text(SERVER_ARGS.replace("BROKEN", str(broken)))
    (srt / "environ.py").write_text(ENVIRON)
    (srt / "other.py").write_text(
        'import os\nos.environ.get("SGLANG_HIDDEN")\nprint("--tp-size is deprecated, use --tp")'
    )
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return package(tmp_path)


def test_a_parser_is_built_without_what_it_imports(site: Path) -> None:
    document = describe("sglang", "9.9.9", site, Path(sys.executable))
    assert document["complete"]
    assert {"torch", "absent_package"} <= set(document["provenance"]["absent"]) | {"torch"}
    made = schema.parse(json.loads(json.dumps(document)))
    assert made.spellings["--model"][0].name == "--model-path"
    assert made.flags["--model-path"].required
    assert made.flags["--context-length"].type == "human_int"
    assert made.flags["--dtype"].choices == ("auto", "half")
    assert made.flags["--dtype"].none
    assert made.flags["--names"].nargs == "+"
    assert made.spellings["--no-enable-x"] == (made.flags["--enable-x"], True)
    assert made.flags["--old-name"].deprecated == "--new-name"
    assert made.env["SGLANG_ON"] == {"type": "bool", "reads": ["true", "1", "yes", "y"], "default": True}
    assert made.env["SGLANG_OLD"] == {"type": "bool", "deprecated": "SGLANG_NEW"}
    assert made.env_read_elsewhere == ("SGLANG_HIDDEN",)


def test_a_parser_that_cannot_be_built_is_read_from_its_text(tmp_path: Path) -> None:
    document = describe("sglang", "9.9.9", package(tmp_path, broken=True), Path(sys.executable))
    assert not document["complete"]
    assert document["provenance"]["method"].startswith("read from the source text")
    assert document["flags"]["--model-path"]["aliases"] == ["--model"]
    assert document["flags"]["--names"]["nargs"] == "+"


def test_deprecations_come_from_the_engine_s_own_words(site: Path) -> None:
    found = sources.deprecations(site / "sglang", "srt/*.py")
    assert found == {"--tp-size": "--tp-size is deprecated, use --tp"}


def test_what_changed_between_versions_is_shown() -> None:
    changes = list(lines(schema.load("vllm", "0.22.0"), schema.load("vllm", "0.33.0")))
    assert "+ --mamba-ssu-algorithm" in changes
    assert "- variable VLLM_FLASHINFER_MOE_BACKEND" in changes
    assert any(line.startswith("~ --mamba-cache-mode choices: -all") for line in changes)


def test_versions_are_ordered_and_neighbours_found() -> None:
    assert schema.version_key("1.3.0rc4") < schema.version_key("1.3.0rc17") < schema.version_key("1.3.0")
    assert schema.version_key("0.5.12") < schema.version_key("0.5.12.post1") < schema.version_key("0.5.13")
    assert schema.candidates("vllm", "0.22.0").exact
    assert schema.candidates("vllm", "0.22.1").names == ("0.22.0", "0.24.0")
    beyond = schema.candidates("vllm", "99")
    assert beyond.names == (schema.versions("vllm")[-1],)
    assert not beyond.exact
    assert schema.candidates("vllm", None).names[0] == schema.versions("vllm")[-1]
    with pytest.raises(UsageError, match="no schema"):
        schema.load("vllm", "0.0.1")


@pytest.mark.parametrize(("engine", "version"), [(e, v) for e in schema.ENGINES for v in schema.versions(e)])
def test_a_shipped_schema_says_where_it_comes_from(engine: str, version: str) -> None:
    made = schema.load(engine, version)
    assert made.provenance["method"]
    assert made.provenance["date"]
    assert made.flags
    if engine == "trtllm":
        assert made.provenance["method"].startswith("transcribed")
        assert made.provenance["sources"]
        assert made.yaml_keys
    else:
        assert made.complete
        assert len(made.provenance["files_sha256"]) == 64
        assert len(made.flags) > 150
        assert len(made.env) > 200


def test_the_schemas_stay_small() -> None:
    assert sum(path.stat().st_size for path in schema.FOLDER.iterdir()) < 1_500_000


def test_every_repository_of_the_catalogue_has_a_word_of_the_family() -> None:
    """Names without one are not looked up, so that a launch of another model does not load the catalogue."""
    from nemolab import models
    from nemolab.lint.case import FAMILY

    for model in models.entries().values():
        assert not model.repo or any(word in model.repo.lower() for word in FAMILY)
