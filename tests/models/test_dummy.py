"""Real dimensions without weights: whole models and their first layers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from nemolab import models
from nemolab.cli import app
from nemolab.core.errors import UsageError
from nemolab.models import checkpoints, config, dummy
from nemolab.models.cut import without_mtp


@pytest.mark.parametrize("name", ["ultra-bf16", "super-bf16", "nano-bf16", "ultra-bf16@9", "nano-bf16@13"])
def test_the_written_config_reads_back_as_the_same_model(name: str, tmp_path: Path) -> None:
    model = models.find(name)
    dummy.write(model, tmp_path / "made", checkpoints.MINIATURE)
    read = config.read(tmp_path / "made")
    assert read.layers == model.shape.layers
    gone = {"mtp_layers": "", "num_nextn_predict_layers": 0}
    assert read == without_mtp(model).shape
    assert {name: getattr(read, name) for name in gone} == gone
    found = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert found == sorted(["config.json", *dummy.TOKENIZER_FILES])


def test_a_cut_is_the_first_layers_and_nothing_of_mtp() -> None:
    whole, part = models.find("ultra-bf16"), models.find("ultra-bf16@9")
    assert part.shape.layers == whole.shape.layers[:9] == "MEMEMEM*E"
    assert part.shape.hidden_size == whole.shape.hidden_size
    assert not part.shape.has_mtp
    assert part.name == "ultra-bf16@9"
    assert part.repo == ""


def test_a_folder_is_planned_as_the_name_is(tmp_path: Path) -> None:
    dummy.write(models.find("ultra-bf16@9"), tmp_path / "u", checkpoints.MINIATURE)
    by_name, by_folder = (models.plan(models.request(name, "h200")) for name in ("ultra-bf16@9", str(tmp_path / "u")))
    assert by_name.weights == by_folder.weights
    assert by_name.kv_tokens == by_folder.kv_tokens


@pytest.mark.parametrize("name", ["ultra-bf16@3", "ultra-bf16@109", "ultra-bf16@0"])
def test_a_cut_that_leaves_no_model_is_refused_with_the_range(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be cut") as found:
        models.find(name)
    assert "8 to 108" in found.value.fix


def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "kept").write_text("mine")
    cases = (
        ("ultra-nvfp4@9", tmp_path / "a", checkpoints.MINIATURE, "quantised"),
        ("nano-bf16", full, checkpoints.MINIATURE, "not an empty folder"),
        ("nano-bf16", tmp_path / "b", tmp_path, r"no tokenizer\.json"),
        ("nano-bf16", tmp_path / "full" / "kept" / "b", checkpoints.MINIATURE, "cannot be made"),
        ("nano-bf16", tmp_path / "b", _tokenizer(tmp_path / "many", 131_073), "131,073 tokens"),
        ("nano-bf16", tmp_path / "b", _tokenizer(tmp_path / "broken", None), "not a tokenizer"),
    )
    for name, out, tokenizer, message in cases:
        with pytest.raises(UsageError, match=message):
            dummy.write(models.find(name), out, tokenizer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "full", "many"]
    assert (full / "kept").read_text() == "mine"


def _tokenizer(folder: Path, tokens: int | None) -> Path:
    folder.mkdir()
    model = {"vocab": {"a": 0}} if tokens else {}
    document = {"model": model, "added_tokens": [{"id": (tokens or 1) - 1, "content": "<last>"}]}
    (folder / "tokenizer.json").write_text(json.dumps(document))
    return folder


def test_an_empty_folder_that_is_there_stays_the_folder_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, link = tmp_path / "here", tmp_path / "link"
    here.mkdir()
    link.symlink_to(here)
    monkeypatch.chdir(here)
    before = here.stat().st_ino
    dummy.write(models.find("nano-bf16"), Path("."), checkpoints.MINIATURE / "tokenizer.json")
    assert (link.is_symlink(), here.stat().st_ino) == (True, before)
    assert sorted(path.name for path in link.iterdir()) == sorted(["config.json", *dummy.TOKENIZER_FILES])


def test_a_folder_of_quantised_weights_is_not_sent_to_a_model_that_there_is_not(tmp_path: Path) -> None:
    quantised = replace(models.find("nano-fp8"), family="local")
    with pytest.raises(UsageError, match="quantised") as found:
        dummy.write(quantised, tmp_path / "a", checkpoints.MINIATURE)
    assert "local-bf16" not in found.value.fix


def test_the_command_says_that_mtp_is_left_out(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["models", "ultra-bf16", "--dummy", str(tmp_path / "u")])
    assert made.exit_code == 0, made.output
    assert "without its MTP layers" in made.output
    assert "1,023.2 GiB" in made.output  # of 1,044.1 with MTP


def test_the_command_writes_and_says_how_large(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["models", "nano-bf16", "--dummy", str(tmp_path / "n")])
    assert made.exit_code == 0, made.output
    assert "58.8" in made.output
    assert json.loads((tmp_path / "n" / "config.json").read_bytes())["hidden_size"] == 2688


@pytest.mark.parametrize("words", [["--dummy", "x"], ["nano-bf16", "--tokenizer", "x"]])
def test_the_command_wants_both(words: list[str]) -> None:
    asked = CliRunner().invoke(app, ["models", *words])
    assert isinstance(asked.exception, UsageError)
    assert "nemolab models NAME --dummy DIR" in asked.exception.fix
