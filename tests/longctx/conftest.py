"""Three tokenizers of different make: the miniature's, the 131,072-entry one of mistral-common, one trained here."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer
from vocabularies import tekken, trained

from nemolab.longctx import Builder, Counter
from nemolab.miniature import checkpoint_folder


@pytest.fixture(scope="session")
def tokenizer_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Paths of the three `tokenizer.json` files."""
    folder = tmp_path_factory.mktemp("tokenizers")
    made = {"miniature": checkpoint_folder() / "tokenizer.json"}
    for name, make in (("tekken", tekken), ("trained", trained)):
        made[name] = folder / f"{name}.json"
        make().save(str(made[name]))
    return made


@pytest.fixture(scope="session")
def exact(tokenizer_files: dict[str, Path]) -> dict[str, Tokenizer]:
    """The tokenizers themselves: what is counted with our counter is checked with these."""
    return {name: Tokenizer.from_file(str(path)) for name, path in tokenizer_files.items()}


@pytest.fixture(scope="session")
def builders(tokenizer_files: dict[str, Path]) -> dict[str, Builder]:
    """A builder for each, counting with `tokenizers` alone."""
    return {name: Builder(Counter(path, "off")) for name, path in tokenizer_files.items()}
