"""How an engine reads the text of a value: integers with suffixes, JSON, choices."""

from __future__ import annotations

import json
import re
from typing import Any

from nemolab.lint.schema import Flag, Schema

_VLLM_SUFFIX = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SGLANG_SUFFIX = {
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip


class Unreadable(ValueError):
    """The engine refuses the text; the message says why."""


class BadKey(ValueError):
    """A part of a JSON value that its class refuses: where, what is wrong, and the allowed values."""

    def __init__(self, path: str, what: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(f"{path}: {what}")
        self.path, self.what, self.allowed = path, what, allowed


def vllm_int(text: str) -> int:
    """`1k` = 1,000, `1K` = 1,024, `1M` = 1,048,576 (vLLM `human_readable_int`)."""
    text = text.strip()
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text):
        number, suffix = match.groups()
        if suffix.islower():
            return int(float(number) * _VLLM_SUFFIX[suffix])
        if "." in number:
            raise Unreadable(f"no decimals before a binary suffix: {number}{suffix.lower()} is decimal")
        return int(number) * _VLLM_SUFFIX[suffix]
    return plain_int(text)


def sglang_int(text: str) -> int:
    """`1k` = 1,000, `1M` = 1,000,000, `1Mi` = 1,048,576 (SGLang `human_readable_int`)."""
    text = text.strip()
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)", text):
        number, suffix = match.groups()
        if suffix.endswith("i") and "." in number:
            raise Unreadable(f"no decimals before {suffix}")
        from decimal import Decimal

        return int(Decimal(number) * _SGLANG_SUFFIX[suffix])
    return plain_int(text)


def plain_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Unreadable(f"{text!r} is not a whole number") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Unreadable(f"{text!r} is not a number") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
        raise Unreadable(f"not JSON: {reason}") from None


def expand_numbers(text: str) -> str:
    """vLLM reads `{"cpu_bytes_to_use": 80m}`: bare numbers with a suffix become integers."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b", lambda m: str(vllm_int(m.group())), parts[index])
    return "".join(parts)


def convert(schema: Schema, flag: Flag, text: str) -> Any:
    """The value that the engine makes of `text`.

    Raises:
        Unreadable: the engine refuses it while reading the command line.
        BadKey: a JSON value holds something its class refuses.
    """
    kind = flag.type or "str"
    if kind.startswith("optional "):
        if text in ("", "None"):
            return None
        kind = kind.removeprefix("optional ")
    if flag.action == "LoRAParserAction" and text and not ("=" in text and "," not in text):
        _json(text)  # name=path, or a JSON object
    if kind.startswith("object "):
        value = _json(expand_numbers(text))
        check_object(schema, kind.removeprefix("object "), value)
        return value
    match kind:
        case "int":
            return plain_int(text)
        case "float":
            return _float(text)
        case "bool":
            return text.lower() in ("true", "1", "yes", "on")
        case "human_int" | "human_int_auto":
            if kind == "human_int_auto" and (text.strip() == "-1" or text.strip().lower() == "auto"):
                return -1
            return (vllm_int if schema.engine == "vllm" else sglang_int)(text)
        case "json" | "json_list_type" | "parse_cuda_graph_config_arg":
            return _json(text)
        case "union_dict_and_str":
            return _json(text) if re.match(r"(?s)^\s*{.*}\s*$", text) else text
        case "folded":
            return text.lower().replace("-", "_")
        case "comma_list":
            return [part.strip() for part in text.split(",")]
        case "nullable_str":
            return None if text in ("", "None") else text
        case "parse_reasoning_parser":
            return "" if text.lower() == "none" else text
    return text


def in_choices(flag: Flag, value: Any) -> bool:
    """Whether a converted value is among the flag's choices."""
    if flag.choices is None:
        return True
    return flag.none if value is None else str(value) in flag.choices


def check_object(schema: Schema, name: str, value: Any, path: str = "") -> None:
    """Hold a JSON object against the fields of the engine's class `name`; unknown classes accept anything.

    Raises:
        BadKey: an unknown key, or a value of another type or outside the allowed ones.
    """
    fields = schema.configs.get(name)
    if not fields:
        return
    if not isinstance(value, dict):
        raise BadKey(path or name, f"must be a JSON object, not {_word(value)}")
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        if key not in fields:
            raise BadKey(here, "unknown key", tuple(sorted(fields)))
        _check_field(schema, fields[key], inner, here)


def _word(value: Any) -> str:
    return {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }.get(type(value), "null")


def _check_field(schema: Schema, hint: dict[str, Any], value: Any, path: str) -> None:
    """pydantic's lax reading: numbers may come as text and the other way round only where it allows it."""
    kinds = set(hint["is"])
    if "any" in kinds or (value is None and "null" in kinds):
        return
    if "object" in kinds and isinstance(value, dict):
        check_object(schema, hint["of"], value, path)
        return
    if kinds & {"literal"} and "str" not in kinds:
        allowed = hint["in"]
        if value in allowed or (isinstance(value, bool) and "bool" in kinds):
            return
        if kinds == {"literal"} or kinds == {"literal", "null"}:
            raise BadKey(path, f"{value!r} is not accepted", tuple(str(v) for v in allowed))
    if kinds <= {"bool", "null"} and not isinstance(value, bool) and str(value).lower() not in _BOOLEANS:
        raise BadKey(path, f"must be true or false, not {value!r}")
    if kinds <= {"int", "null"} and not _integral(value):
        raise BadKey(path, f"must be a whole number, not {value!r}")
    if kinds <= {"float", "null"} and not _numeric(value):
        raise BadKey(path, f"must be a number, not {value!r}")
    if kinds <= {"dict", "null"} and not isinstance(value, dict):
        raise BadKey(path, f"must be an object, not {_word(value)}")
    if kinds <= {"list", "null"} and not isinstance(value, list):
        raise BadKey(path, f"must be a list, not {_word(value)}")


_BOOLEANS = {"true", "false", "0", "1", "yes", "no", "on", "off", "t", "f", "y", "n", "0.0", "1.0"}


def _integral(value: Any) -> bool:
    if isinstance(value, bool | int):
        return True
    return (isinstance(value, float) and value.is_integer()) or (
        isinstance(value, str) and bool(re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0+)?\s*", value))
    )


def _numeric(value: Any) -> bool:
    if isinstance(value, bool | int | float):
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)
