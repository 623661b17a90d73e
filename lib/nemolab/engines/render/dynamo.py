"""Dynamo: its graph resource (`DynamoGraphDeployment`, nvidia.com/v1beta1 of Dynamo 1.4) with the model volume.

The operator makes pods, services and discovery of it. Source: ai-dynamo/dynamo recipes/nemotron-3-ultra (039eaa1c).
"""

from __future__ import annotations

from nemolab.core.errors import UsageError
from nemolab.engines.command import yaml_text
from nemolab.engines.commands.dynamo import SYSTEM_PORT
from nemolab.engines.profile import Profile
from nemolab.engines.render import box as boxes
from nemolab.engines.render import pods
from nemolab.engines.render.pods import Object
from nemolab.engines.render.quoting import comment
from nemolab.engines.render.settings import Settings


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`graph.yaml`.

    Raises:
        UsageError: another engine.
    """
    if profile.engine != "dynamo":
        raise UsageError(
            f"this is a profile of {profile.engine}, not of Dynamo",
            where=profile.full_name,
            fix=f"{'render it to k8s, or ' if profile.image else ''}take a profile with `engine: dynamo`",
        )
    made = boxes.box(profile, settings)
    graph: Object = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": pods.metadata(made.name, made, settings, startup=made.sizes.assumption),
        "spec": {
            "backendFramework": "vllm",
            "env": pods.env(made.env, made.command.secrets, settings.secret or f"{made.name}-secrets"),
            "components": [_frontend(made, settings), _worker(made, settings)],
        },
    }
    head = comment(boxes.headed(profile, "dynamo", made.sizes.assumption))
    return boxes.with_files(
        made, {"graph.yaml": head + yaml_text(pods.claim(made, settings)) + "---\n" + yaml_text(graph)}
    )


def _replicas(profile: Profile) -> tuple[int, int]:
    """How many workers the GPUs hold, and GPUs of each."""

    def size(name: str) -> int:
        value = profile.args.get(name, 1)
        return value if isinstance(value, int) else 1

    each = size("tensor-parallel-size") * size("pipeline-parallel-size") * size("data-parallel-size")
    if profile.hardware.gpus % each:
        raise UsageError(
            f"{profile.hardware.gpus} GPUs do not hold whole workers of {each}", where=profile.where("hardware")
        )
    return profile.hardware.gpus // each, each


def _component(name: str, kind: str, replicas: int, made: boxes.Box, settings: Settings, container: Object) -> Object:
    profile = made.profile
    spec = pods.pod(profile, settings, None)
    if kind == "frontend":
        spec.pop("nodeSelector", None)
        spec.pop("tolerations", None)
    volumes = [v for v in pods.volumes(made, settings, f"{made.name}-models") if v["name"] != "shm"]
    component: Object = {"name": name, "type": kind, "replicas": replicas}
    if kind == "worker":
        # The operator mounts it on /dev/shm.
        component["sharedMemorySize"] = f"{settings.shm_gib}Gi"
    template = {"metadata": {"labels": pods.labels(made.name, profile.engine)}}
    return component | {"podTemplate": {**template, "spec": {**spec, "containers": [container], "volumes": volumes}}}


def _frontend(made: boxes.Box, settings: Settings) -> Object:
    front = made.command.frontend
    container: Object = {
        "name": "main",
        "image": made.image,
        "imagePullPolicy": "IfNotPresent",
        "command": pods.words(front[:1]),
        "args": pods.words(front[1:]),
        "ports": [{"name": "http", "containerPort": made.profile.port}],
        **pods.probes("/health", "/health", made.sizes.startup_s),
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}},
        "securityContext": pods.security(None),
        # The tokenizer and the chat template are read here.
        "volumeMounts": [m for m in pods.mounts(made) if m["name"] == pods.CACHE_VOLUME],
    }
    return _component("Frontend", "frontend", 1, made, settings, container)


def _worker(made: boxes.Box, settings: Settings) -> Object:
    replicas, each = _replicas(made.profile)
    probe = {"httpGet": {"path": made.command.health, "port": SYSTEM_PORT}, "timeoutSeconds": 20}
    resources = pods.resources(made.profile, made.sizes)
    resources["requests"]["nvidia.com/gpu"] = resources["limits"]["nvidia.com/gpu"] = str(each)
    container: Object = {
        "name": "main",
        "image": made.image,
        "imagePullPolicy": "IfNotPresent",
        "command": pods.words(made.command.argv[:1]),
        "args": pods.words(made.command.argv[1:]),
        "startupProbe": {**probe, "periodSeconds": 30, "failureThreshold": -(-made.sizes.startup_s // 30)},
        "livenessProbe": {**probe, "periodSeconds": 30, "failureThreshold": 10},
        "resources": resources,
        "securityContext": pods.security(None, locks_memory=True),
        "volumeMounts": [m for m in pods.mounts(made) if m["name"] != "shm"],
    }
    return _component("VllmWorker", "worker", replicas, made, settings, container)
