"""Launches in compose files and Kubernetes manifests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nemolab.lint.commands import launch_from_words, read_shell
from nemolab.lint.launch import Container, Launch, Script, Word, image_engine
from nemolab.lint.yamltext import line_of, text_of, words_of


def container_launch(
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
    launch = launch_from_words(words, None if command else image) if words else None
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


def compose(document: Any, script: Script, text: str) -> None:
    services = document.get("services") if isinstance(document, dict) else None
    for service in services.values() if isinstance(services, dict) else ():
        if not isinstance(service, dict):
            continue
        image = text_of(service.get("image"))
        env: dict[str, tuple[str, int]] = {}
        given = service.get("environment") or {}
        pairs = (
            given.items()
            if isinstance(given, dict)
            else (text_of(e).partition("=")[::2] for e in given)
            if isinstance(given, list)
            else ()
        )
        for key, value in pairs:
            env[str(key)] = (text_of(value), line_of(text, str(key)))
        options = {
            flag: tuple(text_of(v) for v in (value if isinstance(value, list) else [value]))
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
            memory=text_of(service.get("mem_limit")) or None,
            shm="--shm-size" in options or options.get("--ipc") == ("host",),
        )
        container_launch(
            words_of(service.get("entrypoint"), text),
            words_of(service.get("command"), text),
            image,
            env,
            container,
            script,
            line_of(text, image),
        )


@dataclass(frozen=True, slots=True)
class _Around:
    """What the levels of a manifest above a pod give it.

    Attributes:
        env: variables of a whole graph or component (DynamoGraphDeployment: `env`, `envs`).
        shm: the operator mounts shared memory (`sharedMemorySize`, `sharedMemory`).
        follower: below the `workerTemplate` of a LeaderWorkerSet.
    """

    env: tuple[Any, ...] = ()
    shm: bool = False
    follower: bool = False

    def inside(self, level: dict[str, Any]) -> _Around:
        given = [level[key] for key in ("env", "envs") if isinstance(level.get(key), list)]
        shm = any(level.get(key) for key in ("sharedMemorySize", "sharedMemory"))
        return replace(self, env=(*self.env, *(item for env in given for item in env)), shm=self.shm or shm)


def _pods(value: Any, around: _Around = _Around()) -> Iterator[tuple[dict[str, Any], _Around]]:
    """Every pod specification below a manifest, whatever its kind, and what stands around it."""
    if isinstance(value, dict):
        around = around.inside(value)
        if isinstance(value.get("containers"), list):
            yield value, around
        if isinstance(value.get("mainContainer"), dict):
            yield {"containers": [value["mainContainer"]], "volumes": value.get("volumes")}, around
        for key, inner in value.items():
            yield from _pods(inner, replace(around, follower=True) if key == "workerTemplate" else around)
    elif isinstance(value, list):
        for inner in value:
            yield from _pods(inner, around)


def _variables(given: Any, text: str) -> dict[str, tuple[str, int]]:
    """An `env` list, each variable with its line."""
    return {
        text_of(e.get("name")): (
            text_of(e.get("value")) if "value" in e else "$(from a reference)",
            line_of(text, text_of(e.get("name"))),
        )
        for e in given or []
        if isinstance(e, dict)
    }


def kubernetes(document: Any, script: Script, text: str) -> None:
    for pod, around in _pods(document):
        volumes = pod.get("volumes") if isinstance(pod.get("volumes"), list) else []
        memory_volume = any(
            isinstance(v, dict) and (v.get("emptyDir") or {}).get("medium") == "Memory"
            for v in volumes or []
            if isinstance(v.get("emptyDir") if isinstance(v, dict) else None, dict)
        )
        for item in pod["containers"]:
            if not isinstance(item, dict):
                continue
            image = text_of(item.get("image"))
            env = _variables(around.env, text) | _variables(item.get("env"), text)
            resources = item.get("resources") if isinstance(item.get("resources"), dict) else {}
            limits = (resources or {}).get("limits") or {}
            gpus = text_of(limits.get("nvidia.com/gpu")) if isinstance(limits, dict) else ""
            probes = tuple(
                k for k in ("startupProbe", "readinessProbe", "livenessProbe") if isinstance(item.get(k), dict)
            )
            container = Container(
                "kubernetes",
                memory=text_of(limits.get("memory")) or None if isinstance(limits, dict) else None,
                startup_seconds=_probe_seconds(item),
                probes=probes,
                shm=memory_volume or around.shm,
                gpus=int(gpus) if gpus.isdigit() else None,
                product=text_of((pod.get("nodeSelector") or {}).get("nvidia.com/gpu.product")) or None
                if isinstance(pod.get("nodeSelector"), dict)
                else None,
                follower=around.follower,
            )
            before = len(script.launches)
            container_launch(
                words_of(item.get("command"), text),
                words_of(item.get("args"), text),
                image,
                env,
                container,
                script,
                line_of(text, image),
            )
            if len(script.launches) == before and image_engine(image)[0] == "nim":
                script.launches.append(Launch("nim", "nim", (), env, None, image, line_of(text, image), container))


def _probe_seconds(item: dict[str, Any]) -> float | None:
    """How long the kubelet waits before it restarts a container that does not answer yet."""
    probe = item.get("startupProbe") or item.get("livenessProbe")
    if not isinstance(probe, dict):
        return None
    numbers = [probe.get("initialDelaySeconds", 0), probe.get("failureThreshold", 3), probe.get("periodSeconds", 10)]
    if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
        return None
    return float(numbers[0] + numbers[1] * numbers[2])
