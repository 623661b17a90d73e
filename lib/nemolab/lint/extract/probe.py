# mypy: disable-error-code="import-not-found"
"""Builds an engine's own command-line parser and describes it; with `--parse`, also feeds it command lines.

Runs on its own, beside `standins.py`, inside an environment that holds the engine's files and a few light packages:
`python probe.py ENGINE FOLDER` prints one JSON object. FOLDER is where the wheel was unpacked. With `--parse` it reads
a JSON list of argument lists from standard input and prints what the parser made of each: the oracle of the tests.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import io
import json
import sys
import types
import typing
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import standins

Parser = argparse.ArgumentParser


def vllm_parser() -> tuple[Parser, Parser]:
    """`vllm` with its `serve` sub-parser."""
    import vllm.platforms as platforms
    from vllm.platforms.interface import UnspecifiedPlatform

    # Without a GPU no platform is found; the parser only asks for its name.
    platforms._current_platform = type("Cuda", (UnspecifiedPlatform,), {"device_type": "cuda"})()
    try:
        from vllm.entrypoints.common.cli_args import make_arg_parser
    except ImportError:
        from vllm.entrypoints.openai.cli_args import make_arg_parser
    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        from vllm.utils import FlexibleArgumentParser
    whole = FlexibleArgumentParser(prog="vllm")
    serve = whole.add_subparsers(required=False, dest="subparser").add_parser("serve")
    make_arg_parser(serve)
    return whole, serve


def sglang_parser() -> tuple[Parser, Parser]:
    """`sglang.launch_server`."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    return parser, parser


PARSERS = {"vllm": vllm_parser, "sglang": sglang_parser}


def captured(function: Any, name: str) -> Any:
    """Value that a closure or a default argument holds under `name`."""
    code = getattr(function, "__code__", None)
    if code and function.__closure__ and name in code.co_freevars:
        return function.__closure__[code.co_freevars.index(name)].cell_contents
    if code and function.__defaults__:
        names = code.co_varnames[: code.co_argcount][-len(function.__defaults__) :]
        if name in names:
            return function.__defaults__[names.index(name)]
    return None


def type_name(function: Any) -> str:
    """Word for the conversion that a flag applies: `int`, `json`, `optional int`, `object CompilationConfig`, ..."""
    if function is None:
        return "str"
    name = getattr(function, "__name__", str(function))
    if name == "_optional_type":
        return f"optional {type_name(captured(function, 'return_type'))}"
    if name == "_parse_type":
        return type_name(captured(function, "return_type"))
    if name == "parse_dataclass":
        return f"object {captured(function, 'cls').__name__}"
    if name == "<lambda>":
        return "folded" if "lower" in function.__code__.co_names else "comma_list"
    return {"loads": "json", "human_readable_int": "human_int", "human_readable_int_or_auto": "human_int_auto"}.get(
        name, name
    )


def plain(value: Any) -> Any:
    """`value` as JSON, or None where it has no plain form."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, bool | int | float | str) or value is None:
        return value if value == value and value not in (float("inf"), float("-inf")) else None
    if isinstance(value, list | tuple | set | frozenset):
        return sorted((plain(v) for v in value), key=str)
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(v) for key, v in value.items()}
    return None


def describe(parser: Parser) -> dict[str, dict[str, Any]]:
    """Every option: `{flag: {...}}`, positionals under their bare name; absent keys are the usual case."""
    strings: dict[int, list[str]] = {}
    for text, action in parser._option_string_actions.items():
        strings.setdefault(id(action), []).append(text)
    flags: dict[str, dict[str, Any]] = {}
    for action in parser._actions:
        names = strings.get(id(action), [])
        negative = set(getattr(action, "negative_option_strings", ()))
        if isinstance(action, argparse.BooleanOptionalAction):
            negative |= {n for n in names if n.startswith("--no-") and f"--{n[5:]}" in names}
        positive = [n for n in names if n not in negative]
        long = [n for n in positive if n.startswith("--")]
        name = (long or positive or [action.dest])[0]
        entry: dict[str, Any] = {"dest": action.dest}
        if aliases := [n for n in positive if n != name]:
            entry["aliases"] = aliases
        if negative:
            entry["negations"] = sorted(negative)
        if not names:
            entry["positional"] = True
        takes_none = action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction)
        if takes_none:
            entry["nargs"] = 0
        else:
            entry["type"] = type_name(action.type)
            if action.nargs is not None:
                entry["nargs"] = action.nargs
        if action.choices is not None:
            entry["choices"] = sorted({str(plain(c)) for c in action.choices if c is not None})
            if None in action.choices:
                entry["none"] = True
        elif isinstance(action.metavar, list | tuple):
            entry["suggested"] = sorted(str(m) for m in action.metavar if m is not None)
        default = plain(action.default)
        if default not in (None, argparse.SUPPRESS):
            entry["default"] = default
        if getattr(action, "required", False) and names:
            entry["required"] = True
        kind = type(action).__name__
        told = (action.help or "").strip() if "eprecated" in (action.help or "")[:14] else ""
        if getattr(action, "deprecated", False) or "Deprecated" in kind or told:
            entry["deprecated"] = str(getattr(action, "new_flag", "") or told)
        if message := getattr(action, "error_message", None):
            entry["refused"] = str(message)
        if kind.startswith("LoRA"):
            entry["action"] = kind
        if action.help == argparse.SUPPRESS:
            entry["hidden"] = True
        flags[name] = entry
    return flags


def hint_words(hint: Any, classes: dict[str, type]) -> dict[str, Any]:
    """A type hint as `{"is": [words], "in": [literals], "of": class}`; `any` where no word fits."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return hint_words(args[0], classes)
    if origin in (typing.Union, types.UnionType):
        out: dict[str, Any] = {"is": []}
        for part in args:
            inner = hint_words(part, classes)
            out["is"] += inner.pop("is")
            for key, value in inner.items():
                out[key] = sorted({*out.get(key, []), *value}, key=str) if key == "in" else value
        return {**out, "is": sorted(set(out["is"]))}
    if origin is typing.Literal:
        return {"is": ["literal"], "in": [plain(a) for a in args]}
    if hint is type(None):
        return {"is": ["null"]}
    for kind, word in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str")):
        if hint is kind:
            return {"is": [word]}
    if (isinstance(origin, type) and issubclass(origin, dict)) or hint is dict:
        return {"is": ["dict"]}
    if origin in (list, tuple, set, frozenset) or hint in (list, tuple, set):
        return {"is": ["list"]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"is": ["enum"], "in": [m.name for m in hint]}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if hint.__name__ not in classes:
            classes[hint.__name__] = hint
        return {"is": ["object"], "of": hint.__name__}
    return {"is": ["any"]}


def config_classes(parser: Parser, engine: str) -> dict[str, dict[str, Any]]:
    """Fields of the classes behind JSON-valued flags, and of those nested in them."""
    classes: dict[str, type] = {}
    for action in parser._actions:
        function = action.type
        while function is not None:
            if getattr(function, "__name__", "") == "parse_dataclass":
                cls = captured(function, "cls")
                classes[cls.__name__] = cls
            function = captured(function, "return_type")
    if engine == "vllm":  # its flag takes any JSON: the class is applied later, when the engine starts
        from vllm.config import SpeculativeConfig

        classes["SpeculativeConfig"] = SpeculativeConfig
    described: dict[str, dict[str, Any]] = {}
    while missing := [name for name in classes if name not in described]:
        name = missing[0]
        described[name] = fields = {}
        try:
            hints = typing.get_type_hints(classes[name], include_extras=True)
        except Exception:  # a hint that only a type checker can resolve
            hints = {}
        for field in dataclasses.fields(classes[name]):
            hint = hints.get(field.name, field.type if not isinstance(field.type, str) else typing.Any)
            fields[field.name] = hint_words(hint, classes)
    return described


def parse(parser: Parser, before: list[str], argv: list[str]) -> dict[str, Any]:
    """What the parser makes of `argv`: `{"values": {...}}` for what differs from the defaults, or `{"error": text}`."""
    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint), redirect_stdout(io.StringIO()):
            values = vars(parser.parse_args([*before, *argv]))
    except SystemExit as stop:
        return {"error": complaint.getvalue().strip().splitlines()[-1] if stop.code else "help"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    defaults = {action.dest: action.default for action in parser._actions}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            defaults |= {a.dest: a.default for a in action.choices["serve"]._actions}
    kept = {}
    for name, value in values.items():
        if name not in ("subparser", "dispatch_function") and name in defaults and repr(value) != repr(defaults[name]):
            kept[name] = value if isinstance(value, bool | int | float | str | list | dict) else "(object)"
    return {"values": json.loads(json.dumps(kept, default=lambda _: "(object)"))}


def main() -> None:
    engine, folder = sys.argv[1:3]
    sys.path.insert(0, folder)
    finder = standins.install(engine)
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # engines greet on standard output
        whole, parser = PARSERS[engine]()
        if "--parse" in sys.argv:
            before = ["serve"] if engine == "vllm" else []
            answer: Any = [parse(whole, before, argv) for argv in json.load(sys.stdin)]
        else:
            answer = {
                "flags": describe(parser),
                "configs": config_classes(parser, engine),
                "standins": sorted(finder.used),
                "python": sys.version.split()[0],
            }
    json.dump(answer, out, allow_nan=False)


if __name__ == "__main__":
    main()
