"""Reads launches from documents: compose files, Kubernetes manifests, profiles, TensorRT-LLM options files.

PyYAML is imported only here, so that a plain command does not pay for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint.commands import launch_from_words, read_shell
from nemolab.lint.launch import Container, Launch, Script, Word, image_engine

_PROFILE_KEYS = {
    "profile",
    "title",
    "model",
    "engine",
    "engine_version",
    "gpu",
    "gpus",
    "nodes",
    "goal",
    "args",
    "env",
    "yaml",
    "image",
    "target",
    "notes",
    "source",
    "purpose",
    "options",
    "help",
    "requires",
}


def looks_like_document(text: str) -> str | None:
    """`kubernetes`, `compose`, `profile` or `options` when the text is YAML of that kind."""
    if re.search(r"(?m)^apiVersion:\s*\S", text) and re.search(r"(?m)^kind:\s*\S", text):
        return "kubernetes"
    if re.search(r"(?m)^services:\s*(#.*)?$", text):
        return "compose"
    keys = re.findall(r"(?m)^([A-Za-z_][\w-]*):(?:\s|$)", text)
    commands = re.search(
        r"(?m)^\s*(?:\$ )?(?:docker|podman|vllm|python3?|sglang|trtllm-serve|export|sudo|pip|uv|cat|ray)\s", text
    )
    if commands or not keys:
        return None
    if {"model", "engine"} <= set(keys):
        return "profile"
    if re.match(r"\s*(?:#.*\n|---\s*\n|\s*\n)*[A-Za-z_][\w-]*:(\s|$)", text):
        return "options"
    return None


def read_document(text: str, kind: str) -> Script:
    """Launches of a YAML text of that kind."""
    script = Script(text, kind)
    document, _, problem = mapping_lines(text, 1)
    if problem:
        script.findings.append(problem)
        if not isinstance(document, dict):
            return script
    documents = _all(text)
    if kind == "kubernetes":
        for document in documents:
            _kubernetes(document, script, text)
    elif kind == "compose":
        for document in documents:
            _compose(document, script, text)
    elif kind == "profile":
        _profile(documents[0] if documents else {}, script, text)
    else:
        _, lines, _ = mapping_lines(text, 1)
        body = documents[0] if documents and isinstance(documents[0], dict) else {}
        script.launches.append(Launch("trtllm", "options file", yaml=body, yaml_lines=lines, line=1))
    return script


def _all(text: str) -> list[Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [d for d in yaml.load_all(text, Loader=loader) if d is not None]
    except (yaml.YAMLError, ValueError, RecursionError):
        return []


def mapping_lines(text: str, first_line: int) -> tuple[dict[str, Any] | None, dict[str, int], Finding | None]:
    """A YAML mapping, the line of each dotted key, and a finding when it is not YAML."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    lines: dict[str, int] = {}
    try:
        node = next(iter(yaml.compose_all(text, Loader=loader)), None)
        document = next(iter(yaml.load_all(text, Loader=loader)), None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if re.search(r"\{\{|\$\{\{", text):
            return (
                None,
                {},
                Finding(
                    "R-YAML",
                    Severity.UNKNOWN,
                    "a template, not YAML yet: not checked",
                    "render it first",
                    "",
                    where=f"line {first_line}",
                ),
            )
        mark = getattr(error, "problem_mark", None)
        where = first_line + mark.line if mark else first_line
        problem = getattr(error, "problem", None) or str(error)
        return (
            None,
            {},
            Finding(
                "R-YAML",
                Severity.ERROR,
                f"not valid YAML: {problem}",
                "mend the indentation or quoting on this line",
                "YAML 1.1",
                where=f"line {where}",
            ),
        )

    def walk(node: Any, path: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = f"{path}.{key.value}" if path else str(key.value)
                lines[name] = first_line + key.start_mark.line
                walk(value, name)

    walk(node, "")
    return (document if isinstance(document, dict) else None), lines, None


def _line_of(text: str, needle: str) -> int:
    """Line on which a value stands; 1 when it cannot be found."""
    at = text.find(needle) if needle else -1
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def _words(value: Any, text: str) -> list[Word]:
    """A command or argument list of a container; a text is read as shell words."""
    if isinstance(value, str):
        from nemolab.lint import shell

        commands = shell.split(value, _line_of(text, value.split("\n")[0].strip()[:60])).commands
        return [word for command in commands[:1] for word in command]
    if isinstance(value, list):
        return [Word(_text(item), _line_of(text, _text(item).split("\n")[0])) for item in value]
    return []


def _text(value: Any) -> str:
    if value is True or value is False:
        return str(value).lower()
    return "" if value is None else str(value)


def _container_launch(
    command: list[Word],
    args: list[Word],
    image: str,
    env: dict[str, tuple[str, int]],
    container: Container,
    script: Script,
    line: int,
) -> None:
    """What a container's `command` (its entry point) and `args` start."""
    own = image_engine(image)
    words = [*command, *args]
    name = command[0].text.rsplit("/", 1)[-1] if command else ""
    if name in ("bash", "sh") and len(words) > 1:
        at = next((i for i, w in enumerate(words) if re.fullmatch(r"-[a-z]*c[a-z]*", w.text)), None)
        if at is not None and at + 1 < len(words):
            inner = read_shell(words[at + 1].text, words[at + 1].line)
            script.findings += inner.findings
            script.commands += inner.commands
            script.launches += [
                replace(
                    launch,
                    env={**env, **launch.env},
                    image=image,
                    container=container,
                    version=launch.version or own[1],
                    line=launch.line,
                )
                for launch in inner.launches
            ]
            return
    if not command and not words and own[0] == "nim":
        script.launches.append(Launch("nim", "nim", (), env, None, image, line, container, line=line))
        return
    launch = launch_from_words(words, image) if words else None
    if launch is None and command and own[0]:
        return
    if launch is not None:
        script.launches.append(
            replace(
                launch,
                env={**env, **launch.env},
                image=image,
                image_line=line,
                container=container,
                version=own[1] or launch.version,
                line=line,
            )
        )


def _compose(document: Any, script: Script, text: str) -> None:
    services = document.get("services") if isinstance(document, dict) else None
    for service in services.values() if isinstance(services, dict) else ():
        if not isinstance(service, dict):
            continue
        image = _text(service.get("image"))
        env: dict[str, tuple[str, int]] = {}
        given = service.get("environment") or {}
        pairs = (
            given.items()
            if isinstance(given, dict)
            else (_text(e).partition("=")[::2] for e in given)
            if isinstance(given, list)
            else ()
        )
        for key, value in pairs:
            env[str(key)] = (_text(value), _line_of(text, str(key)))
        options = {
            flag: tuple(_text(v) for v in (value if isinstance(value, list) else [value]))
            for key, flag in (
                ("ports", "--publish"),
                ("network_mode", "--network"),
                ("ipc", "--ipc"),
                ("shm_size", "--shm-size"),
                ("volumes", "--volume"),
                ("runtime", "--runtime"),
                ("user", "--user"),
            )
            if (value := service.get(key)) is not None
        }
        container = Container(
            "compose",
            options,
            memory=_text(service.get("mem_limit")) or None,
            shm="--shm-size" in options or options.get("--ipc") == ("host",),
        )
        _container_launch(
            _words(service.get("entrypoint"), text),
            _words(service.get("command"), text),
            image,
            env,
            container,
            script,
            _line_of(text, image),
        )


def _pods(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod specification below a manifest, whatever its kind."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        if isinstance(value.get("mainContainer"), dict):
            yield {"containers": [value["mainContainer"]], "volumes": value.get("volumes")}
        for inner in value.values():
            yield from _pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pods(inner)


def _kubernetes(document: Any, script: Script, text: str) -> None:
    for pod in _pods(document):
        volumes = pod.get("volumes") if isinstance(pod.get("volumes"), list) else []
        memory_volume = any(
            isinstance(v, dict) and (v.get("emptyDir") or {}).get("medium") == "Memory"
            for v in volumes or []
            if isinstance(v.get("emptyDir") if isinstance(v, dict) else None, dict)
        )
        for item in pod["containers"]:
            if not isinstance(item, dict):
                continue
            image = _text(item.get("image"))
            env = {
                _text(e.get("name")): (
                    _text(e.get("value")) if "value" in e else "$(from a reference)",
                    _line_of(text, _text(e.get("name"))),
                )
                for e in item.get("env") or []
                if isinstance(e, dict)
            }
            resources = item.get("resources") if isinstance(item.get("resources"), dict) else {}
            limits = (resources or {}).get("limits") or {}
            gpus = _text(limits.get("nvidia.com/gpu")) if isinstance(limits, dict) else ""
            probes = tuple(
                k for k in ("startupProbe", "readinessProbe", "livenessProbe") if isinstance(item.get(k), dict)
            )
            container = Container(
                "kubernetes",
                memory=_text(limits.get("memory")) or None if isinstance(limits, dict) else None,
                startup_seconds=_probe_seconds(item),
                probes=probes,
                shm=memory_volume,
                gpus=int(gpus) if gpus.isdigit() else None,
                product=_text((pod.get("nodeSelector") or {}).get("nvidia.com/gpu.product")) or None
                if isinstance(pod.get("nodeSelector"), dict)
                else None,
            )
            before = len(script.launches)
            _container_launch(
                _words(item.get("command"), text),
                _words(item.get("args"), text),
                image,
                env,
                container,
                script,
                _line_of(text, image),
            )
            if len(script.launches) == before and image_engine(image)[0] == "nim":
                script.launches.append(Launch("nim", "nim", (), env, None, image, _line_of(text, image), container))


def _probe_seconds(item: dict[str, Any]) -> float | None:
    """How long the kubelet waits before it restarts a container that does not answer yet."""
    probe = item.get("startupProbe") or item.get("livenessProbe")
    if not isinstance(probe, dict):
        return None
    numbers = [probe.get("initialDelaySeconds", 0), probe.get("failureThreshold", 3), probe.get("periodSeconds", 10)]
    if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
        return None
    return float(numbers[0] + numbers[1] * numbers[2])


def _profile(document: Any, script: Script, text: str) -> None:
    """A profile: model, engine, `args` as the engine's flags without dashes, `env`."""
    if not isinstance(document, dict):
        return
    for key in document:
        if key not in _PROFILE_KEYS:
            import difflib

            near = difflib.get_close_matches(str(key), _PROFILE_KEYS, 1)
            script.findings.append(
                Finding(
                    "R-PROFILE",
                    Severity.ERROR,
                    f"unknown key {key!r} in a profile",
                    f"did you mean {near[0]}?" if near else "remove it",
                    "profile schema",
                    where=f"line {_line_of(text, str(key))}",
                )
            )
    engine = _text(document.get("engine"))
    words: list[Word] = []
    args = document.get("args") or {}
    if engine in ("vllm", "trtllm"):
        words.append(Word(_text(document.get("model")), _line_of(text, "model:")))
    else:
        words += [
            Word("--model-path", _line_of(text, "model:")),
            Word(_text(document.get("model")), _line_of(text, "model:")),
        ]
    for key, value in args.items() if isinstance(args, dict) else ():
        line = _line_of(text, f"{key}:")
        flag = f"--{key}".replace("_", "-") if engine != "trtllm" else f"--{key}"
        if value is True:
            words.append(Word(flag, line))
        elif value is False:
            words.append(Word(f"--no-{flag[2:]}", line))
        elif isinstance(value, dict):
            import json

            words += [Word(flag, line), Word(json.dumps(value), line, quoted=True)]
        elif value is not None:
            items = value if isinstance(value, list) else [value]
            words += [Word(flag, line), *(Word(_text(v), line) for v in items)]
    env = (
        {str(k): (_text(v), _line_of(text, f"{k}:")) for k, v in (document.get("env") or {}).items()}
        if isinstance(document.get("env"), dict)
        else {}
    )
    image = _text(document.get("image")) or None
    options = document.get("yaml") if isinstance(document.get("yaml"), dict) else None
    version = _text(document.get("engine_version")) or (image_engine(image)[1] if image else None)
    script.launches.append(
        Launch(
            engine or None,
            {"vllm": "vllm serve", "sglang": "sglang.launch_server", "trtllm": "trtllm-serve"}.get(engine, engine),
            tuple(words),
            env,
            version or None,
            image,
            _line_of(text, "image:"),
            None,
            options,
            line=_line_of(text, "engine:"),
        )
    )
