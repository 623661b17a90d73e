"""From `vllm==X` to a schema file: unpack the wheel, build the engine's parser in isolation, describe it."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.files import sha256
from nemolab.lint.extract import sources

# Small packages that let most of an engine's own modules load; everything else gets a stand-in.
LIGHT = ("pydantic", "pyyaml", "regex", "typing-extensions", "packaging", "msgspec", "cachetools", "numpy", "click",
         "cloudpickle", "psutil", "fastapi", "pybase64", "orjson", "dill")  # fmt: skip
_PARSER_FILES = {
    "vllm": ("engine/arg_utils.py", "entrypoints/**/cli_args.py", "config/*.py"),
    "sglang": ("srt/server_args.py", "srt/arg_groups/*.py"),
}
_RULES: dict[str, dict[str, Any]] = {
    "vllm": {"folds_underscores": True, "prefixes": True, "dotted": True},
    "sglang": {"folds_underscores": False, "prefixes": True, "dotted": False},
}


def extract(requirement: str, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The schema of a published engine version, with its provenance.

    Args:
        requirement: `vllm==X` or `sglang==X`.
        say: gets one line a stage.

    Raises:
        UsageError: another engine, or no exact version.
        NemolabError: `uv` is missing, or the wheel cannot be had.
    """
    match = re.fullmatch(r"(vllm|sglang)==([0-9][A-Za-z0-9.+-]*)", requirement.strip())
    if not match:
        raise UsageError(
            f"cannot extract {requirement!r}",
            fix="name an engine and an exact version: vllm==0.22.0 or sglang==0.5.13 (TensorRT-LLM is transcribed)",
        )
    engine, version = match.groups()
    with tempfile.TemporaryDirectory(prefix="nemolab-schema-") as name:
        folder = Path(name)
        python, site = _environment(folder, requirement, say)
        say("building the engine's parser")
        return describe(engine, version, site, python)


def describe(engine: str, version: str, site: Path, python: Path) -> dict[str, Any]:
    """The schema of an unpacked wheel in `site`, its parser built by the interpreter `python`."""
    package = site / engine
    probed = _probe(python, engine, site)
    deprecated = sources.deprecations(package, *_PARSER_FILES[engine])
    if probed is None:
        method, flags = (
            "read from the source text (the parser could not be built)",
            sources.flags(package, *_PARSER_FILES[engine]),
        )
        probed = {"flags": flags, "configs": {}, "standins": [], "python": ""}
    else:
        method = "walked from the engine's own parser"
    for flag, message in deprecated.items():
        if flag in probed["flags"]:
            probed["flags"][flag].setdefault("deprecated", message)
    if engine == "vllm":
        env, registries, also = sources.vllm_environment(package), sources.vllm_registries(package), []
    else:
        env, registries = sources.sglang_environment(package), sources.sglang_registries(package)
        also = sources.sglang_other_environment(package, set(env))
    return {
        "schema": 1,
        "engine": engine,
        "version": version,
        "command": "vllm serve" if engine == "vllm" else "python3 -m sglang.launch_server",
        "complete": method.startswith("walked"),
        "rules": _RULES[engine],
        "provenance": {
            "package": f"{engine}=={version}",
            **_wheel(site, engine),
            "method": method,
            "python": probed["python"],
            "absent": probed["standins"],
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        },
        "flags": probed["flags"],
        "configs": probed["configs"],
        "registries": registries,
        "env": env,
        "env_read_elsewhere": also,
    }


def _environment(folder: Path, requirement: str, say: Callable[[str], None]) -> tuple[Path, Path]:
    """A fresh interpreter with the light packages, and the engine's wheel unpacked beside it."""
    uv = shutil.which("uv")
    if not uv:
        raise NemolabError("uv is not installed", fix="install uv (pip install uv), then run this again")
    venv, site = folder / "venv", folder / "site"
    python = venv / "bin" / "python"
    say("making an isolated environment")
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(venv)])
    _run([uv, "pip", "install", "--quiet", "--python", str(python), *LIGHT])
    say(f"unpacking the wheel of {requirement}")
    _run([
        uv, "pip", "install", "--quiet", "--no-cache", "--no-deps", "--only-binary", ":all:", "--python", str(python),
        "--python-platform", "x86_64-manylinux_2_35", "--target", str(site), requirement,
    ])  # fmt: skip
    return python, site


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NemolabError(
            f"{' '.join(command[1:4])} failed: {done.stderr.strip()[-400:]}",
            fix="check the version and that the package index can be reached",
        )


def _probe(python: Path, engine: str, site: Path) -> dict[str, Any] | None:
    """Run `probe.py` there, without secrets in its environment; None when the engine's parser cannot be built."""
    keep = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "TMPDIR", "LANG"}}
    script = Path(__file__).with_name("probe.py")
    with tempfile.TemporaryDirectory(prefix="nemolab-home-") as home:
        done = subprocess.run(
            [str(python), "-B", str(script), engine, str(site)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            cwd=home,
            env={**keep, "HOME": home, "CUDA_VISIBLE_DEVICES": "", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"},
        )
    if done.returncode:
        print(done.stderr.strip()[-600:], file=sys.stderr)
        return None
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _wheel(site: Path, engine: str) -> dict[str, str]:
    """Tag and digest of the unpacked wheel: the digest is that of its RECORD, which lists a hash of every file."""
    info = next(iter(site.glob(f"{engine}-*.dist-info")), None)
    if info is None:
        return {}
    wheel = (info / "WHEEL").read_text() if (info / "WHEEL").is_file() else ""
    tags = re.findall(r"^Tag: (\S+)$", wheel, re.M)
    out = {"wheel": tags[0]} if tags else {}
    if (info / "RECORD").is_file():
        lines = sorted(
            line
            for line in (info / "RECORD").read_text().splitlines()
            if ".dist-info/" not in line and "sha256=" in line
        )
        out["files_sha256"] = sha256("\n".join(lines).encode())
    return out
