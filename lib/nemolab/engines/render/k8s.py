"""Kubernetes: volume claim, options, Deployment (or LeaderWorkerSet over several nodes), Service, NetworkPolicy.

The Secret is named, never made: `kubectl create secret generic NAME-secrets --from-literal=HF_TOKEN=...`.
"""

from __future__ import annotations

from typing import Any

from nemolab.core.errors import UsageError
from nemolab.engines.command import Expr, Node, yaml_text
from nemolab.engines.profile import Profile
from nemolab.engines.render import box as boxes
from nemolab.engines.render import pods
from nemolab.engines.render.pods import Object
from nemolab.engines.render.quoting import comment
from nemolab.engines.render.settings import Settings

_NODE = Node(Expr("$(LWS_WORKER_INDEX)"), Expr("$(LWS_LEADER_ADDRESS)"))  # set by the LeaderWorkerSet controller


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`manifest.yaml`: everything but the Secret.

    Raises:
        UsageError: Dynamo, TensorRT-LLM or NIM over several nodes, or no image.
    """
    boxes.not_dynamo(profile, "k8s")
    spread = profile.hardware.nodes > 1
    if spread and profile.engine not in ("vllm", "sglang"):
        raise UsageError(
            f"{profile.engine} over several pods needs MPI or its own operator",
            where=profile.full_name,
            fix="render it to slurm" if profile.engine == "trtllm" else "take a profile of one node",
        )
    made = boxes.box(profile, settings, node=_NODE if spread else None)
    objects = [pods.claim(made, settings)]
    objects += [pods.config_map(made, settings)] if made.command.files else []
    objects.append(_group(made, settings) if spread else _deployment(made, settings))
    objects += [_service(made, settings), _policy(made, settings)]
    secret = _secret(made, settings)
    names = ", ".join(profile.secrets) or "none"
    note = f"Secret variables ({names}) come from the Secret {secret}, which is not made here."
    folder = boxes.model_note(made, f"the folder {profile.model} of the volume {made.name}-models")
    head = comment(boxes.headed(profile, "k8s", made.sizes.assumption, note, *folder))
    return {"manifest.yaml": head + "---\n".join(yaml_text(item) for item in objects)}


def _secret(made: boxes.Box, settings: Settings) -> str:
    return settings.secret or f"{made.name}-secrets"


def _container(made: boxes.Box, settings: Settings, *, answers: bool = True, more: tuple[str, ...] = ()) -> Object:
    profile, command = made.profile, made.command
    found: Object = {"name": profile.engine, "image": made.image, "imagePullPolicy": "IfNotPresent"}
    if command.argv:
        found["command"] = pods.words(command.argv[: command.entry or 1])
        found["args"] = pods.words((*command.argv[command.entry or 1 :], *more))
    found["env"] = pods.env(made.env, command.secrets, _secret(made, settings))
    if answers:
        found["ports"] = [{"name": "http", "containerPort": profile.port}]
        found |= pods.probes(command.ready, command.health, made.sizes.startup_s)
    found["resources"] = pods.resources(profile, made.sizes)
    found["securityContext"] = pods.security(command.user, locks_memory=profile.hardware.nodes > 1)
    found["volumeMounts"] = pods.mounts(made)
    return found


def _pod(made: boxes.Box, settings: Settings, container: Object) -> Object:
    spec = pods.pod(made.profile, settings, made.command.user)
    return {**spec, "containers": [container], "volumes": pods.volumes(made, settings, f"{made.name}-models")}


def _deployment(made: boxes.Box, settings: Settings) -> Object:
    labels = pods.labels(made.name, made.profile.engine)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pods.metadata(made.name, made, settings, startup=made.sizes.assumption),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},  # a second pod would find no GPUs
            "selector": {"matchLabels": {"app.kubernetes.io/instance": made.name}},
            # The rollout is not called failed while the weights are read.
            "progressDeadlineSeconds": made.sizes.startup_s + 600,
            "template": {
                "metadata": {"labels": labels},
                "spec": _pod(made, settings, _container(made, settings)),
            },
        },
    }


def _group(made: boxes.Box, settings: Settings) -> Object:
    """One group of pods, restarted together: a rank alone cannot rejoin."""
    labels = pods.labels(made.name, made.profile.engine)

    def template(role: str, container: Object) -> Object:
        return {"metadata": {"labels": {**labels, "role": role}}, "spec": _pod(made, settings, container)}

    worker = _container(made, settings, answers=False, more=made.command.follower)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": pods.metadata(made.name, made, settings, startup=made.sizes.assumption),
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {
                "size": made.profile.hardware.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": template("leader", _container(made, settings)),
                "workerTemplate": template("worker", worker),
            },
        },
    }


def _service(made: boxes.Box, settings: Settings) -> Object:
    selector = {"app.kubernetes.io/instance": made.name}
    if made.profile.hardware.nodes > 1:
        selector["role"] = "leader"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pods.metadata(made.name, made, settings),
        "spec": {"selector": selector, "ports": [{"name": "http", "port": made.profile.port, "targetPort": "http"}]},
    }


def _policy(made: boxes.Box, settings: Settings) -> Object:
    """Who may ask: pods of the namespace that carry the client label. The engines have no keys on every route."""
    own = {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": made.name}}}
    client = {"podSelector": {"matchLabels": {f"{made.name}-client": "true"}}}
    ingress: list[Any] = [{"from": [client], "ports": [{"protocol": "TCP", "port": made.profile.port}]}]
    egress: list[Any] = [
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        {"ports": [{"protocol": "TCP", "port": 443}]},  # the first download
    ]
    if made.profile.hardware.nodes > 1:  # ranks talk to each other on ports that NCCL chooses
        ingress.append({"from": [own]})
        egress.append({"to": [own]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": pods.metadata(made.name, made, settings),
        "spec": {
            "podSelector": own["podSelector"],
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }
