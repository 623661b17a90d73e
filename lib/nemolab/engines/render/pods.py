"""Parts of a Kubernetes pod that Deployment, LeaderWorkerSet and Dynamo's graph share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemolab.engines.profile import Profile, Secret
from nemolab.engines.render.box import CONFIG, MODEL, Box
from nemolab.engines.render.quoting import kubernetes
from nemolab.engines.render.settings import Settings
from nemolab.engines.render.sizes import Sizes

Object = dict[str, Any]
CACHE_VOLUME = "models"


def labels(name: str, engine: str) -> dict[str, str]:
    """Labels of every object; the first is what selectors use."""
    return {
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/name": engine,
        "app.kubernetes.io/managed-by": "nemolab",
    }


def env(pairs: tuple[tuple[str, str], ...], secrets: Mapping[str, Secret], secret: str) -> list[Object]:
    """Variables: plain ones by value, secret ones by reference."""
    plain = [{"name": name, "value": kubernetes(value)} for name, value in pairs]
    return plain + [
        {
            "name": name,
            "valueFrom": {"secretKeyRef": {"name": secret, "key": name, "optional": not item.required}},
        }
        for name, item in secrets.items()
    ]


def resources(profile: Profile, need: Sizes) -> Object:
    """GPUs as limit and request; memory as request only: the page cache of the weights counts towards a limit."""
    gpus = profile.hardware.gpus_per_node
    requests: Object = {"cpu": str(need.cpus), "memory": f"{need.memory_gib}Gi", "ephemeral-storage": "20Gi"}
    if not gpus:
        return {"requests": requests}
    return {"requests": {**requests, "nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}


def probes(ready: str, health: str, startup_s: int) -> Object:
    """Start-up waits for the load; liveness has slack, for /health stalls while a long prompt is tokenised."""

    def probe(path: str, period: int, timeout: int, failures: int) -> Object:
        return {
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "timeoutSeconds": timeout,
            "failureThreshold": failures,
        }

    return {
        "startupProbe": probe(health, 10, 10, -(-startup_s // 10)),
        "readinessProbe": probe(ready, 10, 20, 3),
        "livenessProbe": probe(health, 30, 30, 10),  # 5 minutes: vllm-project/vllm#24910
    }


def security(user: tuple[int, int] | None, *, locks_memory: bool = False) -> Object:
    """What the container may do; `locks_memory` for RDMA between nodes."""
    found: Object = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if locks_memory:
        found["capabilities"]["add"] = ["IPC_LOCK"]
    if user is not None:
        found |= {"runAsNonRoot": True, "runAsUser": user[0], "runAsGroup": user[1]}
    return found


def pod(profile: Profile, settings: Settings, user: tuple[int, int] | None) -> Object:
    """The fields of a pod beside containers and volumes."""
    found: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,  # a Service of the same name would set variables such as VLLM_PORT
        "terminationGracePeriodSeconds": 120,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}} | ({"fsGroup": user[1]} if user else {}),
    }
    if settings.pull_secret:
        found["imagePullSecrets"] = [{"name": settings.pull_secret}]
    if product := product_label(profile):
        found["nodeSelector"] = {"nvidia.com/gpu.product": product}
    if profile.hardware.gpus:
        found["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    return found


def product_label(profile: Profile) -> str:
    """The label that GPU feature discovery gives a node: NVML's product name with dashes."""
    from nemolab.lint import hardware as kinds

    if not profile.hardware.gpus:
        return ""
    return "NVIDIA-" + kinds.find(profile.hardware.gpu).product.replace(" ", "-")


def mounts(made: Box) -> list[Object]:
    """Mounts of the model volume, shared memory and options files."""
    found: list[Object] = [
        {"name": CACHE_VOLUME, "mountPath": made.cache},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    if any(mount.target == MODEL for mount in made.mounts):
        found.append({"name": CACHE_VOLUME, "mountPath": MODEL, "subPath": made.profile.model, "readOnly": True})
    if made.command.files:
        found.append({"name": "config", "mountPath": CONFIG, "readOnly": True})
    return found


def volumes(made: Box, settings: Settings, claim: str) -> list[Object]:
    """The volumes behind `mounts`."""
    found: list[Object] = [
        {"name": CACHE_VOLUME, "persistentVolumeClaim": {"claimName": claim}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{settings.shm_gib}Gi"}},
    ]
    if made.command.files:
        found.append({"name": "config", "configMap": {"name": f"{made.name}-config"}})
    return found


def metadata(name: str, made: Box, settings: Settings, **annotations: str) -> Object:
    """Metadata of an object."""
    found: Object = {"name": name}
    if settings.namespace:
        found["namespace"] = settings.namespace
    found["labels"] = labels(made.name, made.profile.engine)
    if annotations:
        found["annotations"] = {f"nemolab/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return found


def words(argv: tuple[str, ...]) -> list[str]:
    """A command line for the kubelet."""
    return [kubernetes(word) for word in argv]


def claim(made: Box, settings: Settings) -> Object:
    """The volume for checkpoint and caches; shared when several pods read it."""
    shared = made.profile.hardware.nodes > 1 or made.profile.engine == "dynamo"
    spec: Object = {
        "accessModes": ["ReadWriteMany" if shared else "ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{made.sizes.storage_gib}Gi"}},
    }
    if settings.storage_class:
        spec["storageClassName"] = settings.storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(f"{made.name}-models", made, settings),
        "spec": spec,
    }


def config_map(made: Box, settings: Settings) -> Object:
    """The options files."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(f"{made.name}-config", made, settings),
        "data": dict(made.command.files),
    }
