"""What a schema takes from an engine's files by reading them: environment variables, registries, deprecations.

Nothing is imported or run here. `flags` is the fallback for a parser that could not be built: it sees the
`add_argument` calls that are written out, so its result is marked incomplete.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Variable = dict[str, Any]


def _tree(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def _literal(node: ast.expr | None) -> Any:
    """Value of a literal expression with sets as sorted lists; None for anything else."""
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None
    return sorted(value, key=str) if isinstance(value, set | frozenset) else value


def _first(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _truths(node: ast.expr) -> list[str] | None:
    """Texts that an expression such as `value.lower() in ("1", "true")` or `value == "1"` reads as true."""
    for part in ast.walk(node):
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and re.search(r"getenv|environ", ast.unparse(part)):
            if isinstance(part.ops[0], ast.In) and isinstance(values := _literal(part.comparators[0]), tuple | list):
                return [str(v) for v in values]
            if isinstance(part.ops[0], ast.Eq) and isinstance(value := _literal(part.comparators[0]), str):
                return [value]
    return None


def vllm_environment(package: Path) -> dict[str, Variable]:
    """`vllm/envs.py`: each declared name with its type, default and, where the code tells, accepted values."""
    tree = _tree(package / "envs.py")
    if tree is None:
        return {}
    typed: dict[str, Variable] = {}
    read: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    kind = ast.unparse(line.annotation).split("|")[0].strip()
                    typed[line.target.id] = {"type": kind, "default": _literal(line.value)}
        if (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and "environment_variables" in ast.unparse(node).split("=")[0]
            and isinstance(node.value, ast.Dict)
        ):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(name := _literal(key), str):
                    read[name] = value
    table: dict[str, Variable] = {}
    for name, value in read.items():
        entry = {k: v for k, v in typed.get(name, {}).items() if v is not None}
        kind = str(entry.get("type", ""))
        entry["type"] = kind if kind in {"bool", "int", "float", "str"} else "str" if kind else "any"
        code = ast.unparse(value)
        if entry["type"] == "bool":
            if re.search(r"bool\(\s*int\(", code):
                entry["reads"] = "int"
            elif (true := _truths(value)) is not None:
                entry["reads"] = true
        if isinstance(value, ast.Call) and "env_with_choices" in ast.unparse(value.func) and len(value.args) > 2:
            if isinstance(choices := _literal(value.args[2]), list):
                entry["choices"] = choices
        elif isinstance(kind, str) and kind.startswith("Literal["):
            entry["choices"] = [str(v) for v in (_literal(ast.parse(f"[{kind[8:-1]}]", mode="eval").body) or [])]
        table[name] = entry
    return table


_SGLANG_KINDS = {"EnvBool": "bool", "EnvInt": "int", "EnvFloat": "float"}


def sglang_environment(package: Path) -> dict[str, Variable]:
    """`sglang/srt/environ.py`: `NAME = EnvBool(default)` and its siblings."""
    tree = _tree(package / "srt" / "environ.py")
    table: dict[str, Variable] = {}
    for node in ast.walk(tree) if tree else ():
        if not (isinstance(node, ast.ClassDef) and node.name == "Envs"):
            continue
        for line in node.body:
            if not (isinstance(line, ast.Assign) and isinstance(line.value, ast.Call)):
                continue
            kind = ast.unparse(line.value.func)
            if not kind.startswith("Env"):
                continue
            word = next((w for start, w in _SGLANG_KINDS.items() if kind.startswith(start)), "str")
            entry: Variable = {"type": word}
            if word == "bool":
                entry["reads"] = ["true", "1", "yes", "y"]
            default = _literal(line.value.args[0]) if line.value.args else None
            if default is not None and isinstance(default, bool | int | float | str):
                entry["default"] = default
            for keyword in line.value.keywords:
                if keyword.arg == "deprecated_name" and isinstance(old := _literal(keyword.value), str):
                    table[old] = {"type": word, "deprecated": ast.unparse(line.targets[0])}
            table[ast.unparse(line.targets[0])] = entry
    return table


def sglang_other_environment(package: Path, known: set[str]) -> list[str]:
    """`SGLANG_...` names that other files read straight from the environment."""
    found: set[str] = set()
    for path in (package / "srt").rglob("*.py"):
        text = path.read_text(encoding="utf-8", errors="ignore")
        if "SGL" in text:
            found.update(re.findall(r"""["'](SGL(?:ANG)?_[A-Z0-9_]+)["']""", text))
    return sorted(found - known)


def _dict_keys(path: Path | None, name: str) -> list[str]:
    tree = _tree(path) if path else None
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == name:
                return sorted(k for k in map(_literal, node.value.keys) if isinstance(k, str))
    return []


def _literals(path: Path | None, name: str) -> list[str]:
    """Members of `name = Literal[...]` or of a list of texts, names of other such lists resolved."""
    tree = _tree(path) if path else None
    values: dict[str, list[str]] = {}
    for node in tree.body if tree else ():
        target = (
            node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else 0
        )
        if not isinstance(target, ast.Name) or not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        values[target.id] = list(_members(node.value, values))
    return sorted(set(values.get(name, [])))


def _members(node: ast.expr, known: dict[str, list[str]]) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.Name):
            yield from known.get(part.id, [])


def _enum_members(path: Path | None, name: str) -> list[str]:
    tree = _tree(path) if path else None
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return sorted(
                line.targets[0].id
                for line in node.body
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
            )
    return []


def vllm_registries(package: Path) -> dict[str, list[str]]:
    """Names that vLLM's parser takes as free text and looks up later: `{dest of the flag: names}`."""
    factory = _tree(package / "distributed/kv_transfer/kv_connector/factory.py")
    connectors = {
        name
        for node in (ast.walk(factory) if factory else ())
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("register_connector") and node.args
        if isinstance(name := _literal(node.args[0]), str)
    }
    attention = _first(package, "v1/attention/backends/registry.py", "attention/backends/registry.py")
    tables = {
        "tool_call_parser": _dict_keys(
            _first(package, "tool_parsers/__init__.py", "entrypoints/openai/tool_parsers/__init__.py"),
            "_TOOL_PARSERS_TO_REGISTER",
        ),
        "reasoning_parser": _dict_keys(package / "reasoning/__init__.py", "_REASONING_PARSERS_TO_REGISTER"),
        "quantization": _literals(package / "model_executor/layers/quantization/__init__.py", "QuantizationMethods"),
        "load_format": _literals(package / "model_executor/model_loader/__init__.py", "LoadFormats"),
        "attention_backend": _enum_members(attention, "AttentionBackendEnum"),
        "mamba_backend": _enum_members(package / "config/mamba.py", "MambaBackendEnum"),
        "speculative_method": _literals(package / "config/speculative.py", "SpeculativeMethod"),
        "kv_connector": sorted(connectors),
    }
    return {name: values for name, values in tables.items() if values}


def sglang_registries(package: Path) -> dict[str, list[str]]:
    """SGLang's parser has choices for most names; the speculative algorithm is looked up later."""
    names: set[str] = set()
    path = package / "srt/speculative/spec_info.py"
    tree = _tree(path)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == "SpeculativeAlgorithm":
            names.update(
                line.targets[0].id
                for line in node.body
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
            )
    names = {n for n in names if n.isupper()} - {"NONE"}
    return {"speculative_algorithm": sorted(names | {"NEXTN"})} if names else {}


_DEPRECATED = re.compile(r"`?(--[a-z][a-z0-9-]+)`?\)?(?: option| flag)? (?:is|has been) deprecated\b[^\"]*")


def deprecations(package: Path, *files: str) -> dict[str, str]:
    """Flags that the engine's own messages call deprecated, with that message."""
    found: dict[str, str] = {}
    for pattern in files:
        for path in sorted(package.glob(pattern)):
            tree = _tree(path)
            for node in ast.walk(tree) if tree else ():
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and (hit := _DEPRECATED.search(node.value))
                ):
                    found.setdefault(hit[1], " ".join(node.value.split())[:300])
    return found


def flags(package: Path, *files: str) -> dict[str, dict[str, Any]]:
    """Options of every `add_argument("--name", ...)` that is written out in `files`: the fallback."""
    table: dict[str, dict[str, Any]] = {}
    for pattern in files:
        for path in sorted(package.glob(pattern)):
            tree = _tree(path)
            for node in ast.walk(tree) if tree else ():
                if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument")):
                    continue
                names = [n for n in map(_literal, node.args) if isinstance(n, str)]
                if long := [n for n in names if n.startswith("--")]:
                    table.setdefault(long[0], _described(node, names, long[0]))
    return table


def _described(node: ast.Call, names: list[str], name: str) -> dict[str, Any]:
    given = {k.arg: k.value for k in node.keywords if k.arg}
    entry: dict[str, Any] = {"dest": str(_literal(given.get("dest")) or name[2:].replace("-", "_"))}
    if len(names) > 1:
        entry["aliases"] = [n for n in names if n != name]
    if str(_literal(given.get("action")) or "").startswith("store_"):
        entry["nargs"] = 0
    else:
        entry["type"] = ast.unparse(given["type"]) if "type" in given else "str"
        if (nargs := _literal(given.get("nargs"))) is not None:
            entry["nargs"] = nargs
    if isinstance(choices := _literal(given.get("choices")), list | tuple):
        entry["choices"] = sorted(map(str, choices))
    if isinstance(default := _literal(given.get("default")), bool | int | float | str):
        entry["default"] = default
    return entry
