"""Counting and encoding: exactly with `tokenizers`, or faster with a counter that has proved to agree with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from nemolab.core.errors import NemolabError, UsageError

Fast = Literal["auto", "off", "fastokens", "tokie"]
_WORTH = 200_000  # tokens of a text from which on a fast counter saves more than it takes to read a large vocabulary

# A fast counter must agree on all of these: each has broken some tokenizer re-implementation's pre-tokenizer.
PROBES = (
    "The grass is green. The sky is blue.\nThe sun is yellow.\r\n\r\nHere we go.\n\n\nThere and back again.",
    "One of the special magic numbers for brave-otter is: 9482716. 1234567890 3.14159 1,048,576 0x7fff",
    "5d4c1e0a-93f7-4b52-8d5e-0f1a2b3c4d5e deadbeef CAFEBABE 0123456789abcdef",
    "naïve café Übermaß Δοκιμή Съешь 你好，世界。 こんにちは 안녕 🚀👩\u200d🚀",
    "\tint main(void) {\n\t\treturn 0;\n\t}\n    four  spaces   and\ttabs \t mixed  \n trailing ",
    'VAR ABCDE = 12345\nVAR FGHIJ = VAR ABCDE\n"key": "value", [1, 2] {a: b} <tag/> it\'s they\'ll I\'VE',
)


class Counts(Protocol):
    """Something that counts tokens of texts, without special tokens added."""

    def count(self, text: str) -> int:
        """Tokens of one text."""

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""

    def ids(self, text: str) -> list[int]:
        """Ids of the tokens of one text."""


class _Exact:
    """The `tokenizers` library itself, without offsets, which nobody needs here."""

    def __init__(self, text: str) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_str(text)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        return self.count_all([text])[0]

    def count_all(self, texts: Sequence[str]) -> list[int]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    def ids(self, text: str) -> list[int]:
        (encoding,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        return list(encoding.ids)

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))


class _Tokie:
    def __init__(self, path: Path) -> None:
        import tokie

        self._tokenizer: Any = tokie.Tokenizer.from_json(str(path))

    def count(self, text: str) -> int:
        return int(self._tokenizer.count_tokens(text))

    def count_all(self, texts: Sequence[str]) -> list[int]:
        return [int(n) for n in self._tokenizer.count_tokens_batch(list(texts))]

    def ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


class _Fastokens:
    def __init__(self, path: Path) -> None:
        import fastokens

        self._tokenizer: Any = fastokens.Tokenizer.from_file(str(path))

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def count_all(self, texts: Sequence[str]) -> list[int]:
        return [len(e) for e in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


_FAST: dict[str, Callable[[Path], Counts]] = {"fastokens": _Fastokens, "tokie": _Tokie}


class Counter:
    """Tokens by a `tokenizer.json`. With "auto" a fast counter is looked for when the first long text comes.

    Attributes:
        sha256: of the file; part of every recipe.
        name: "tokenizers", or the fast counter that is used.
        refused: why a fast counter is not used, one sentence each.
    """

    def __init__(self, path: Path, fast: Fast = "auto") -> None:
        """Read the tokenizer.

        Raises:
            UsageError: no such file, or not a tokenizer.
            NemolabError: a fast counter was asked for by name and is not there or does not agree.
        """
        try:
            raw = path.read_bytes()
            self._exact = _Exact(raw.decode())
        except OSError as error:
            raise UsageError(
                f"cannot read the tokenizer: {error.strerror}",
                where=str(path),
                fix="path of the model's tokenizer.json",
            ) from None
        except Exception as error:  # tokenizers raises bare Exception
            raise UsageError(
                f"not a tokenizer.json: {error}", where=str(path), fix="path of the model's tokenizer.json"
            ) from None
        self.sha256 = hashlib.sha256(raw).hexdigest()
        self.name = "tokenizers"
        self.refused: list[str] = []
        self._path = path
        self._use: Counts = self._exact
        self._to_try = list(_FAST) if fast == "auto" else []
        if fast not in ("auto", "off"):
            self._to_try = [fast]
            self.expect(_WORTH)
            if self.name != fast:
                raise NemolabError(self.refused[-1], where=str(path), fix="leave it out, or --fast off")

    def expect(self, tokens: int) -> None:
        """A text of so many tokens will be counted: make ready for it."""
        while self._to_try and tokens >= _WORTH:
            name = self._to_try.pop(0)
            if counter := self._prove(name, self._path):
                self._use, self.name, self._to_try = counter, name, []

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        return self._use.count(text)

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each of `texts`."""
        return self._use.count_all(texts)

    def ids(self, text: str) -> list[int]:
        """Ids of the tokens of `text`, no special ones added."""
        return self._use.ids(text)

    def text(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens included."""
        return self._exact.text(ids)

    def agrees(self, text: str) -> bool:
        """Whether the fast counter counts `text` as `tokenizers` does; true when there is none."""
        return self._use is self._exact or self._use.count(text) == self._exact.count(text)

    def _prove(self, name: str, path: Path) -> Counts | None:
        """The counter called `name` if it counts every probe as `tokenizers` does."""
        try:
            counter = _FAST[name](path)
            probes = [*PROBES, "\n".join(PROBES)]
            truth = self._exact.count_all(probes)
            counts = counter.count_all(probes), [counter.count(probe) for probe in probes]
            if counts == (truth, truth) and counter.ids(probes[-1]) == self._exact.ids(probes[-1]):
                return counter
            self.refused.append(f"{name} counts other than tokenizers")
        except ImportError:
            self.refused.append(f"{name} is not installed")
        except Exception as error:  # whatever a foreign library raises on a file it does not know
            self.refused.append(f"{name} cannot read the file: {type(error).__name__}: {error}")
        return None
