"""What lies in a checkpoint folder: read from names, sizes and headers, never the tensors themselves.

A safetensors file begins with the length of its JSON header, which names every tensor with its offsets; so a file
that was cut short is found without reading it.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.models.checkpoints import MINIATURE

INDEX = "model.safetensors.index.json"
SAFETY_CARDS = ("bias.md", "explainability.md", "privacy.md", "safety.md")
_MOST_HEADER = 100 << 20  # safetensors refuses longer headers too
_BITS = {"F64": 64, "F32": 32, "I64": 64, "I32": 32, "BF16": 16, "F16": 16, "I16": 16}  # others are 8


@dataclass(frozen=True, slots=True)
class Shard:
    """One safetensors file. `expected` is the size its header gives; None when the header cannot be read."""

    name: str
    size: int | None  # None: not there
    expected: int | None = None
    tensors: int = 0
    dtypes: dict[str, int] = field(default_factory=dict)  # dtype -> bytes

    @property
    def complete(self) -> bool:
        """Whether the file is there in full."""
        return self.size is not None and self.size == self.expected


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint folder. No path in it: facts may be shown in a report.

    Attributes:
        files: name -> size of everything but shards, links followed.
        shards: those that the index names, or the one file there is.
        index: whether there is an index; `index_size` is the total that it gives.
        missing_tensors: that the index names and no complete shard holds.
        revision: commit that the folder was downloaded at, 40 hex digits; "" when nothing says so.
        expected_hashes: file -> SHA-256 as the download recorded it.
        stop_ids: file -> its `eos_token_id`; generation_config.json decides.
        tokenizer_limit: `model_max_length` of the tokenizer.
    """

    files: dict[str, int]
    shards: tuple[Shard, ...]
    index: bool
    index_size: int | None
    missing_tensors: int
    config: dict[str, Any] | None
    config_error: str
    revision: str
    incomplete_downloads: int
    expected_hashes: dict[str, str]
    chat_template: bool
    stop_ids: dict[str, tuple[int, ...]]
    tokenizer_limit: int | None
    tokenizer_error: str
    quantisation: str | None
    licence: str
    disk_free: int

    @property
    def present(self) -> int:
        """Bytes of shards that are there."""
        return sum(shard.size or 0 for shard in self.shards)

    @property
    def incomplete(self) -> tuple[Shard, ...]:
        """Shards that are missing or cut short."""
        return tuple(shard for shard in self.shards if not shard.complete)

    @property
    def dtypes(self) -> dict[str, int]:
        """Bytes by dtype over all shards."""
        found: dict[str, int] = {}
        for shard in self.shards:
            for name, size in shard.dtypes.items():
                found[name] = found.get(name, 0) + size
        return dict(sorted(found.items()))


def folder_of(folder: str) -> str:
    """`folder`, or that of the lab's own miniature when it is empty."""
    return folder or str(MINIATURE)


def look(folder: str) -> Checkpoint:
    """The facts of a checkpoint folder.

    Raises:
        UsageError: no such folder.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise UsageError("no such folder", where=folder, fix="download the checkpoint, or name its snapshot folder")
    files = {name.name: name.stat().st_size for name in sorted(path.iterdir()) if name.is_file()}
    index = _json(path / INDEX)
    shards = tuple(_shard(path / name) for name in _shard_names(path, index))
    config, config_error = _config(path)
    tokenizer = _json(path / "tokenizer_config.json") or {}
    limit = tokenizer.get("model_max_length")
    return Checkpoint(
        files={name: size for name, size in files.items() if not name.endswith(".safetensors")},
        shards=shards,
        index=index is not None,
        index_size=_total(index),
        missing_tensors=_missing_tensors(index, shards),
        config=config,
        config_error=config_error,
        revision=_revision(path),
        incomplete_downloads=_incomplete(path),
        expected_hashes=_hashes(path),
        chat_template="chat_template.jinja" in files or bool(tokenizer.get("chat_template")),
        stop_ids=_stop_ids(config, _json(path / "generation_config.json")),
        tokenizer_limit=int(limit) if isinstance(limit, int | float) and 0 < limit < 1e12 else None,
        tokenizer_error=_tokenizer_error(path),
        quantisation=_quantisation(path, config),
        licence=_licence(path),
        disk_free=shutil.disk_usage(path).free,
    )


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _config(path: Path) -> tuple[dict[str, Any] | None, str]:
    from nemolab.models import config

    try:
        return config.document(path), ""
    except UsageError as error:
        return None, error.what


def _shard_names(path: Path, index: dict[str, Any] | None) -> list[str]:
    mapped = index.get("weight_map") if index else None
    if isinstance(mapped, dict):
        return sorted({str(name) for name in mapped.values()})
    return sorted(name.name for name in path.glob("*.safetensors"))


def _shard(path: Path) -> Shard:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            if length > _MOST_HEADER:
                return Shard(path.name, size)
            header = json.loads(file.read(length))
    except FileNotFoundError:
        return Shard(path.name, None)
    except (OSError, ValueError, struct.error):
        return Shard(path.name, path.stat().st_size)
    header.pop("__metadata__", None)
    dtypes: dict[str, int] = {}
    end = 0
    for entry in header.values():
        first, last = entry["data_offsets"]
        dtypes[entry["dtype"]] = dtypes.get(entry["dtype"], 0) + last - first
        end = max(end, last)
    return Shard(path.name, size, 8 + length + end, len(header), dtypes)


def _total(index: dict[str, Any] | None) -> int | None:
    total = (index or {}).get("metadata", {})
    size = total.get("total_size") if isinstance(total, dict) else None
    return int(size) if isinstance(size, int | float) else None


def _missing_tensors(index: dict[str, Any] | None, shards: tuple[Shard, ...]) -> int:
    mapped = index.get("weight_map") if index else None
    if not isinstance(mapped, dict):
        return 0
    complete = {shard.name for shard in shards if shard.complete}
    return sum(name not in complete for name in mapped.values())


def _revision(path: Path) -> str:
    """From `snapshots/<commit>` of the cache, or from what `hf download --local-dir` leaves beside the files."""
    parts = path.absolute().parts
    if "snapshots" in parts:
        after = parts[parts.index("snapshots") + 1 :]
        if after and re.fullmatch(r"[0-9a-f]{40}", after[0]):
            return after[0]
    commits: set[str] = set()
    for note in (path / ".cache" / "huggingface" / "download").glob("*.metadata"):
        first = note.read_text(errors="replace").splitlines()[:1]
        commits.update(line for line in first if re.fullmatch(r"[0-9a-f]{40}", line))
    return commits.pop() if len(commits) == 1 else ""


def _incomplete(path: Path) -> int:
    """Downloads that were broken off."""
    places = [path / ".cache" / "huggingface" / "download"]
    if "snapshots" in path.parts:
        places.append(path.parents[len(path.parts) - path.parts.index("snapshots") - 1] / "blobs")
    return sum(len(list(place.glob("*.incomplete"))) for place in places if place.is_dir())


def _hashes(path: Path) -> dict[str, str]:
    """SHA-256 of large files as the Hub names them: by blob name in the cache, by note in a local folder."""
    found = {}
    for file in path.glob("*.safetensors"):
        if file.is_symlink() and re.fullmatch(r"[0-9a-f]{64}", target := file.readlink().name):
            found[file.name] = target
    for note in (path / ".cache" / "huggingface" / "download").glob("*.safetensors.metadata"):
        lines = note.read_text(errors="replace").splitlines()
        if len(lines) > 1 and re.fullmatch(r"[0-9a-f]{64}", lines[1]):
            found[note.name.removesuffix(".metadata")] = lines[1]
    return dict(sorted(found.items()))


def _stop_ids(config: dict[str, Any] | None, generation: dict[str, Any] | None) -> dict[str, tuple[int, ...]]:
    found = {}
    for name, document in (("config.json", config), ("generation_config.json", generation)):
        ids = (document or {}).get("eos_token_id")
        listed = ids if isinstance(ids, list) else [ids]
        if kept := tuple(one for one in listed if isinstance(one, int)):
            found[name] = kept
    return found


def _tokenizer_error(path: Path) -> str:
    if not (path / "tokenizer.json").exists():
        return "tokenizer.json is missing"
    if _json(path / "tokenizer.json") is None:
        return "tokenizer.json cannot be read as JSON"
    return "" if (path / "tokenizer_config.json").exists() else "tokenizer_config.json is missing"


def _quantisation(path: Path, config: dict[str, Any] | None) -> str | None:
    from nemolab.models.quant import quantisation

    return quantisation(path, config or {})


def _licence(path: Path) -> str:
    """Licence as the model card's front matter names it, else the name of a licence file."""
    for card in ("README.md", "readme.md"):
        try:
            text = (path / card).read_text(errors="replace")[:20_000]
        except OSError:
            continue
        front = re.match(r"---\s*\n(.*?)\n---", text, re.S)
        pairs = dict(re.findall(r"^(license(?:_name)?):\s*[\"']?([^\s\"']+)", front[1] if front else "", re.M))
        if named := pairs.get("license_name") or pairs.get("license"):
            return str(named)
    return next((name.name for name in sorted(path.glob("LICENSE*"))), "")
