"""E-...: environment variables: does the engine version read them, and how does it read the value?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint import history
from nemolab.lint.case import Case, Findings
from nemolab.lint.near import nearest
from nemolab.lint.registry import rule

_PREFIXES = {"vllm": ("VLLM_",), "sglang": ("SGLANG_", "SGL_"), "trtllm": ("TLLM_", "TRTLLM_", "TRT_LLM_")}
_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}


@rule(
    "E",
    "environment variables: known to the version, meant for this engine, with a value it reads",
    "vllm",
    "sglang",
    "trtllm",
)
def variables(case: Case) -> Findings:
    for name, (value, _) in case.launch.env.items():
        yield from _variable(case, name, value)


def _variable(case: Case, name: str, value: str) -> Iterator[Finding]:
    if name in history.INERT:
        what, source = history.INERT[name]
        yield case.find("E-INERT", Severity.INFO, f"{name} has no effect: {what}", "leave it out", source, env=name)
        return
    owner = next((engine for engine, starts in _PREFIXES.items() if name.startswith(starts)), None)
    if owner is None:
        return
    if owner != case.engine:
        yield case.find(
            "E-OTHER",
            Severity.WARNING,
            f"{name} is a variable of {_NAMES[owner]}: {_NAMES[case.engine or owner]} does not read it",
            _counterpart(case, name),
            "environment tables of the engines",
            env=name,
        )
        return
    if case.schema is None or owner == "trtllm" or case.schemas is None:
        return  # TensorRT-LLM's list of variables is not complete
    known = [schema for schema in case.schemas if name in schema.env or name in schema.env_read_elsewhere]
    if not known:
        if case.schemas.exact or case.version is None:
            yield _unknown(case, name)
        else:
            yield case.find(
                "E-UNKNOWN",
                Severity.WARNING,
                f"{name} is declared neither in {' nor in '.join(case.schemas.names)}: it is ignored",
                _past_fix(case, name),
                case.schema.source,
                env=name,
            )
        return
    if case.version is None and case.schemas.first not in known:
        yield case.find(
            "E-UNKNOWN",
            Severity.UNKNOWN,
            f"{name} is not declared by {case.schema.label}, but by {known[0].version}: depends on the version",
            "say which version: --engine-version",
            case.schema.source,
            env=name,
        )
        return
    entry = known[0].env.get(name)
    if entry is not None and not value.startswith("$"):
        yield from _value(case, name, value, entry)


def _unknown(case: Case, name: str) -> Finding:
    assert case.schema is not None
    past = history.VARIABLES.get(name)
    seen = history.declared_in(case.schema.engine, name) if not past else None
    what = (
        past.what if past else f"declared from {seen[0]} to {seen[1]} only" if seen else "it declares no such variable"
    )
    return case.find(
        "E-UNKNOWN",
        Severity.WARNING,
        f"{case.schema.label} ignores {name}: {what}",
        _past_fix(case, name),
        f"{case.schema.source}" + (f"; {past.source}" if past else ""),
        env=name,
    )


def _past_fix(case: Case, name: str) -> str:
    if past := history.VARIABLES.get(name):
        return past.fix
    near = nearest(name, case.schema.env if case.schema else (), 0.8)
    return f"did you mean {near}?" if near else "leave it out"


def _counterpart(case: Case, name: str) -> str:
    if "ALLOW_LONG" in name or "LONGER_CONTEXT" in name:
        own = {
            "vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
            "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
            "trtllm": "TLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
        }
        return f"use {own[case.engine or 'vllm']}"
    return "leave it out"


def _value(case: Case, name: str, value: str, entry: dict[str, Any]) -> Iterator[Finding]:
    assert case.schema is not None
    source = case.schema.source
    kind, reads, default = entry.get("type"), entry.get("reads"), entry.get("default")
    if kind == "bool":
        if reads == "int" and not value.strip().lstrip("+-").isdigit():
            yield case.find(
                "E-VALUE",
                Severity.ERROR,
                f"{name}={value}: {case.schema.label} reads an integer here and fails on this text",
                "use 1 or 0",
                source,
                env=name,
            )
            return
        truths = reads if isinstance(reads, list) else ["1", "true"]
        state = (
            value.strip().lower() in {t.lower() for t in truths}
            if reads != "int"
            else value.strip() not in ("0", "+0", "-0")
        )
        if not state and reads != "int" and value.strip().lower() not in ("0", "false", "no", "n", "off", "f", ""):
            yield case.find(
                "E-VALUE",
                Severity.WARNING,
                f"{name}={value} is read as off by {case.schema.label}: on is {' or '.join(truths)}",
                "use 1",
                source,
                env=name,
            )
            return
        if isinstance(default, bool) and state == default:
            yield case.find(
                "E-DEFAULT",
                Severity.INFO,
                f"{name}={value} is already the default of {case.schema.label}",
                "",
                source,
                env=name,
            )
    elif kind in ("int", "float"):
        try:
            number = float(value)
        except ValueError:
            yield case.find(
                "E-VALUE",
                Severity.ERROR if kind == "int" else Severity.WARNING,
                f"{name}={value} is not a number",
                "give a number",
                source,
                env=name,
            )
            return
        if isinstance(default, int | float) and not isinstance(default, bool) and number == default:
            yield case.find(
                "E-DEFAULT",
                Severity.INFO,
                f"{name}={value} is already the default of {case.schema.label}",
                "",
                source,
                env=name,
            )
    elif (choices := entry.get("choices")) and value not in choices:
        yield case.find(
            "E-VALUE",
            Severity.ERROR,
            f"{name}={value} is not a choice of {case.schema.label}: {', '.join(choices)}",
            f"one of: {', '.join(choices)}",
            source,
            env=name,
        )
