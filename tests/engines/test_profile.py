"""Profiles: what a file may say, what comes of its layers, and what an engine is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemolab.core.errors import UsageError
from nemolab.engines import profile as profiles
from nemolab.engines.command import Expr, Node, Place, command, launch

GOOD = """\
title: Nano on vLLM
model: nano-bf16
engine: vllm
engine_version: 0.22.0
image: vllm/vllm-openai:v0.22.0
goal: throughput
hardware: {gpu: h200, gpus: 1}
args:
  max-model-len: 4096
  enable-prefix-caching: false
  speculative-config: {method: ngram, num_speculative_tokens: 2}
env: {VLLM_LOGGING_LEVEL: DEBUG}
variants:
  long:
    args: {max-model-len: 8192, enable-prefix-caching: null}
"""


def write(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def refused(folder: Path, text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        profiles.load(write(folder, text))
    return caught.value


def test_a_profile_as_written(tmp_path: Path) -> None:
    profile = profiles.load(write(tmp_path, GOOD))
    assert (profile.name, profile.variant, profile.variants) == ("mine", "", ("long",))
    assert profile.args["max-model-len"] == 4096
    assert profile.env == {"VLLM_LOGGING_LEVEL": "DEBUG"}
    assert profile.where("args.max-model-len").endswith("mine.yaml:9")
    assert profile.port == 8000
    assert set(profile.unexplained) == {*profile.args, "VLLM_LOGGING_LEVEL"}


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (("goal:", "gaol:"), 6, "did you mean 'goal'?"),
        (("goal: throughput", "goal: speed"), 6, "goal"),
        (("engine: vllm", "engine: vlm"), 3, "did you mean 'vllm'?"),
        (("nano-bf16", "nano-bf61"), 2, "nano-bf16"),
        (("gpu: h200", "gpu: h2000"), 7, "h200"),
        (("gpus: 1", "gpu_count: 1"), 7, "unknown key 'gpu_count' in hardware"),
        (("gpus: 1", "gpus: 3, nodes: 2"), 7, "do not divide"),
        (("0.22.0", "0.22"), 4, "put it in quotes"),
        (("  max-model-len: 4096", "  --max-model-len: 4096"), 8, "without dashes"),
        (("DEBUG", "true"), 12, "'0' or '1'"),
        (("max-model-len: 8192", "max-num-seqs: null"), 15, "cannot be taken away"),
        (("  max-model-len: 4096", "  max-model-len: 4096\n  max-model-len: 2"), 10, "twice"),
        (("  max-model-len: 4096", "  api-key: abc"), 9, "would hold a secret"),
        (("DEBUG", "nvapi-" + "a" * 40), 12, "shape of a key"),
        (("title: Nano on vLLM\n", ""), 1, "title is missing"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(tmp_path: Path, change: tuple[str, str], line: int, says: str) -> None:
    error = refused(tmp_path, GOOD.replace(*change)) if "null" not in change[1] else _variant(tmp_path, change)
    assert error.where is not None
    assert error.where.endswith(f"mine.yaml:{line}")
    assert says in str(error)


def _variant(folder: Path, change: tuple[str, str]) -> UsageError:
    with pytest.raises(UsageError) as caught:
        profiles.load(write(folder, GOOD.replace(*change)), "long")
    return caught.value


def test_a_variant_is_a_layer_and_null_takes_away(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    profile = profiles.load(f"{path}:long")
    assert profile.full_name == "mine:long"
    assert profile.title == "Nano on vLLM, long"
    assert profile.args["max-model-len"] == 8192
    assert "enable-prefix-caching" not in profile.args
    with pytest.raises(UsageError, match="did you mean 'long'"):
        profiles.load(path, "lung")


def test_bases_lie_below_and_their_variants_too(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "_base")
    top = "extends: _base\ntitle: Mine\nargs: {max-num-seqs: 4}\nvariants: {long: {args: {max-num-seqs: 2}}}\n"
    profile = profiles.load(write(tmp_path, top), "long")
    assert (profile.args["max-model-len"], profile.args["max-num-seqs"]) == (8192, 2)
    assert profile.where("args.max-model-len").endswith("_base.yaml:15")
    assert profiles.load(write(tmp_path, top.replace("{args: {max-num-seqs: 2}}", "null"))).variants == ()


def test_a_base_that_is_not_there_and_one_that_turns_back(tmp_path: Path) -> None:
    assert "no base" in str(refused(tmp_path, "extends: _nope\n"))
    write(tmp_path, "extends: mine\n", "_a")
    assert "extends itself" in str(refused(tmp_path, "extends: _a\n"))


def test_options_files_merge_deeply(tmp_path: Path) -> None:
    base = GOOD.replace("engine: vllm", "engine: trtllm").replace("0.22.0\n", "1.3.0rc17\n", 1)
    base = base.replace("\nargs:", "\nfiles: {o.yaml: {a: {b: 1, c: 2}, d: 3}}\nargs:")
    over = "    files: {o.yaml: {a: {b: 9, c: null}}}"
    base = base.replace("    args: {max-model-len: 8192, enable-prefix-caching: null}", over)
    profile = profiles.load(write(tmp_path, base), "long")
    assert profile.files["o.yaml"] == {"a": {"b": 9}, "d": 3}


def test_settings_change_a_profile_and_null_takes_away(tmp_path: Path) -> None:
    profile = profiles.load(write(tmp_path, GOOD))
    new = profiles.changed(
        profile,
        {"args.max-num-seqs": "8", "args.max-model-len": "null", "env.A": "1", "image": "x:y", "ports.http": "9"},
    )
    assert (new.args["max-num-seqs"], "max-model-len" in new.args, new.env["A"], new.image, new.port) == (
        8,
        False,
        "1",
        "x:y",
        9,
    )
    with pytest.raises(UsageError, match="cannot set"):
        profiles.changed(profile, {"model": "x"})


def test_vllm_words(tmp_path: Path) -> None:
    made = command(profiles.load(write(tmp_path, GOOD)))
    assert made.argv[:3] == ("vllm", "serve", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    assert made.argv[3:8] == (
        "--max-model-len",
        "4096",
        "--no-enable-prefix-caching",
        "--speculative-config",
        '{"method":"ngram","num_speculative_tokens":2}',
    )
    assert made.argv[-4:] == ("--host", "127.0.0.1", "--port", "8000")
    assert made.image_argv[0] == made.argv[2]


def test_a_switch_that_an_engine_cannot_turn_off_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("engine: vllm", "engine: sglang").replace("0.22.0\n", "0.5.15\n", 1)
    with pytest.raises(UsageError, match="no negative form"):
        command(profiles.load(write(tmp_path, text)))


def test_several_nodes_name_rank_and_head() -> None:
    node = Node(Expr('"$RANK"'), Expr('"$HEAD"'))
    made = command(profiles.load("ultra_bf16_16xh100_vllm"), Place(node=node))
    at = made.argv.index("--nnodes")
    assert made.argv[at : at + 6] == ("--nnodes", "2", "--node-rank", '"$RANK"', "--master-addr", '"$HEAD"')
    assert made.follower == ("--headless",)
    made = command(profiles.load("ultra_bf16_16xh100_sglang"), Place(node=node))
    address = made.argv[made.argv.index("--dist-init-addr") + 1]
    assert (address, isinstance(address, Expr)) == ('"$HEAD":5000', True)


def test_flags_of_a_nim_pass_through_one_variable() -> None:
    made = command(profiles.load("miniature_nim"))
    assert made.argv == ()
    assert dict(made.env)["NIM_PASSTHROUGH_ARGS"].startswith("--reasoning-parser nemotron_v3 ")


def test_a_process_of_a_profile(tmp_path: Path) -> None:
    made = launch(profiles.load("miniature_vllm"), bin=tmp_path, port=1234)
    assert made.argv[0] == f"{tmp_path}/vllm"
    assert Path(made.argv[2], "config.json").is_file()  # the miniature's own weights
    assert (made.port, made.model, made.argv[-1]) == (1234, "miniature", "1234")
    with pytest.raises(UsageError, match="options files"):
        launch(profiles.load("miniature_trtllm"))
    for name, says in (("miniature_nim", "one process"), ("ultra_bf16_16xh100_vllm", "several nodes")):
        with pytest.raises(UsageError, match=says):
            launch(profiles.load(name))


def test_options_files_are_written_for_a_process(tmp_path: Path) -> None:
    made = launch(profiles.load("miniature_trtllm"), files=tmp_path)
    path = Path(made.argv[made.argv.index("--extra_llm_api_options") + 1])
    assert path == tmp_path / "extra_llm_api_options.yaml"
    assert "enable_block_reuse: false" in path.read_text()


def test_the_embedded_engine_takes_a_profile() -> None:
    made = launch(profiles.load("miniature_llamacpp"), port=0)
    assert made.engine == "llamacpp"
    assert made.argv[made.argv.index("--ctx-size") + 1] == "32768"
    with pytest.raises(UsageError, match="does not take --rope-scaling"):
        launch(profiles.changed(profiles.load("miniature_llamacpp"), {"args.rope-scaling": "none"}))
