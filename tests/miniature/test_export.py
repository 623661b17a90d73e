"""One source of weights: what the checkpoint holds, and the GGUF that is written from it."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
from pathlib import Path

import gguf
import numpy as np
import pytest

from nemolab import miniature
from nemolab.core.errors import NemolabError, UsageError
from nemolab.miniature import checkpoint_folder, config, export, tensors
from nemolab.miniature.config import MiniatureConfig

FOLDER = checkpoint_folder()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEMOLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_config_json_is_the_dataclass_and_reads_back() -> None:
    assert json.loads((FOLDER / "config.json").read_bytes()) == MiniatureConfig().hf()
    assert config.read(FOLDER) == MiniatureConfig()


def test_kernel_facing_shapes_are_those_of_the_family() -> None:
    shape = MiniatureConfig()
    assert (shape.mamba_head_dim, shape.ssm_state_size, shape.head_dim, shape.num_key_value_heads) == (64, 128, 128, 2)
    assert shape.max_position_embeddings == 1_048_576
    assert set(shape.hybrid_override_pattern) == {"M", "E", "*"}


def test_the_weights_have_the_shapes_and_the_size_that_the_card_says() -> None:
    shapes = {name: array.shape for name, array in tensors.load(FOLDER).items()}
    assert shapes == MiniatureConfig().tensor_shapes()
    assert miniature.CARD.parameters == sum(int(np.prod(shape)) for shape in shapes.values())
    assert (FOLDER / tensors.FILE).stat().st_size <= 12_000_000


def test_no_expert_is_dead() -> None:
    biases = [array for name, array in tensors.load(FOLDER).items() if name.endswith("e_score_correction_bias")]
    assert len(biases) == MiniatureConfig().hybrid_override_pattern.count("E")
    assert all(np.isfinite(bias).all() and np.abs(bias).max() < 5 for bias in biases)


def test_gguf_holds_the_same_tensors(tmp_path: Path) -> None:
    export.write_gguf(FOLDER, tmp_path / "m.gguf", "F32")
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    written = {tensor.name: np.asarray(tensor.data) for tensor in reader.tensors}
    source = tensors.load(FOLDER)
    assert np.array_equal(written["token_embd.weight"], source["backbone.embeddings.weight"])
    assert np.array_equal(written["output.weight"], source["lm_head.weight"])
    assert np.array_equal(written["blk.3.attn_k.weight"], source["backbone.layers.3.mixer.k_proj.weight"])
    expert = source["backbone.layers.1.mixer.experts.5.up_proj.weight"]
    assert np.array_equal(written["blk.1.ffn_up_exps.weight"][5], expert)
    assert np.allclose(written["blk.0.ssm_a"].ravel(), -np.exp(source["backbone.layers.0.mixer.A_log"]))
    count = sum(array.size for array in written.values())
    assert count == miniature.CARD.parameters


def test_gguf_metadata_follows_the_config(tmp_path: Path) -> None:
    export.write_gguf(FOLDER, tmp_path / "m.gguf")
    fields = gguf.GGUFReader(tmp_path / "m.gguf").fields
    value = {name: field.contents() for name, field in fields.items()}
    assert value["general.architecture"] == "nemotron_h_moe"
    assert value["nemotron_h_moe.context_length"] == 1_048_576
    heads = [2 if letter == "*" else 0 for letter in MiniatureConfig().hybrid_override_pattern]
    assert value["nemotron_h_moe.attention.head_count_kv"] == heads
    assert value["nemotron_h_moe.moe_latent_size"] == 128
    assert value["tokenizer.chat_template"] == (FOLDER / "chat_template.jinja").read_text()
    kinds = value["tokenizer.ggml.token_type"]
    assert kinds[config.IM_END] == gguf.TokenType.CONTROL
    assert kinds[5] == gguf.TokenType.USER_DEFINED  # <think>


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    digests = set()
    for number in range(2):
        export.write_gguf(FOLDER, tmp_path / f"{number}.gguf")
        digests.add(hashlib.sha256((tmp_path / f"{number}.gguf").read_bytes()).hexdigest())
    assert len(digests) == 1


def _build(_: int) -> tuple[str, str]:
    path = miniature.gguf_path()
    return str(path), hashlib.sha256(path.read_bytes()).hexdigest()


def test_two_processes_at_once_leave_one_whole_file(cache: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        made = pool.map(_build, range(2), chunksize=1)
    assert len(set(made)) == 1
    assert [path.name for path in (cache / "miniature").iterdir()] == [Path(made[0][0]).name]


def test_a_second_call_writes_nothing(cache: Path) -> None:
    path = miniature.gguf_path()
    before = path.stat().st_mtime_ns
    assert miniature.gguf_path() == path
    assert path.stat().st_mtime_ns == before
    assert miniature.gguf_path("F16") != path


def test_another_template_is_another_file(cache: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(FOLDER, other)
    first = export.gguf_path(other)
    (other / "chat_template.jinja").write_text("{{ messages }}")
    assert export.gguf_path(other) != first


def test_faults_have_one_clear_message_and_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown file type 'Q2_K'[\s\S]*Q8_0, F16, F32"):
        export.write_gguf(FOLDER, tmp_path / "m.gguf", "Q2_K")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no checkpoint here"):
        export.write_gguf(tmp_path, tmp_path / "m.gguf")
    broken = tmp_path / "broken"
    shutil.copytree(FOLDER, broken)
    (broken / tensors.FILE).write_bytes((FOLDER / tensors.FILE).read_bytes()[:-1000])
    with pytest.raises(NemolabError, match="damaged weights"):
        export.write_gguf(broken, tmp_path / "m.gguf")
    shutil.copy(FOLDER / tensors.FILE, broken / tensors.FILE)
    document = json.loads((FOLDER / "config.json").read_bytes()) | {"moe_latent_size": 64}
    (broken / "config.json").write_text(json.dumps(document))
    with pytest.raises(NemolabError, match=r"do not have the shapes"):
        export.write_gguf(broken, tmp_path / "m.gguf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken"]
