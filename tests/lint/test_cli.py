"""`nemolab lint` and `nemolab schemas` as a shell and a CI see them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

GOOD = "docker run --gpus all -p 127.0.0.1:1:1 vllm/vllm-openai:v0.22.0 nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16\n"
BAD = "vllm serve m --swap-space 0\n"


def nemolab(*args: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nemolab", *args], input=text, capture_output=True, text=True, check=False
    )


def test_exit_codes() -> None:
    assert nemolab("lint", "-", text=GOOD).returncode == 0
    assert nemolab("lint", "-", "--engine-version", "0.22.0", text=BAD).returncode == 1
    for wrong in (
        ["--engine", "vlm"],
        ["--model", "nonsense-9"],
        ["--gpu", "h900"],
        ["/no/such/file"],
        ["--json", "--sarif"],
    ):
        done = nemolab(
            "lint",
            "-" if wrong[0].startswith("-") else wrong[0],
            *(wrong if wrong[0].startswith("-") else []),
            text=GOOD,
        )
        assert done.returncode == 2, (wrong, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr


def test_terminal_output_names_flag_version_and_fix() -> None:
    out = nemolab("lint", "-", "--engine-version", "v0.22.0", text=BAD).stdout
    assert "error R-DEPRECATED line 1: --swap-space is unknown to vLLM 0.22.0" in out
    assert "fix: delete it" in out
    assert "1 error" in out.splitlines()[-1]


def test_json_is_a_list_of_findings() -> None:
    found = json.loads(nemolab("lint", "-", "--engine-version", "0.22.0", "--json", text=BAD).stdout)
    error = next(f for f in found if f["severity"] == "error")
    assert set(error) == {"code", "severity", "flag", "message", "fix", "source", "where"}
    assert (error["flag"], error["where"]) == ("--swap-space", "line 1")
    assert "0.22.0" in error["message"]


# The parts of SARIF 2.1.0 that code scanning reads; from the OASIS schema.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {"type": "array", "items": {"type": "object", "required": ["id"]}}
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "level"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"type": "object", "required": ["text"]},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "region": {
                                                        "type": "object",
                                                        "properties": {"startLine": {"minimum": 1}},
                                                    }
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_sarif_is_sarif() -> None:
    document = json.loads(nemolab("lint", "-", "--engine-version", "0.22.0", "--sarif", text=BAD).stdout)
    jsonschema.validate(document, SARIF)
    run = document["runs"][0]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert {r["level"] for r in run["results"]} >= {"error"}


def test_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(GOOD)
    (tmp_path / "b.sh").write_text(BAD)
    done = nemolab("lint", str(tmp_path / "a.sh"), str(tmp_path / "b.sh"), "--engine-version", "0.22.0")
    assert done.returncode == 1
    assert f"{tmp_path / 'b.sh'}: 1 error" in done.stdout


def test_a_command_pulls_in_neither_an_engine_nor_a_heavy_package() -> None:
    """Start-up stays short only while nothing heavy is imported: what is loaded is checked, not the clock."""
    code = (
        "import sys; from nemolab.lint import lint_text; lint_text(sys.stdin.read());"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=BAD + GOOD, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {
        "torch",
        "vllm",
        "sglang",
        "tensorrt_llm",
        "pydantic",
        "yaml",
        "numpy",
        "pandas",
        "scipy",
        "openai",
    }


def test_schemas_list_and_diff() -> None:
    rows = json.loads(nemolab("schemas", "list", "--json").stdout)
    have = {(row["engine"], row["version"]) for row in rows}
    assert {("vllm", "0.22.0"), ("vllm", "0.33.0"), ("sglang", "0.5.13"), ("sglang", "0.5.23")} <= have
    assert all(row["method"] and row["date"] and row["package"] for row in rows)
    diff = nemolab("schemas", "diff", "sglang", "0.5.13", "0.5.23").stdout.splitlines()
    assert "- --mamba-scheduler-strategy" in diff
    assert "+ --mamba-radix-cache-strategy" in diff
    assert nemolab("schemas", "diff", "vllm", "0.22.0", "9.9.9").returncode == 2


@pytest.mark.parametrize("requirement", ["tensorrt-llm==1.3", "vllm", "vllm>=0.22", "vllm==0.22.0; rm -rf /"])
def test_extract_refuses_what_is_no_exact_version(requirement: str) -> None:
    done = nemolab("schemas", "extract", requirement)
    assert done.returncode == 2
    assert "exact version" in done.stderr
