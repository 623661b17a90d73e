"""Rules on what a text installs or edits: drifting dependencies, patched engine files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Script
from nemolab.lint.registry import text_rule
from nemolab.lint.rules.textual import at, commands_of, name_of


@text_rule("install", "sed", "patch", "perl")
def installs(script: Script) -> Iterator[Finding]:
    for words in script.commands:
        texts = [w.text for w in words]
        if "install" not in texts or not re.search(r"\b(pip3?|uv|python3?)$", name_of(words)):
            continue
        pins = {
            m[1].lower().replace("_", "-"): m[2]
            for t in texts
            if (m := re.match(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([\w.]+)$", t))
        }
        line = words[0].line
        fastapi, instrument = pins.get("fastapi"), pins.get("prometheus-fastapi-instrumentator")
        if fastapi and instrument and fastapi.split(".")[:2] >= ["0", "138"] and instrument.startswith("8.0.0"):
            yield at(
                "M-DRIFT",
                Severity.ERROR,
                line,
                f"fastapi {fastapi} with prometheus-fastapi-instrumentator {instrument}: every API route answers 500",
                "pin fastapi==0.136.3",
                "measured on vLLM 0.22.0",
                "fastapi",
            )
        elif (
            pins.get("vllm") == "0.22.0"
            and not fastapi
            and not any("exclude-newer" in t or t in ("-r", "-c", "--constraint", "--requirement") for t in texts)
        ):
            yield at(
                "M-DRIFT",
                Severity.WARNING,
                line,
                "vllm 0.22.0 with undated dependencies takes a newer FastAPI: the server starts and answers 500",
                "pin fastapi==0.136.3, or resolve to the release's date",
                "measured on vLLM 0.22.0, H200",
                "fastapi",
            )
        if "--no-deps" in texts and any(t.startswith(("vllm", "sglang")) for t in texts):
            yield at(
                "M-DRIFT",
                Severity.WARNING,
                line,
                "--no-deps leaves the engine's own dependencies unresolved",
                "resolve the release's own dependencies, dated",
                "packaging metadata of the engine",
                "--no-deps",
            )
        if (version := pins.get("vllm")) and _older_than(version, (0, 11, 2)):
            yield at(
                "R-MINVER",
                Severity.ERROR,
                line,
                f"vllm {version} is too old for Nemotron 3: Nano needs 0.11.2, "
                "Super 0.17.1, Ultra 0.22.0, Lightning 0.27.1",
                "use the version of the model",
                "catalogue: minimum versions",
                f"vllm=={version}",
            )
        if any(re.match(r"pydantic<\s*2", t) for t in texts):
            yield at(
                "M-DRIFT",
                Severity.ERROR,
                line,
                "pydantic below 2 cannot run any engine version of this family",
                "leave pydantic to the engine's own requirements",
                "vLLM metadata",
                "pydantic",
            )
    for words in commands_of(script, "sed", "patch", "perl"):
        for word in words[1:]:
            if re.search(r"(vllm|sglang|tensorrt_llm).*\.py$|(^|/)api_server\.py$", word.text):
                yield at(
                    "R-PATCHED",
                    Severity.WARNING,
                    word.line,
                    f"{word.text} is edited in place: the next image or upgrade loses it, and batch limits are flags",
                    "use the flags (--max-num-seqs, --max-num-batched-tokens; "
                    "queue limits in the gateway or vLLM 0.29)",
                    "vLLM 0.33.0 command line",
                    word.text,
                )


def _older_than(version: str, low: tuple[int, ...]) -> bool:
    from nemolab.lint.schema import version_key

    return version_key(version)[:3] < low
