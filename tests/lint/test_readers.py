# ruff: noqa: E501  tables, one entry a line
"""Pasted text, compose files, manifests and profiles become the launches that are meant."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.test_corpus import FOLDER

from nemolab.lint import Launch, Severity, lint_text, read_text
from nemolab.lint.evaluate import entries
from nemolab.lint.shell import split


def one(text: str) -> Launch:
    launches = read_text(text).launches
    assert len(launches) == 1, launches
    return launches[0]


def shell_findings(text: str) -> list[str]:
    return [f.message for f in read_text(text).findings if f.code == "R-SHELL"]


@pytest.mark.parametrize(
    ("text", "engine", "entry", "argv"),
    [
        ("vllm serve m --port 1", "vllm", "vllm serve", ["m", "--port", "1"]),
        ("$ sudo -E nohup vllm serve m > log 2>&1 &", "vllm", "vllm serve", ["m"]),
        ("CUDA_VISIBLE_DEVICES=0 /opt/venv/bin/vllm serve m", "vllm", "vllm serve", ["m"]),
        ("python3 -u -m vllm.entrypoints.openai.api_server "
        "--model m", "vllm", "vllm.entrypoints.openai.api_server", ["--model", "m"]),
        ("numactl -N 0 python -m sglang.launch_server --model m", "sglang", "sglang.launch_server", ["--model", "m"]),
        ("sglang serve --model m", "sglang", "sglang serve", ["--model", "m"]),
        ("mpirun -n 4 trtllm-serve serve m --tp_size 4", "trtllm", "trtllm-serve", ["m", "--tp_size", "4"]),
        ("docker run --rm -it --gpus all -p 80:80 "
        "vllm/vllm-openai:v0.22.0 m --port 80", "vllm", "vllm serve", ["m", "--port", "80"]),
        ("docker run --gpus '\"device=0,1\"' -e A=b lmsysorg/sglang:v0.5.13 bash "
        "-c 'cd /; python3 -m sglang.launch_server --model m'", "sglang", "sglang.launch_server", ["--model", "m"]),
        ("podman run --entrypoint vllm vllm/vllm-openai:v0.22.0 serve m", "vllm", "vllm serve", ["m"]),
        ("docker exec -it box vllm serve m", "vllm", "vllm serve", ["m"]),
        ("docker exec --env A=b -u 0 box vllm serve m", "vllm", "vllm serve", ["m"]),
        ("docker run --entrypoint bash vllm/vllm-openai:v0.22.0 -c "
        "'pip install x && vllm serve m'", "vllm", "vllm serve", ["m"]),
        ("[Service]\nExecStart=-/opt/bin/vllm serve m \\\n    --port 1\n", "vllm", "vllm serve", ["m", "--port", "1"]),
        ("kubectl get pods; vllm serve m | tee log", "vllm", "vllm serve", ["m"]),
        ("python3 -m dynamo.vllm --model m", "dynamo", "dynamo.vllm", ["--model", "m"]),
        ("docker run nvcr.io/nim/nvidia/nemotron-3-nano:2.0.9", "nim", "nim", []),
        ("MODEL=nvidia/x\nvllm serve $MODEL --port "
        "${PORT:-8000}", "vllm", "vllm serve", ["nvidia/x", "--port", "${PORT:-8000}"]),
        ("llama-server -m x.gguf", "llamacpp", "llama-server", ["-m", "x.gguf"]),
        ("```bash\nvllm serve m \\\n  --port 1\n```", "vllm", "vllm serve", ["m", "--port", "1"]),
        ("if true; then\n  vllm serve m\nfi", "vllm", "vllm serve", ["m"]),
        ("vllm serve <model> --port 1", "vllm", "vllm serve", ["<model>", "--port", "1"]),
    ],
)  # fmt: skip
def test_the_launch_is_found(text: str, engine: str, entry: str, argv: list[str]) -> None:
    launch = one(text)
    assert (launch.engine, launch.entry, launch.argv) == (engine, entry, argv)


@pytest.mark.parametrize(
    "text",
    ["echo vllm serve", "pip install vllm", "# vllm serve m", "vllm --version", "vllm bench serve", "ls", "", "cat <<E\nvllm serve m\nE"],
)  # fmt: skip
def test_what_is_no_launch_is_not_taken_for_one(text: str) -> None:
    assert read_text(text).launches == []


def test_variables_versions_and_lines() -> None:
    launch = one("export A=1 B='x y'\nC=2 docker run -e D=3 -e A vllm/vllm-openai:v0.27.1 \\\n  m \\\n  --port 1")
    assert launch.env == {"D": ("3", 2), "A": ("1", 1)}
    assert launch.version == "0.27.1"
    assert [word.line for word in launch.words] == [3, 4, 4]
    assert one("pip install 'vllm[flashinfer]==0.22.0'\nvllm serve m").version == "0.22.0"
    assert one("vllm serve m").version is None
    assert one("docker run vllm/vllm-openai:nightly m").version is None


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("vllm serve m \\ \n --port 1", ["m", "--port", "1"]),
        ("vllm serve m \\\n --port 1 # note \\\n --seed 2", ["m", "--port", "1", "--seed", "2"]),
        ("vllm serve m \\\n\n --port 1", ["m", "--port", "1"]),
        ("vllm serve m \\\n# note\n --port 1", ["m", "--port", "1"]),
        ("vllm serve m\n --port 1", ["m", "--port", "1"]),
        ("vllm serve m \u2014port 1", ["m", "--port", "1"]),
        ("vllm serve m \u2013\u2013port 1", ["m", "--port", "1"]),
        ("vllm serve m --name \u201ca b\u201d", ["m", "--name", "a b"]),
        ("vllm serve m \\\r\n --port 1\r\n", ["m", "--port", "1"]),
        ("vllm serve m\u00a0--port 1", ["m", "--port", "1"]),
        ('vllm serve m -sc {"method": "mtp"}', ["m", "-sc", '{"method": "mtp"}']),
    ],
)
def test_a_defect_of_pasting_is_said_and_mended(text: str, argv: list[str]) -> None:
    assert len(shell_findings(text)) == 1
    assert one(text).argv == argv


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m \\\n  --port 1\n\nls\n",
        "# it\u2019s a note \u2013 fine\nvllm serve m",
        "echo 'it\u2019s \u2013 fine'; vllm serve m",
        """vllm serve m --speculative-config '{"method":\n "mtp"}'""",
        'vllm serve m --served-model-name "a\\"b"',
        "vllm serve m --port 1 \\\n  && echo ok",
        "cat > f <<'E'\nit's \u2013 fine\nE\nvllm serve m",
    ],
)
def test_sound_text_has_no_defect(text: str) -> None:
    assert shell_findings(text) == []


def test_a_trailing_backslash_is_a_warning() -> None:
    found = [f for f in read_text("vllm serve m \\\n  --port 1 \\\n").findings if f.code == "R-SHELL"]
    assert [f.severity for f in found] == [Severity.WARNING]


def test_compose_manifest_and_profile() -> None:
    compose = one(
        "services:\n  a:\n    image: vllm/vllm-openai:v0.22.0\n    command: m --port 1\n    environment: [A=b]\n"
    )
    assert (compose.argv, compose.env["A"][0], compose.version) == (["m", "--port", "1"], "b", "0.22.0")
    pod = one("""apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200},
  containers: [{name: a, image: "lmsysorg/sglang:v0.5.13", command: [python3, -m, sglang.launch_server],
    args: [--model, m], env: [{name: A, value: b}], resources: {limits: {nvidia.com/gpu: 8}}}]}}}
""")
    assert (pod.engine, pod.argv, pod.env["A"][0]) == ("sglang", ["--model", "m"], "b")
    assert pod.container is not None
    assert (pod.container.gpus, pod.container.product) == (8, "NVIDIA-H200")
    profile = one(
        "engine: vllm\nengine_version: 0.22.0\nmodel: nano-bf16\nargs:\n  max_num_seqs: "
        "4\n  enable_prefix_caching: false\nenv: {A: 1}\n"
    )
    assert profile.argv == ["nano-bf16", "--max-num-seqs", "4", "--no-enable-prefix-caching"]
    assert (profile.version, profile.env["A"][0]) == ("0.22.0", "1")


def test_options_in_a_here_document_belong_to_the_launch_that_names_them() -> None:
    launch = one("cat > /tmp/o.yaml <<EOF\nmax_batch_size: 8\nEOF\ntrtllm-serve m --config /tmp/o.yaml")
    assert launch.yaml == {"max_batch_size": 8}
    assert launch.yaml_lines == {"max_batch_size": 2}


def test_a_config_file_is_read_as_vllm_reads_it() -> None:
    text = "model: nvidia/x\nmax-model-len: 4096\nenable-prefix-caching: true\nspeculative-config: {method: mtp}\n"
    launch = one(text)
    assert launch.argv == [
        "nvidia/x",
        "--max-model-len",
        "4096",
        "--enable-prefix-caching",
        "--speculative-config",
        '{"method": "mtp"}',
    ]
    launch = one(f"cat > c.yaml <<E\n{text}E\nvllm serve --config c.yaml --port 1")
    assert launch.argv[:4] == ["--model", "nvidia/x", "--max-model-len", "4096"]
    assert launch.argv[-2:] == ["--port", "1"]


def test_prose_with_a_colon_is_no_options_file() -> None:
    assert read_text("Note: read this\nUsage: that\n").launches == []


def test_words_that_stand_for_others_are_no_extra_argument() -> None:
    for extra in ('$EXTRA_ARGS "$@"', "...", "[options]", "<more>"):
        found = lint_text(f"vllm serve m --port 1 {extra}")
        assert Severity.ERROR not in {f.severity for f in found}, extra


def test_flags_that_a_nim_passes_on_are_held_against_its_engine() -> None:
    image = "nvcr.io/nim/nvidia/nemotron-3-nano:2.0.9"
    found = lint_text(f"docker run -e NIM_PASSTHROUGH_ARGS='--max-modle-len 4096' {image}")
    assert [(f.code, f.flag) for f in found if f.severity is Severity.ERROR] == [("F-UNKNOWN", "--max-modle-len")]


def test_broken_yaml_is_a_finding_and_a_template_is_not_checked() -> None:
    assert [f.severity for f in lint_text("services:\n  a: [\n")] == [Severity.ERROR]
    assert Severity.ERROR not in {f.severity for f in lint_text("services:\n  a: {{ .Values.x }}\n  b: ]\n")}


SEEDS = [entry["text"] for kind in ("published", "broken") for entry in entries(FOLDER, kind)]
PIECES = [
    "\\\n",
    "\\ \n",
    "'",
    '"',
    "\u2019",
    "\u2013",
    "#",
    "\n\n",
    "<<EOF",
    "$(",
    "${",
    "{",
    "}",
    ";",
    "|",
    "&&",
    "\x00",
    "--",
    "=",
    " ",
]


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9), cuts=st.integers(1, 6))
def test_mangled_text_never_crashes_lint(seed: int, cuts: int) -> None:
    """Corpus texts cut, spliced and spiked at random: whatever is pasted, lint answers."""
    rng = random.Random(seed)
    text = rng.choice(SEEDS)
    for _ in range(cuts):
        at = rng.randint(0, len(text))
        match rng.randint(0, 3):
            case 0:
                text = text[:at]
            case 1:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + rng.choice(SEEDS)[rng.randint(0, 40) :]
            case _:
                text = text[:at] + text[at + rng.randint(1, 20) :]
    lint_text(text)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="vllm serve-\\\n'\"#<>|&;{}$()=: \t", max_size=80))
def test_any_text_is_read(text: str) -> None:
    split(text)
    lint_text(text)


def test_what_another_entry_point_starts_is_not_the_image_s_own_server() -> None:
    for text in (
        "docker run --entrypoint ray vllm/vllm-openai:v0.22.0 start --head --block",
        "docker run --entrypoint bash vllm/vllm-openai:v0.22.0 -c 'sleep inf'",
        "services: {a: {image: 'vllm/vllm-openai:v0.22.0', entrypoint: [ray], command: [start, --head]}}",
    ):
        assert [f for f in lint_text(text.replace("services: ", "services:\n  ")) if f.code.startswith("F-")] == []
        assert {launch.entry for launch in read_text(text).launches} <= {"image"}


def test_docker_exec_has_its_own_variables_and_not_those_of_the_shell() -> None:
    launch = one("export A=1\ndocker exec --env B=2 --env C box vllm serve m")
    assert {name: value for name, (value, _) in launch.env.items()} == {"B": "2", "C": "$C"}


@pytest.mark.parametrize(
    ("comment", "version"),
    [
        ("# needs vllm==0.22.0.", "0.22.0"),
        ("# inside vllm/vllm-openai:v0.27.1; started by job.sbatch", "0.27.1"),
        ("# not vllm==0.12.0 but vllm==0.22.0", None),
        ("# needs sglang==0.5.13", None),
        ("#!/usr/bin/env vllm==0.22.0", None),
    ],
)
def test_a_comment_names_the_version(comment: str, version: str | None) -> None:
    assert one(f"{comment}\nvllm serve m").version == version


UNIT = r"""# made by hand
[Unit]
Description=ExecStart=vllm serve other

[Service]
Environment="NOTE=it's 100%%" LONG=1
# a comment in between
Environment='PORT=9'
ExecStartPre=-/usr/bin/docker rm --force box
ExecStart=/usr/bin/vllm serve m \
    # and one inside
    --chat-template "a \"b\" $$c" --port $PORT
ExecStop=/bin/kill $MAINPID
"""


def test_a_unit_starts_what_its_service_section_says() -> None:
    launch = one(UNIT)
    assert launch.argv == ["m", "--chat-template", 'a "b" $c', "--port", "9"]
    assert launch.env == {"NOTE": ("it's 100%", 6), "LONG": ("1", 6), "PORT": ("9", 8)}
    assert (launch.line, launch.words[1].line) == (10, 12)
    assert one(f"# vllm==0.22.0\n{UNIT}").version == "0.22.0"


GRAPH = """apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
spec:
  env: [{name: VLLM_ALLOW_LONG_MAX_MODEL_LEN, value: '1'}]
  components:
  - sharedMemorySize: 16Gi
    podTemplate:
      spec:
        containers:
        - image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.0
          command: [python3]
          args: [-m, dynamo.vllm, --model, m]
          env: [{name: A, value: b}]
"""


def test_a_graph_gives_its_workers_variables_and_shared_memory() -> None:
    launch = one(GRAPH)
    assert {name: value for name, (value, _) in launch.env.items()} == {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1", "A": "b"}
    assert launch.container is not None
    assert launch.container.shm
    alone = one(GRAPH.replace("sharedMemorySize", "other"))
    assert alone.container is not None
    assert not alone.container.shm


def test_a_worker_of_a_group_needs_no_probe() -> None:
    pod = "{spec: {containers: [{image: 'vllm/vllm-openai:v0.22.0', args: [m]}]}}"
    group = "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nspec:\n  leaderWorkerTemplate:\n"
    for role, expected in (("leader", True), ("worker", False)):
        found = lint_text(f"{group}    {role}Template: {pod}\n")
        assert any(f.code == "M-READY" for f in found) is expected, role
