"""Two tokenizers to set beside the miniature's: mistral-common's 131,072 entries, and one trained on the spot."""

from __future__ import annotations

import base64
import functools
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from nemolab.longctx import haystacks


def tekken() -> Tokenizer:
    """The vocabulary of Mistral's tekken (240911) as a `tokenizers` BPE.

    The file ranks byte strings; the merge that makes a token joins the two parts of lowest rank among all splits.
    """
    spec = find_spec("mistral_common")
    assert spec is not None
    assert spec.origin is not None
    document = json.loads((Path(spec.origin).parent / "data" / "tekken_240911.json").read_bytes())
    size = document["config"]["default_vocab_size"] - document["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in document["vocab"][:size]}
    spell = _bytes_to_letters()
    word = {raw: "".join(spell[byte] for byte in raw) for raw in ranks}
    merges = []
    for raw, rank in ranks.items():
        splits = [(raw[:i], raw[i:]) for i in range(1, len(raw)) if raw[:i] in ranks and raw[i:] in ranks]
        merges += [(rank, ranks[left], ranks[right], word[left], word[right]) for left, right in splits]
    merges.sort(key=lambda merge: merge[:3])
    vocab = {word[raw]: rank for raw, rank in ranks.items()}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[merge[3:] for merge in merges], ignore_merges=True))
    return _byte_level(tokenizer, document["config"]["pattern"])


def trained() -> Tokenizer:
    """A small SentencePiece-like BPE: a mark for the space, one in front of every text, no split at line breaks."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    lines = haystacks.prose(7)()
    corpus = [next(lines) + "\n" for _ in range(3000)] + [chr(code) for code in range(32, 127)] + ["\n", "\t"]
    trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def _byte_level(tokenizer: Tokenizer, pattern: str) -> Tokenizer:
    split: Any = pre_tokenizers.Split(Regex(pattern), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@functools.cache
def _bytes_to_letters() -> dict[int, str]:
    """GPT-2's spelling of bytes as printable letters."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(other)}
