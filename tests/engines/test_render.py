"""Rendered files: possible or refused with one error, quoted right, secrets by reference, the same each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nemolab.cli.render import render as command_line
from nemolab.core.errors import UsageError
from nemolab.core.secrets import find_key_shapes
from nemolab.engines import profile as profiles
from nemolab.engines.render import TARGETS, Settings, possible, render, write

GOLDEN = Path(__file__).parent / "golden"
COMMITTED = [
    ("ultra_nvfp4_4xb200_vllm", "compose"),
    ("ultra_nvfp4_4xb200_vllm:long-context", "docker"),
    ("ultra_nvfp4_4xb200_trtllm:latency", "k8s"),
    ("ultra_bf16_16xh100_vllm", "k8s"),
    ("ultra_bf16_16xh100_vllm", "slurm"),
    ("ultra_bf16_16xh100_vllm", "ray"),
    ("ultra_nvfp4_8xb200_dynamo", "dynamo"),
    ("lightning_nvfp4_rtx5090_nim", "systemd"),
    ("miniature_llamacpp", "systemd"),
    ("miniature_sglang", "process"),
]


@pytest.mark.parametrize(("name", "target"), COMMITTED)
def test_golden_files(name: str, target: str) -> None:
    """Byte for byte. `python tests/engines/golden/renew.py` writes them anew; read the diff before you commit it."""
    profile = profiles.load(name)
    folder = GOLDEN / profile.slug / target
    files = render(profile, target)
    assert {path.name: path.read_text() for path in folder.iterdir()} == files
    assert render(profile, target) == files


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("miniature_vllm", "ray", "one machine needs no Ray"),
        ("miniature_sglang", "ray", "does not spread itself by Ray"),
        ("miniature_vllm", "dynamo", "not of Dynamo"),
        ("miniature_dynamo", "compose", "render it to dynamo"),
        ("miniature_nim", "process", "a NIM is a container"),
        ("miniature_nim", "slurm", "entry point"),
        ("miniature_llamacpp", "docker", "no container image"),
        ("ultra_bf16_16xh100_vllm", "docker", "the profile needs 2"),
        ("teacher_stem_as_listed", "docker", "does not fit"),
        ("miniature_vllm", "podman", "no target"),
    ],
)
def test_what_cannot_be_has_one_clear_error(name: str, target: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        render(profiles.load(name), target)
    assert caught.value.fix


def test_what_does_not_fit_can_be_forced() -> None:
    assert render(profiles.load("teacher_stem_as_listed"), "docker", force=True)


def test_unknown_and_wrong_settings_are_refused() -> None:
    for values, says in (
        ({"nmae": "x"}, "did you mean 'name'"),
        ({"name": "Bad Name"}, "small letters"),
        ({"models": "/a:/b"}, "without colons"),
        ({"models": "a\nb"}, "path|line"),
        ({"shm_gib": "0"}, "greater"),
        ({"bind": "$(reboot)"}, "letters"),
    ):
        with pytest.raises(UsageError, match=says):
            Settings.of(values)


NASTY = """it's "$(touch /tmp/x)" `id` $HOME %n \\ ; & $(HOSTNAME) {{x}}"""


def nasty() -> profiles.Profile:
    return profiles.changed(profiles.load("miniature_vllm"), {"args.chat-template": f'"{NASTY}"', "env.NOTE": NASTY})


def test_a_shell_gets_the_words_as_they_are(tmp_path: Path) -> None:
    """Run with the program replaced by one that prints its arguments."""
    text = profiles.changed(profiles.load("miniature_vllm"), {"env.NOTE": NASTY}).env["NOTE"]
    profile = nasty_args(text)
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "vllm"
    fake.write_text('#!/bin/sh\nprintf "%s\\0" "$NOTE" "$@"\n')
    fake.chmod(0o755)
    docker = tmp_path / "bin" / "docker"
    docker.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    docker.chmod(0o755)
    env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": "/nonexistent"}
    write(render(profile, "process"), tmp_path)
    out = subprocess.run([tmp_path / "start.sh"], env=env, capture_output=True, check=True, text=True).stdout.split(
        "\0"
    )
    assert out[0] == text
    assert out[out.index("--chat-template") + 1] == text
    write(render(profile, "docker"), tmp_path)
    out = subprocess.run([tmp_path / "run.sh"], env=env, capture_output=True, check=True, text=True).stdout.split("\0")
    assert f"NOTE={text}" in out
    assert out[out.index("--chat-template") + 1] == text
    assert f"{tmp_path}/miniature:/model:ro" in out


def nasty_args(text: str) -> profiles.Profile:
    from dataclasses import replace

    profile = profiles.load("miniature_vllm")
    return replace(profile, args={**profile.args, "chat-template": text}, env={**profile.env, "NOTE": text})


def test_compose_kubernetes_and_systemd_do_not_expand() -> None:
    profile = nasty_args(NASTY)
    service = yaml.safe_load(render(profile, "compose")["compose.yaml"])["services"]["vllm"]
    assert service["command"][service["command"].index("--chat-template") + 1].replace("$$", "$") == NASTY
    assert "$" not in service["environment"]["NOTE"].replace("$$", "")
    pod = list(yaml.safe_load_all(render(profile, "k8s")["manifest.yaml"]))[1]["spec"]["template"]["spec"]
    args = pod["containers"][0]["args"]
    assert args[args.index("--chat-template") + 1] == NASTY.replace("$(", "$$(")
    unit = render(profile, "systemd")["miniature-vllm.service"]
    assert "%%n" in unit
    assert "$$(touch" in unit
    assert "\n" not in NASTY


def test_secrets_are_named_never_written() -> None:
    for profile in map(profiles.load, profiles.names()):
        for target in possible(profile):
            for text in render(profile, target, force=True).values():
                assert not find_key_shapes(text)
                for secret in profile.secrets:
                    assert f"{secret}=" not in text.replace(f"${{{secret}:", "")
    for name in ("miniature_nim", "ultra_nvfp4_4xb200_vllm"):
        profile = profiles.load(name)
        (service,) = yaml.safe_load(render(profile, "compose")["compose.yaml"])["services"].values()
        assert all(service["environment"][secret].startswith(f"${{{secret}:") for secret in profile.secrets)
    text = render(profiles.load("miniature_nim"), "k8s")["manifest.yaml"]
    assert "secretKeyRef" in text
    assert "optional: false" in text
    assert "kind: Secret" not in text
    assert ': "${NGC_API_KEY:?' in render(profiles.load("miniature_nim"), "docker")["run.sh"]


def test_ports_stay_on_loopback_unless_told() -> None:
    profile = profiles.load("miniature_vllm")
    service = yaml.safe_load(render(profile, "compose")["compose.yaml"])["services"]["vllm"]
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    wide = render(profile, "compose", {"bind": "0.0.0.0"})["compose.yaml"]
    assert "0.0.0.0:8000:8000" in wide


def test_probes_wait_for_the_load() -> None:
    """The assumption is stated, and a slower disk waits longer."""

    def startup(rate: str) -> int:
        manifest = render(profiles.load("ultra_nvfp4_4xb200_vllm"), "k8s", {"disk_gb_s": rate})["manifest.yaml"]
        objects = list(yaml.safe_load_all(manifest))
        assert f"at {rate} GB/s" in objects[1]["metadata"]["annotations"]["nemolab/startup"]
        probe = objects[1]["spec"]["template"]["spec"]["containers"][0]["startupProbe"]
        return int(probe["periodSeconds"]) * int(probe["failureThreshold"])

    assert startup("1") >= 2 * (351.9 + 165)
    assert startup("0.25") > 3 * startup("1") / 2


def test_the_command_line_writes_files_that_run(tmp_path: Path) -> None:
    run = CliRunner().invoke(
        command_line,
        [
            "miniature_trtllm",
            "--to",
            "docker",
            "--out",
            str(tmp_path),
            "--set",
            "args.max_batch_size=2",
            "--set",
            "name=mini",
        ],
        standalone_mode=False,
    )
    assert run.return_value == 0
    script = tmp_path / "run.sh"
    assert script.stat().st_mode & 0o111
    assert "--max_batch_size 2" in script.read_text()
    assert "--name mini" in script.read_text()
    assert yaml.safe_load((tmp_path / "extra_llm_api_options.yaml").read_text())["enable_chunked_prefill"] is True


def test_targets_of_command_line_and_library_are_the_same() -> None:
    from nemolab.cli.render import _TARGETS

    assert tuple(TARGETS) == _TARGETS
