"""Ids of a text by every counter, and an answer taken apart where no parser did it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from nemolab.client.stream import StreamResult
from nemolab.longctx import Builder, Counter, tasks, tokens
from nemolab.longctx.ids import Frame


@pytest.mark.parametrize("kind", ["miniature", "tekken", "trained"])
def test_ids_are_those_of_tokenizers_and_as_many_as_were_built(
    kind: str, tokenizer_files: dict[str, Path], exact: dict[str, Tokenizer]
) -> None:
    fast, slow = Counter(tokenizer_files[kind]), Counter(tokenizer_files[kind], "off")
    fast.expect(1_000_000)
    assert (fast.name, slow.name) == ("tokenizers" if kind == "trained" else "fastokens", "tokenizers"), fast.refused
    for task in ("niah_multikey_3", "facts"):
        text = Builder(slow).build(tasks.make(task, 3, (0.5,), 1), 6000)[0].text
        truth = exact[kind].encode(text, add_special_tokens=False).ids
        assert fast.ids(text) == slow.ids(text) == truth
        assert len(truth) == 6000
        assert slow.text(truth[-50:]) in text


def test_a_fast_counter_that_counts_right_and_encodes_wrong_is_not_used(
    tokenizer_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(tokens._Exact):
        def __init__(self, path: Path) -> None:
            super().__init__(path.read_text())

        def ids(self, text: str) -> list[int]:
            return [0] * self.count(text)

    monkeypatch.setitem(tokens._FAST, "fastokens", Wrong)
    monkeypatch.setitem(tokens._FAST, "tokie", Wrong)
    counter = Counter(tokenizer_files["miniature"])
    counter.expect(1_000_000)
    assert counter.name == "tokenizers"
    assert len(counter.refused) == 2


@pytest.mark.parametrize(
    ("thinks", "said", "reasoning", "content"),
    [
        (False, "9482716", "", "9482716"),
        (True, "It says so.\n</think>\n\n9482716", "It says so.\n", "9482716"),
        (True, "It says so, and", "It says so, and", ""),
        (True, "</think>9482716", "", "9482716"),
        (False, "<think>So.</think>9482716", "So.", "9482716"),
        (False, "<think>So, and", "So, and", ""),
        (True, "<think>\nSo.</think>9482716", "\nSo.", "9482716"),
    ],
)
def test_thoughts_and_answer(
    tokenizer_files: dict[str, Path], thinks: bool, said: str, reasoning: str, content: str
) -> None:
    frame = Frame(Counter(tokenizer_files["miniature"]), (1,), (2,), thinks)
    got = frame.read(StreamResult(ok=True, content=said, first_content_s=1.0))
    assert (got.reasoning, got.content) == (reasoning, content)
