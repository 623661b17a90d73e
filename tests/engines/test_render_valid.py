"""Rendered files under the real validators: compose schema, Kubernetes schemas, systemd-analyze, shellcheck."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import compose_spec
import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft201909Validator
from tests.support.rendered import rendering

from nemolab.engines import profile as profiles
from nemolab.engines.render import Settings, render, write

KUBERNETES = "1.33"


# --- compose ---


@cache
def compose_schema() -> Draft201909Validator:
    """The compose specification's own schema, as docker-compose 1.29.2 ships it."""
    path = Path(str(resources("compose"))) / "config" / "compose_spec.json"
    return Draft201909Validator(json.loads(path.read_text()))


def compose_faults(text: str) -> list[str]:
    """What the schema and a parser that reads durations, sizes and mounts have against a file."""
    document = yaml.safe_load(text)
    faults = [error.message for error in compose_schema().iter_errors(document)]
    plain = copy.deepcopy(document)
    for service in plain["services"].values():
        service["image"] = service["image"].split("@")[0]  # the parser takes a tag or a digest; Docker takes both
    try:
        compose_spec.PyCompose.from_yaml(yaml.safe_dump(plain)).validate()
    except ValueError as error:
        faults.append(str(error))
    return faults


def test_compose_files_are_valid() -> None:
    for profile in rendering("compose"):
        assert compose_faults(render(profile, "compose", force=True)["compose.yaml"]) == [], profile.name


def test_the_compose_validators_see_faults() -> None:
    text = render(profiles.load("miniature_vllm"), "compose")["compose.yaml"]
    for old, new in (("shm_size", "shm_sise"), ("interval: 30s", "interval: soon"), ("memlock: -1", "memlock: x")):
        assert compose_faults(text.replace(old, new)), new


# --- Kubernetes ---


def kubernetes_check(document: dict[str, Any], seen: set[str] | None = None) -> None:
    """Hold a document against its schema; what has the shape of one in `seen` is not held again, for that is slow."""
    shape = json.dumps(_shape(document))
    if seen is not None and shape in seen:
        return
    kubernetes_validate.validate(document, KUBERNETES, strict=True)
    if seen is not None:
        seen.add(shape)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape for i, item in enumerate(value) if (shape := _shape(item)) not in map(_shape, value[:i])]
    return value if isinstance(value, str) and value[:1].isupper() else type(value).__name__


def pods_of(document: Any) -> list[dict[str, Any]]:
    """Pod templates of resources that Kubernetes' own schemas do not know."""
    if isinstance(document, list):
        return [pod for item in document for pod in pods_of(item)]
    if not isinstance(document, dict):
        return []
    if isinstance(document.get("spec"), dict) and "containers" in document["spec"]:
        return [document]
    return [pod for value in document.values() for pod in pods_of(value)]


@pytest.mark.parametrize("target", ["k8s", "dynamo"])
def test_manifests_are_valid(target: str) -> None:
    seen: set[str] = set()
    own = ("leaderworkerset.x-k8s.io/v1", "nvidia.com/v1beta1")
    for profile in rendering(target):
        text = next(iter(render(profile, target, {"namespace": "llm", "storage_class": "fast"}, force=True).values()))
        documents = list(yaml.safe_load_all(text))
        assert {d["kind"] for d in documents} >= {"PersistentVolumeClaim"}
        for document in documents:
            if document["apiVersion"] not in own:
                kubernetes_check(document, seen)
                continue
            pods = pods_of(document["spec"])
            assert len(pods) == 2
            for pod in pods:
                kubernetes_check(
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod["spec"]}, seen
                )


def test_the_kubernetes_schemas_see_faults() -> None:
    deployment = list(yaml.safe_load_all(render(profiles.load("miniature_vllm"), "k8s")["manifest.yaml"]))[1]
    kubernetes_check(deployment)
    for change in ("replicaz", "replicas"):
        bad = copy.deepcopy(deployment)
        bad["spec"][change] = "one"
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_check(bad)


def test_a_pod_is_what_a_careful_operator_wants() -> None:
    manifest = render(profiles.load("lightning_nvfp4_1xb200_vllm"), "k8s")["manifest.yaml"]
    claim, deployment, service, policy = yaml.safe_load_all(manifest)
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["resources"]["requests"]["nvidia.com/gpu"] == container["resources"]["limits"]["nvidia.com/gpu"]
    assert "memory" not in container["resources"]["limits"]
    assert container["securityContext"]["runAsNonRoot"] is True
    assert (container["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (2000, 0)
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["enableServiceLinks"] is False
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    assert any(v.get("emptyDir", {}).get("medium") == "Memory" for v in pod["volumes"])
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert policy["spec"]["podSelector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]
    assert policy["spec"]["ingress"][0]["from"]


def test_a_group_of_nodes() -> None:
    documents = list(yaml.safe_load_all(render(profiles.load("ultra_bf16_16xh100_vllm"), "k8s")["manifest.yaml"]))
    group = next(d for d in documents if d["kind"] == "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    assert (group["size"], group["restartPolicy"]) == (2, "RecreateGroupOnPodRestart")
    leader, worker = (group[f"{role}Template"]["spec"]["containers"][0]["args"] for role in ("leader", "worker"))
    assert worker == [*leader, "--headless"]
    assert "$(LWS_WORKER_INDEX)" in leader
    assert documents[0]["spec"]["accessModes"] == ["ReadWriteMany"]
    service = next(d for d in documents if d["kind"] == "Service")
    assert service["spec"]["selector"]["role"] == "leader"


def test_the_graph_has_as_many_workers_as_the_gpus_hold() -> None:
    graph = list(yaml.safe_load_all(render(profiles.load("ultra_nvfp4_8xb200_dynamo"), "dynamo")["graph.yaml"]))[1]
    frontend, worker = graph["spec"]["components"]
    assert (frontend["type"], worker["type"], worker["replicas"]) == ("frontend", "worker", 2)
    assert worker["podTemplate"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert "--router-mode" in frontend["podTemplate"]["spec"]["containers"][0]["args"]


# --- systemd ---


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)")
def test_units_are_valid(tmp_path: Path) -> None:
    """All in one call. Programs of the target (Docker, the engine, curl) are stood in for by ones that are here."""
    stand_in = shutil.which("true") or "/bin/true"
    (tmp_path / "docker.service").write_text(f"[Service]\nExecStart={stand_in}\n")
    (tmp_path / "llama-server").symlink_to(stand_in)
    for profile in rendering("systemd"):
        chosen = Settings(docker=stand_in, bin=str(tmp_path) if not profile.image else "")
        files = render(profile, "systemd", chosen, force=True)
        write({k: v.replace("/usr/bin/curl", stand_in) for k, v in files.items()}, tmp_path)
    env = os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:/usr/lib/systemd/system:/lib/systemd/system"}

    def verify() -> str:
        units = sorted(str(path) for path in tmp_path.glob("*.service") if path.name != "docker.service")
        run = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *units], env=env, capture_output=True, text=True, timeout=120
        )
        ours = [
            line
            for line in run.stderr.splitlines()
            if str(tmp_path) in line or any(Path(u).name in line for u in units)
        ]
        return "\n".join(ours)

    assert verify() == ""
    unit = tmp_path / "miniature-vllm.service"
    unit.write_text(unit.read_text().replace("RestartSec=30", "RestartSec=soon"))
    assert "miniature-vllm.service" in verify()


# --- shell ---


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed (Debian: shellcheck)")
def test_scripts_pass_shellcheck(tmp_path: Path) -> None:
    for target in ("process", "docker", "slurm", "ray"):
        for profile in rendering(target):
            write(render(profile, target, {"interface": "eth0"}, force=True), tmp_path / profile.slug / target)
    scripts = [str(path) for path in tmp_path.rglob("*") if path.suffix in (".sh", ".sbatch")]
    assert len(scripts) > 20
    run = subprocess.run(["shellcheck", "--format", "gcc", *scripts], capture_output=True, text=True, timeout=120)
    assert run.stdout == ""
    bad = tmp_path / "bad.sh"
    bad.write_text(Path(scripts[0]).read_text() + "\ncd $1\n")
    assert subprocess.run(["shellcheck", str(bad)], capture_output=True, timeout=60).returncode == 1


def test_ranks_of_tensorrt_llm_are_started_by_mpi(tmp_path: Path) -> None:
    text = (profiles.folder() / "ultra_nvfp4_8xh200_trtllm.yaml").read_text()
    for path in profiles.folder().glob("*trtllm.yaml"):
        shutil.copy(path, tmp_path)
    two = tmp_path / "two.yaml"
    two.write_text(
        text.replace("gpus: 8", "gpus: 16, nodes: 2").replace("args: {", "args: {pipeline_parallel_size: 2, ")
    )
    files = render(profiles.load(two), "slurm")
    assert "--mpi=pmix" in files["job.sbatch"]
    assert "#SBATCH --ntasks-per-node=8" in files["job.sbatch"]
    assert "exec trtllm-llmapi-launch trtllm-serve " in files["server.sh"]
    assert "--extra_llm_api_options /job/extra_llm_api_options.yaml" in files["server.sh"]
