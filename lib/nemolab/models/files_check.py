"""A checkpoint folder held against what an engine needs to load it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nemolab.core.errors import UsageError
from nemolab.core.finding import Finding, Severity
from nemolab.models import catalogue, config
from nemolab.models.files import INDEX, SAFETY_CARDS, Checkpoint
from nemolab.models.model import Model
from nemolab.models.quant import precision

_HUB = "huggingface_hub: cache layout and local-dir metadata"
_WORKER = "ai-dynamo/dynamo, recipes/nemotron-3-ultra: files that a worker needs"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of the folder.

    Attributes:
        model: the checkpoint that it should be; None when nothing is known of it.
        max_model_len: context that will be served; 0 when it does not matter.
        revision: commit that it must be; "" for any.
        own: the lab's own checkpoint, which has no repository, card or revision.
    """

    model: Model | None
    max_model_len: int = 0
    revision: str = ""

    @property
    def own(self) -> bool:
        """Whether it is the miniature."""
        return self.model is not None and self.model.family == "miniature"


def recognise(found: Checkpoint, named: str) -> Model | None:
    """The model that a folder holds: as named, else as its config and quantisation say.

    Raises:
        UsageError: an unknown name.
    """
    if named:
        return catalogue.find(named)
    if found.config is None:
        return None
    try:
        arch = config.from_config(found.config)
    except UsageError:
        return None
    known = precision(found.quantisation)
    same = (m for m in catalogue.entries().values() if m.architecture == arch and m.precision == known)
    return next(same, None)


def check(found: Checkpoint, wanted: Wanted) -> tuple[Finding, ...]:
    """Everything that is missing, broken or unsaid, gravest first."""
    checks = (_config, _weights, _size, _tokenizer, _parser, _quantisation, _code, _pin, _papers)
    findings = [finding for one in checks for finding in one(found, wanted)]
    order = list(Severity)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.severity)))


def _config(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    if found.config is None:
        yield _error("C-CONFIG", f"config.json: {found.config_error}", "download config.json")
        return
    try:
        arch = config.from_config(found.config)
    except UsageError as error:
        yield _error("C-CONFIG", f"config.json: {error.what}", error.fix or "download config.json again")
        return
    if config.dialect(found.config) == config.NEW and "num_hidden_layers" not in found.config:
        yield _info(
            "C-DIALECT",
            "layers_block_type without num_hidden_layers: readers of the old dialect break",
            "huggingface/transformers#48017, NVIDIA/TensorRT-Edge-LLM#56",
        )
    if wanted.model and wanted.model.architecture not in (None, arch):
        yield _error("C-OTHER", f"the config is not that of {wanted.model.name}", "name the right folder or model")


def _weights(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    if not found.shards:
        yield _error("C-WEIGHTS", "no safetensors file and no index", "download the checkpoint")
    if not found.index and len(found.shards) > 1:
        yield _error(
            "C-INDEX",
            f"{len(found.shards)} shards and no {INDEX}: nothing says which are missing",
            f"download {INDEX}",
        )
    missing = [shard for shard in found.shards if shard.size is None]
    if missing:
        yield _error(
            "C-SHARD",
            f"{len(missing)} of {len(found.shards)} shards are missing: {some([s.name for s in missing])}",
            "run the download again: it goes on where it stopped",
        )
    for shard in found.incomplete:
        if shard.size is not None:
            whole = "its header cannot be read" if shard.expected is None else f"{shard.expected:,} bytes expected"
            yield _error(
                "C-CUT",
                f"{shard.name} has {shard.size:,} bytes, {whole}",
                "delete it and download again",
                where=shard.name,
            )
    if found.incomplete_downloads:
        yield _error("C-DOWNLOAD", f"{found.incomplete_downloads} downloads were broken off", "run the download again")


def _size(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    if wanted.model is None or wanted.model.architecture is None:
        return
    expected = found.index_size or wanted.model.size
    left = max(0, expected - found.present)
    if found.incomplete or not found.shards:
        if left > found.disk_free:
            yield _error(
                "C-DISK",
                f"{left / 1e9:,.1f} GB are still to come, {found.disk_free / 1e9:,.1f} GB are free",
                "free space, or download elsewhere",
            )
        return
    if not wanted.model.layout.estimate and abs(found.present - wanted.model.size) > 0.01 * wanted.model.size:
        yield _warning(
            "C-SIZE",
            f"{found.present / 1e9:,.2f} GB of tensors, {wanted.model.size / 1e9:,.2f} GB expected",
            "check that this is the checkpoint that you mean",
            "count of its parameters by format",
        )


def _tokenizer(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    if found.tokenizer_error:
        yield _error("C-TOKENIZER", found.tokenizer_error, "download the tokenizer's files")
    if not found.chat_template:
        yield _error(
            "C-TEMPLATE",
            "no chat_template.jinja and no chat_template in tokenizer_config.json",
            "download chat_template.jinja; a base model has none and cannot chat",
        )
    if "generation_config.json" not in found.files and not wanted.own:
        yield _warning(
            "C-GENERATION",
            "generation_config.json is missing: engines use their own sampling defaults",
            "download it",
            _WORKER,
        )
    stops = found.stop_ids
    if len(stops) == 2 and not set(stops["config.json"]) <= set(stops["generation_config.json"]):
        yield _warning(
            "C-STOP",
            f"eos_token_id is {list(stops['config.json'])} in config.json and {list(stops['generation_config.json'])} "
            "in generation_config.json, which decides: answers may not stop",
            "compare both with the checkpoint's repository",
            "",
        )
    limit, asked = found.tokenizer_limit, wanted.max_model_len
    if limit and asked and limit < asked:
        yield _error(
            "C-LENGTH",
            f"model_max_length of the tokenizer is {limit:,}, {asked:,} are asked: the smaller counts",
            "raise model_max_length in a copy of tokenizer_config.json",
            "ai-dynamo/dynamo, 1M recipes",
        )


def _parser(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    plugin = wanted.model.reasoning_plugin if wanted.model else ""
    if plugin and plugin not in found.files:
        yield _warning(
            "C-PARSER",
            f"{plugin} is missing: --reasoning-parser-plugin cannot load it",
            "download it, or use the engine's own nemotron_v3",
            _WORKER,
        )


def _quantisation(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    if wanted.model is None:
        return
    quantised = wanted.model.precision != "bf16"
    if quantised and found.quantisation is None and found.config is not None:
        yield _error(
            "C-QUANT",
            f"{wanted.model.precision} and no quantization_config or hf_quant_config.json",
            "download both: without them the engine loads packed weights as BF16",
        )
    if not quantised and found.quantisation:
        yield _error("C-QUANT", f"quantised as {found.quantisation}, BF16 expected", "name the right folder or model")


def _code(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    named = (found.config or {}).get("auto_map")
    if not isinstance(named, dict):
        return
    modules = sorted({str(value).split(".")[0] + ".py" for value in named.values()})
    missing = [name for name in modules if name not in found.files]
    if missing:
        yield _warning(
            "C-CODE",
            f"auto_map names {', '.join(missing)}, not there: --trust-remote-code fails",
            "leave --trust-remote-code off: engines have their own classes",
            "vLLM 0.22.0 on H200",
        )
    else:
        yield _info(
            "C-CODE", f"the repository brings code ({', '.join(modules)}); it runs only with --trust-remote-code"
        )


def _pin(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    if wanted.own:
        return
    if wanted.revision and found.revision != wanted.revision:
        have = found.revision or "not known"
        yield _error("C-REVISION", f"revision is {have}, {wanted.revision} wanted", "download with --revision", _HUB)
    elif not found.revision:
        yield Finding(
            "C-REVISION",
            Severity.UNKNOWN,
            "nothing says which revision this is",
            "download with a pinned --revision",
            _HUB,
        )
    elif not wanted.revision:
        yield _info("C-REVISION", f"revision {found.revision}: pin it in the launch", _HUB)


def _papers(found: Checkpoint, wanted: Wanted) -> Iterator[Finding]:
    if wanted.own:
        return
    if not found.licence:
        yield _warning("C-LICENCE", "no licence file and no licence in the model card", "read it in the repository", "")
    cards = [name for name in SAFETY_CARDS if name in found.files]
    missing = [name for name in SAFETY_CARDS if name not in found.files]
    read = [*([found.licence] if found.licence else []), *cards]
    if read:
        yield _info("C-READ", f"to be read and signed off: {', '.join(read)}")
    if missing:
        yield _warning(
            "C-SAFETY",
            f"not in the folder: {', '.join(missing)}",
            "read them in the repository before production",
            "sister repositories ship these sub-cards",
        )


def some(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _error(code: str, message: str, fix: str, source: str = "", where: str | None = None) -> Finding:
    return Finding(code, Severity.ERROR, message, fix, source, where=where)


def _warning(code: str, message: str, fix: str, source: str) -> Finding:
    return Finding(code, Severity.WARNING, message, fix, source)


def _info(code: str, message: str, source: str = "") -> Finding:
    return Finding(code, Severity.INFO, message, "", source)
