"""F-...: values: types, choices, names that the engine looks up later, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint import argv
from nemolab.lint.case import Case
from nemolab.lint.near import nearest
from nemolab.lint.schema import LABELS, Flag, Schema
from nemolab.lint.values import BadKey, Unreadable, check_object, convert, in_choices

# Values that people carry over from other tools, with what this engine calls them.
_MEANT = {
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp4": "modelopt_fp4",
    "nvfp4": "modelopt_fp4",
}
# Keys that a loader accepts in --model-loader-extra-config (vLLM 0.22.0 and 0.33.0, model_loader/).
_LOADER_KEYS = {
    "auto": ("enable_multithread_load", "num_threads", "enable_weights_track"),
    "runai_streamer": ("distributed", "concurrency", "memory_limit"),
    "sharded_state": ("pattern",),
    "dummy": (),
}
_PARSERS = ("reasoning_parser", "tool_call_parser", "tool_parser")
_LATE = "the parser accepts it and the engine fails when it starts"


def value_findings(schema: Schema, case: Case, reading: argv.Reading, option: argv.Option) -> Iterator[Finding]:
    """Findings on the values of one option."""
    line = case.launch.words[option.at].line if 0 <= option.at < len(case.launch.words) else case.launch.line
    where = f"line {line}" if line else None

    def finding(code: str, severity: Severity, message: str, fix: str, source: str = schema.source) -> Finding:
        return Finding(code, severity, message, fix, source, option.spelled, where)

    flag = option.flag
    for text in option.values:
        if _placeholder(text):
            continue
        try:
            value = convert(schema, flag, text)
        except Unreadable as error:
            yield finding(
                _code(flag),
                Severity.ERROR,
                f"{flag.name} {_short(text)}: {error} ({schema.label})",
                _type_fix(schema, flag, text),
            )
            continue
        except BadKey as bad:
            yield finding("F-JSON", Severity.ERROR, _bad_key(flag, bad, schema), _near(bad))
            continue
        yield from _integer(schema, flag, text, value, finding)
        if not in_choices(flag, value):
            parser = flag.dest in _PARSERS
            yield finding(
                "R-PARSER" if parser else "F-CHOICE",
                Severity.ERROR,
                f"{flag.name} {_short(text)} is not a choice of {schema.label}: {_list(flag.choices)}",
                parser_fix(schema, flag.dest, text) if parser else _closest(text, flag.choices or ()),
            )
        elif flag.suggested and isinstance(value, str) and value not in flag.suggested:
            yield finding(
                "F-CHOICE",
                Severity.WARNING,
                f"{flag.name} {_short(text)} is not among the values of {schema.label}: {_LATE}",
                _closest(text, flag.suggested),
            )
        yield from _registry(schema, case, reading, flag, value, finding)
    yield from _late_json(schema, case, option, finding)


def _placeholder(text: str) -> bool:
    return text.startswith(("$", "<", "{{")) or (
        bool(re.fullmatch(r"[A-Z][A-Z0-9_]{2,}", text)) and text not in ("NONE", "EAGLE", "NEXTN")
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _list(values: Iterable[str] | None, limit: int = 8) -> str:
    items = list(values or ())
    return ", ".join(items[:limit]) + (f", ... ({len(items)} in all)" if len(items) > limit else "")


def _code(flag: Flag) -> str:
    kind = flag.type or ""
    return "F-JSON" if "json" in kind or "object" in kind or "dict" in kind else "F-INT" if "int" in kind else "F-TYPE"


def _type_fix(schema: Schema, flag: Flag, text: str) -> str:
    kind = (flag.type or "").removeprefix("optional ")
    if kind == "int" and re.fullmatch(r"\d+(\.\d+)?[kKmM]i?", text):
        return "write the number out: this option takes no suffix"
    if kind == "float" and re.fullmatch(r"\d+,\d+", text):
        return f"write {text.replace(',', '.')}"
    if "human_int" in kind:
        return (
            "32k is 32,000; 32K is 32,768 and 1M is 1,048,576 on vLLM; 1M is 1,000,000 and 1Mi is 1,048,576 on SGLang"
            if schema.engine == "vllm"
            else "32k is 32,000, 1M is 1,000,000, 1Mi is 1,048,576; capitals matter"
        )
    if _code(flag) == "F-JSON":
        return """one JSON object in single quotes: '{"key": "value"}'"""
    return f"give a value of type {kind}"


def _integer(schema: Schema, flag: Flag, text: str, value: Any, finding: Any) -> Iterator[Finding]:
    """`1M` is read differently by the engines: say what it means where it may not be what is meant."""
    if "human_int" not in (flag.type or "") or not re.fullmatch(r"\d+(?:\.\d+)?[kKmMgG]i?", text):
        return
    other = "1,048,576 on vLLM" if schema.engine == "sglang" else "1,000,000 on SGLang"
    tokens = flag.dest in ("max_model_len", "context_length")
    binary = value % 1024 == 0 and value % 1000 != 0
    if tokens and not binary and value >= 100_000:
        yield finding("F-INT", Severity.WARNING, f"{flag.name} {text} is {value:,} here, not a power of two",
                      f"write {1048576 if value >= 10**6 else 262144 if value in (262_000, 256_000) else value} "
                      "if that is what you mean",
                      f"{schema.source}; the same text can mean {other}")  # fmt: skip
    elif tokens:
        yield finding(
            "F-INT", Severity.INFO, f"{flag.name} {text} is {value:,} on {LABELS[schema.engine]}", "", schema.source
        )


def _registry(
    schema: Schema, case: Case, reading: argv.Reading, flag: Flag, value: Any, finding: Any
) -> Iterator[Finding]:
    names = schema.registries.get(flag.dest)
    if not names or not isinstance(value, str) or not value:
        return
    if flag.dest in _PARSERS:
        plugin = "tool_parser_plugin" if flag.dest == "tool_call_parser" else "reasoning_parser_plugin"
        if reading.last(plugin):
            return  # the plugin may register any name
        code = "R-PARSER"
    else:
        code = "F-REGISTRY"
    folded = {n.lower().replace("-", "_") if flag.dest not in _PARSERS else n for n in names}
    wanted = value.lower().replace("-", "_") if code == "F-REGISTRY" else value
    if wanted in folded or "." in value or (flag.dest == "attention_backend" and value == "CUSTOM"):
        return
    fix = parser_fix(schema, flag.dest, value) if code == "R-PARSER" else _closest(value, names)
    yield finding(code, Severity.ERROR, f"{flag.name} {value} is not a name that {schema.label} knows: {_LATE}", fix)


_PLUGINS = {"nano_v3", "super_v3", "ultra_v3"}


def parser_fix(schema: Schema, dest: str, value: str) -> str:
    """What to write for a parser name of another engine or of a plugin."""
    own = {
        ("vllm", "reasoning_parser"): "nemotron_v3", ("sglang", "reasoning_parser"): "nemotron_3",
        ("trtllm", "reasoning_parser"): "nemotron-v3", ("vllm", "tool_call_parser"): "qwen3_coder",
        ("sglang", "tool_call_parser"): "qwen3_coder", ("trtllm", "tool_parser"): "qwen3_coder",
    }.get((schema.engine, dest), "")  # fmt: skip
    if schema.engine == "vllm" and value in _PLUGINS:
        return f"add --reasoning-parser-plugin {value}_reasoning_parser.py from the checkpoint, or use nemotron_v3"
    if "nemotron" in value or value in _PLUGINS or "nano" in value:
        return f"{LABELS[schema.engine]}'s name is {own}"
    flag = schema.by_dest.get(dest)
    return _closest(value, schema.registries.get(dest) or (flag.choices if flag else None) or ())


def _closest(text: str, values: Iterable[str]) -> str:
    values = list(values)
    lowered = text.lower().replace("-", "_")
    if (meant := _MEANT.get(lowered)) and meant in values:
        return f"{meant} is" if meant != text else ""
    if lowered == "fp8" and "fp8_e4m3" in values:
        return "use fp8_e4m3"
    for value in values:
        if value.lower().replace("-", "_") == lowered:
            return f"write {value}"
    near = nearest(text, values)
    return f"did you mean {near}?" if near else f"one of: {_list(values)}"


def _bad_key(flag: Flag, bad: BadKey, schema: Schema) -> str:
    if bad.what == "unknown key":
        return f"unknown key {bad.path} in {flag.name}: refused by {schema.label}"
    return f"{flag.name}: {bad.path} {bad.what} ({schema.label})"


def _near(bad: BadKey) -> str:
    near = nearest(bad.path.rsplit(".", 1)[-1], bad.allowed, 0.5)
    return f"did you mean {near}?" if near else f"one of: {_list(bad.allowed)}" if bad.allowed else "correct the value"


def _late_json(schema: Schema, case: Case, option: argv.Option, finding: Any) -> Iterator[Finding]:
    """JSON that the parser lets through and the engine checks later."""
    dest = option.flag.dest
    if (
        dest
        not in ("speculative_config", "model_loader_extra_config", "json_model_override_args", "kv_transfer_config")
        or not option.values
    ):
        return
    text = option.values[0]
    if _placeholder(text):
        return
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        if dest in ("model_loader_extra_config", "json_model_override_args"):
            yield finding(
                "F-JSON",
                Severity.ERROR,
                f"{option.flag.name} is not JSON ({str(error)[:60]}): {_LATE}",
                """one JSON object in single quotes: '{"key": "value"}'""",
            )
        return
    if not isinstance(document, dict):
        if dest != "kv_transfer_config":
            yield finding(
                "F-JSON", Severity.ERROR, f"{option.flag.name} must be a JSON object: {_LATE}", """'{"key": "value"}'"""
            )
        return
    if dest == "speculative_config":
        yield from _speculative(schema, option, document, finding)
    elif dest == "model_loader_extra_config" and schema.engine == "vllm":
        loader = case.text("load_format") or "auto"
        keys = _LOADER_KEYS.get("auto" if loader in ("auto", "safetensors", "hf") else loader)
        for key in document if keys is not None else ():
            if key not in (keys or ()):
                yield finding(
                    "F-JSON",
                    Severity.ERROR,
                    f"unknown key {key} in {option.flag.name} for load format "
                    f"{loader}: fails when the weights are loaded",
                    f"one of: {_list(keys)}" if keys else "this loader takes no keys",
                )
    elif dest == "kv_transfer_config":
        name = document.get("kv_connector")
        known = schema.registries.get("kv_connector")
        if known and isinstance(name, str) and name not in known and "kv_connector_module_path" not in document:
            yield finding(
                "F-REGISTRY",
                Severity.ERROR,
                f"kv_connector {name} is not a connector of {schema.label}",
                _closest(name, known),
            )


def _speculative(schema: Schema, option: argv.Option, document: dict[str, Any], finding: Any) -> Iterator[Finding]:
    try:
        check_object(schema, "SpeculativeConfig", document)
    except BadKey as bad:
        yield finding(
            "F-JSON",
            Severity.ERROR,
            f"{_bad_key(option.flag, bad, schema)}: fails when the engine starts, not while parsing",
            _near(bad),
        )
        return
    tokens = document.get("num_speculative_tokens")
    if isinstance(tokens, int) and tokens < 1:
        yield finding(
            "F-JSON",
            Severity.ERROR,
            f"num_speculative_tokens is {tokens}: it must be at least 1",
            "published depths are 1 to 5",
        )
    method = document.get("method")
    if isinstance(method, str) and method.endswith("_mtp") and method != "mtp":
        yield finding(
            "R-DEPRECATED",
            Severity.WARNING,
            f"speculative method {method} is deprecated: it is read as mtp",
            'write "method": "mtp"',
            "vLLM 0.22.0 config/speculative.py",
        )
