"""Checkpoint folders: whole, partial, cut short, of another model; made from the miniature's real files."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from nemolab import miniature
from nemolab.core.errors import UsageError
from nemolab.core.finding import Severity
from nemolab.models import catalogue
from nemolab.models.files import INDEX, Checkpoint, look
from nemolab.models.files_check import Wanted, check, recognise
from nemolab.models.files_hash import hash_findings, hash_shards

COMMIT = "252a02f921642313abde19b29a723a16602fe25e"


def write_shard(path: Path, tensors: dict[str, bytes]) -> None:
    """A safetensors file with U8 tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, data in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors.values()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sharded checkpoint with the miniature's config and tokenizer, complete but for its papers."""
    here = tmp_path / "checkpoint"
    here.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(miniature.checkpoint_folder() / name, here)
    names = {f"model-0000{n}-of-00003.safetensors": f"t{n}" for n in (1, 2, 3)}
    for name, tensor in names.items():
        write_shard(here / name, {tensor: bytes(10_000), f"{tensor}.scale": bytes(4)})
    mapped = {tensor + tail: name for name, tensor in names.items() for tail in ("", ".scale")}
    (here / INDEX).write_text(json.dumps({"metadata": {"total_size": 30_012}, "weight_map": mapped}))
    return here


def codes(found: Checkpoint, wanted: Wanted, *severities: Severity) -> set[str]:
    """Codes of the findings of these severities; of errors and warnings by default."""
    kept = severities or (Severity.ERROR, Severity.WARNING)
    return {finding.code for finding in check(found, wanted) if finding.severity in kept}


def test_the_miniature_is_complete() -> None:
    found = look(str(miniature.checkpoint_folder()))
    model = recognise(found, "")
    assert model is catalogue.find("miniature")
    assert check(found, Wanted(model, 1_048_576)) == ()
    assert found.shards[0].complete
    assert sum(found.dtypes.values()) < found.present


def test_a_whole_folder_lacks_only_its_papers(folder: Path) -> None:
    found = look(str(folder))
    assert codes(found, Wanted(None)) == {"C-GENERATION", "C-LICENCE", "C-SAFETY"}
    assert found.missing_tensors == 0


def test_a_partial_download_names_what_is_missing(folder: Path) -> None:
    (folder / "model-00002-of-00003.safetensors").unlink()
    (folder / ".cache/huggingface/download").mkdir(parents=True)
    (folder / ".cache/huggingface/download/x.incomplete").write_bytes(b"")
    found = look(str(folder))
    errors = [finding for finding in check(found, Wanted(None)) if finding.severity == Severity.ERROR]
    assert {finding.code for finding in errors} == {"C-SHARD", "C-DOWNLOAD"}
    assert "1 of 3 shards are missing: model-00002-of-00003.safetensors" in errors[0].message
    assert found.missing_tensors == 2


@pytest.mark.parametrize("keep", [4, 8, 60, -1])
def test_a_shard_that_was_cut_short_is_found_without_reading_it(folder: Path, keep: int) -> None:
    path = folder / "model-00003-of-00003.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    found = look(str(folder))
    assert "C-CUT" in codes(found, Wanted(None), Severity.ERROR)
    assert [shard.name for shard in found.incomplete] == [path.name]
    assert found.missing_tensors == 2


def test_without_an_index_nobody_knows_what_is_missing(folder: Path) -> None:
    (folder / INDEX).unlink()
    assert "C-INDEX" in codes(look(str(folder)), Wanted(None), Severity.ERROR)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("config.json", "C-CONFIG"),
        ("tokenizer.json", "C-TOKENIZER"),
        ("tokenizer_config.json", "C-TOKENIZER"),
        ("chat_template.jinja", "C-TEMPLATE"),
    ],
)
def test_each_file_that_loading_needs_is_missed(folder: Path, name: str, code: str) -> None:
    if name == "chat_template.jinja":  # some tokenizers carry the template themselves
        config = json.loads((folder / "tokenizer_config.json").read_text())
        config.pop("chat_template", None)
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / name).unlink()
    assert code in codes(look(str(folder)), Wanted(None), Severity.ERROR)


def test_a_quantised_model_needs_its_quantisation(folder: Path) -> None:
    wanted = Wanted(catalogue.find("ultra-nvfp4"))
    assert {"C-QUANT", "C-OTHER"} <= codes(look(str(folder)), wanted, Severity.ERROR)
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    found = look(str(folder))
    assert found.quantisation == "NVFP4"
    assert "C-QUANT" not in codes(found, wanted, Severity.ERROR)
    assert "C-QUANT" in codes(found, Wanted(catalogue.find("ultra-bf16")), Severity.ERROR)


def test_the_parser_plugin_and_remote_code_are_looked_for(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "configuration_nemotron_h.NemotronHConfig"}
    (folder / "config.json").write_text(json.dumps(config))
    wanted = Wanted(catalogue.find("super-nvfp4"))
    assert {"C-PARSER", "C-CODE"} <= codes(look(str(folder)), wanted, Severity.WARNING)
    (folder / "super_v3_reasoning_parser.py").write_text("")
    (folder / "configuration_nemotron_h.py").write_text("")
    assert not {"C-PARSER", "C-CODE"} & codes(look(str(folder)), wanted, Severity.WARNING)


def test_the_tokenizer_s_own_limit_is_an_error_at_1m(folder: Path) -> None:
    config = json.loads((folder / "tokenizer_config.json").read_text()) | {"model_max_length": 262_144}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    found = look(str(folder))
    assert "C-LENGTH" in codes(found, Wanted(None, 1_048_576))
    assert "C-LENGTH" not in codes(found, Wanted(None, 262_144))


def test_stop_ids_that_differ_are_pointed_out(folder: Path) -> None:
    own = json.loads((folder / "config.json").read_text())["eos_token_id"]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [own, own + 1]}))
    assert "C-STOP" not in codes(look(str(folder)), Wanted(None))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": own + 1}))
    assert "C-STOP" in codes(look(str(folder)), Wanted(None), Severity.WARNING)


def test_the_new_dialect_is_pointed_out(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    words = {"M": "mamba", "*": "attention", "E": "moe"}
    config["layers_block_type"] = [words[letter] for letter in config.pop("hybrid_override_pattern")]
    del config["num_hidden_layers"]
    (folder / "config.json").write_text(json.dumps(config))
    assert "C-DIALECT" in codes(look(str(folder)), Wanted(None), Severity.INFO)


def test_revision_and_papers_are_read(folder: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "hub/models--nvidia--x/snapshots" / COMMIT
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    (tmp_path / "hub/models--nvidia--x/blobs").mkdir()
    (tmp_path / "hub/models--nvidia--x/blobs/y.incomplete").write_bytes(b"")
    (snapshot / "README.md").write_text("---\nlicense: other\nlicense_name: openmdw-1.1\n---\n# card\n")
    (snapshot / "safety.md").write_text("")
    found = look(str(snapshot))
    assert (found.revision, found.licence, found.incomplete_downloads) == (COMMIT, "openmdw-1.1", 1)
    said = {finding.code: finding.message for finding in check(found, Wanted(None, revision=COMMIT))}
    assert "C-REVISION" not in said
    assert said["C-READ"] == "to be read and signed off: openmdw-1.1, safety.md"
    assert "bias.md" in said["C-SAFETY"]
    assert "safety.md" not in said["C-SAFETY"]
    assert "C-REVISION" in codes(found, Wanted(None, revision="0" * 40), Severity.ERROR)


def test_an_unknown_revision_is_unknown_not_fine(folder: Path) -> None:
    assert "C-REVISION" in codes(look(str(folder)), Wanted(None), Severity.UNKNOWN)


def test_hashes_are_those_of_the_download(folder: Path) -> None:
    notes = folder / ".cache/huggingface/download"
    notes.mkdir(parents=True)
    for path in folder.glob("*.safetensors"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        (notes / f"{path.name}.metadata").write_text(f"{COMMIT}\n{digest}\n1.0\n")
    found = look(str(folder))
    assert found.revision == COMMIT
    seen: list[float] = []
    assert all(hash_shards(str(folder), found.expected_hashes, seen.append).values())
    assert seen[-1] == found.present
    first = next(iter(found.expected_hashes))
    raw = bytearray((folder / first).read_bytes())
    raw[-1] ^= 1
    (folder / first).write_bytes(raw)
    (finding,) = hash_findings(hash_shards(str(folder), found.expected_hashes))
    assert first in finding.message


def test_free_disk_is_held_against_what_is_still_to_come(folder: Path) -> None:
    (folder / "model-00001-of-00003.safetensors").unlink()
    found = look(str(folder))
    wanted = Wanted(catalogue.find("miniature"))
    assert "C-DISK" not in codes(found, wanted)
    assert "C-DISK" in codes(replace(found, disk_free=10), wanted)


def test_facts_hold_no_path(folder: Path) -> None:
    assert str(folder) not in json.dumps(asdict(look(str(folder))))


def test_a_missing_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        look(str(tmp_path / "nothing"))


def test_a_named_model_counts_more_than_what_is_recognised(folder: Path) -> None:
    found = look(str(folder))
    assert recognise(found, "super-fp8") is catalogue.find("super-fp8")
    assert recognise(found, "") is catalogue.find("miniature")
    with pytest.raises(UsageError):
        recognise(found, "nothing")
