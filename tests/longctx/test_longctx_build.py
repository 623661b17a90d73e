"""Prompts are exact to the token and needles are at their depth, whatever tokenizer counts."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from nemolab.core.errors import NemolabError, UsageError
from nemolab.longctx import Builder, Counter, tasks, tokens
from nemolab.longctx.filler import ANCHOR

KINDS = ("miniature", "tekken", "trained")


def counted(tokenizer: Tokenizer, text: str) -> int:
    """Tokens by the library itself, not by our counter."""
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def test_two_hundred_random_prompts_have_error_zero(builders: dict[str, Builder], exact: dict[str, Tokenizer]) -> None:
    rng = random.Random(20261130)
    names = list(tasks.TASKS)
    built = 0
    while built < 200:
        kind = KINDS[built % 3]
        depths = [rng.random() for _ in range(rng.randint(1, 3))]
        sample = tasks.make(rng.choice(names), rng.getrandbits(32), depths, rng.randint(1, 3))
        length = rng.randint(900, 2500)
        for prompt in builders[kind].build(sample, length):
            assert counted(exact[kind], prompt.text) == length == prompt.tokens
            built += 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["niah_single_1", "niah_multikey_2"])
def test_needles_are_at_their_depth(
    kind: str, task: str, builders: dict[str, Builder], exact: dict[str, Tokenizer]
) -> None:
    for depth in (0.0, 0.25, 0.5, 0.77, 1.0):
        (prompt, *_) = builders[kind].build(tasks.make(task, 5, (depth,), 1), 8000)
        placed = prompt.needles[0]
        assert placed.depth == pytest.approx(depth, abs=0.01)  # a line of haystack is below 1 % of it
        before = prompt.text[: prompt.text.index(placed.line)]
        assert placed.offset == counted(exact[kind], before)


def test_neighbouring_lengths_differ_by_one(builders: dict[str, Builder]) -> None:
    sample = tasks.make("niah_multikey_1", 1, (0.2, 0.8), 2)
    for length in range(1500, 1515):
        prompts = builders["miniature"].build(sample, length)
        assert {builders["miniature"].counter.count(prompt.text) for prompt in prompts} == {length}


def test_questions_share_the_text(builders: dict[str, Builder]) -> None:
    first, second, absent = builders["tekken"].build(tasks.make("niah_multikey_1", 1, (0.2, 0.8), 2), 3000)
    common = next(i for i, (a, b) in enumerate(zip(first.text, second.text, strict=False)) if a != b)
    assert common > 0.95 * len(first.text)
    assert first.question.expected[0] in first.text
    assert absent.question.control == "wrong key"
    assert not absent.question.expected


def test_the_same_seed_is_the_same_prompt_and_another_is_not(builders: dict[str, Builder]) -> None:
    build = builders["miniature"].build
    for name in tasks.TASKS:
        one, again, other = (build(tasks.make(name, seed, (0.5,), 1), 1500)[0] for seed in (1, 1, 2))
        assert one.sha256 == again.sha256 != other.sha256


def test_too_few_tokens_name_the_least(builders: dict[str, Builder]) -> None:
    sample = tasks.make("niah_multikey_1", 1, (0.5,), 1)
    with pytest.raises(UsageError, match="at least") as caught:
        builders["miniature"].build(sample, 60)
    least = int(str(caught.value).split()[-1])
    assert builders["miniature"].build(sample, least)[0].tokens == least


def test_the_filler_makes_every_size(builders: dict[str, Builder]) -> None:
    for builder in builders.values():
        filler, count = builder.filler, builder.counter.count
        base = count(ANCHOR)
        for size in range(filler.low, filler.low + 150):
            assert count(ANCHOR + filler.line(size)) - base == size
        with pytest.raises(ValueError, match="no filler"):
            filler.line(filler.low - 1)


def test_an_answer_that_depends_on_the_length_is_settled(builders: dict[str, Builder]) -> None:
    _, count = builders["miniature"].build(tasks.make("fwe", 1, (0.5,), 2), 4000)
    word = count.question.text.split(" appear ")[0].split()[-1]
    assert count.question.expected == (str(count.text.removesuffix(count.question.text).count(word)),)


def test_a_document_as_haystack(builders: dict[str, Builder], tmp_path: Path) -> None:
    text = tmp_path / "own.md"
    text.write_text("# Title\n\nA first sentence. And a second one, naïve and long!\n\n" * 3 + "x" * 900)
    sample = tasks.make("niah_multikey_1", 1, (0.5,), 1, (text,))
    (prompt, _) = builders["tekken"].build(sample, 2000)
    assert "naïve and long" in prompt.text
    assert builders["tekken"].counter.count(prompt.text) == 2000


def test_a_pdf_as_haystack(builders: dict[str, Builder], tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(_pdf("The otter swims across the lake. A heron looks on."))
    sample = tasks.make("niah_single_1", 1, (0.5,), 1, (tmp_path / "a.pdf",))
    (prompt,) = builders["miniature"].build(sample, 800)
    assert prompt.text.count("The otter swims across the lake.") > 5
    (tmp_path / "empty.pdf").write_bytes(_pdf(""))
    with pytest.raises(UsageError, match="no text in them"):
        tasks.make("niah_single_1", 1, (0.5,), 1, (tmp_path / "empty.pdf",))


def _pdf(text: str) -> bytes:
    """The smallest PDF with one line of text."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + end


@pytest.mark.parametrize(
    ("name", "content"), [("a.pdf", b"%PDF"), ("a.docx", b"PK"), ("a.txt", b"\xff\xfe"), ("a.txt", b"  \n ")]
)
def test_a_document_that_is_none(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError):
        tasks.make("niah_single_1", 1, (0.5,), 1, (path,))


def test_a_task_that_needs_its_own_haystack(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot hide in a document"):
        tasks.make("vt", 1, (0.5,), 1, (tmp_path / "a.txt",))


def test_counters_agree(tokenizer_files: dict[str, Path]) -> None:
    path = tokenizer_files["miniature"]
    fast, exact = Counter(path, "fastokens"), Counter(path, "off")
    assert (fast.name, exact.name) == ("fastokens", "tokenizers")
    text = Builder(exact).build(tasks.make("niah_multikey_3", 1, (0.5,), 1), 20_000)[0].text
    assert fast.count(text) == exact.count(text) == 20_000


def test_a_fast_counter_that_disagrees_is_not_used(
    tokenizer_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(tokens._Exact):
        def __init__(self, path: Path) -> None:
            super().__init__(path.read_text())

        def count_all(self, texts):  # type: ignore[no-untyped-def]
            return [n + ("0x7fff" in text) for n, text in zip(super().count_all(texts), texts, strict=True)]

    monkeypatch.setitem(tokens._FAST, "fastokens", Wrong)
    counter = Counter(tokenizer_files["miniature"])
    counter.expect(1 << 20)
    assert counter.name == "tokenizers"
    assert "fastokens counts other than tokenizers" in counter.refused
    with pytest.raises(NemolabError, match="counts other"):
        Counter(tokenizer_files["miniature"], "fastokens")


def test_a_fast_counter_is_looked_for_only_when_it_is_worth_it(tokenizer_files: dict[str, Path]) -> None:
    counter = Counter(tokenizer_files["miniature"])
    builder = Builder(counter)
    builder.build(tasks.make("niah_single_1", 1), 2000)
    assert counter.name == "tokenizers"
    (prompt,) = builder.build(tasks.make("niah_single_1", 1), 250_000)
    assert counter.name == "fastokens"
    assert Counter(tokenizer_files["miniature"], "off").count(prompt.text) == 250_000


def test_a_fast_counter_that_errs_only_on_this_text_is_found(
    tokenizer_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder(Counter(tokenizer_files["miniature"], "fastokens"))
    monkeypatch.setattr(builder.counter, "agrees", lambda text: False)
    with pytest.raises(NemolabError, match="other than tokenizers"):
        builder.build(tasks.make("niah_single_1", 1), 1000)


def test_parts_that_do_not_add_up_are_an_error(builders: dict[str, Builder], monkeypatch: pytest.MonkeyPatch) -> None:
    counter = builders["miniature"].counter
    count = counter.count
    drift = iter(range(50, 500, 50))
    monkeypatch.setattr(counter, "count", lambda text: count(text) + (next(drift) if len(text) > 1000 else 0))
    with pytest.raises(NemolabError, match="do not add up"):
        Builder(counter).build(replace(tasks.make("niah_single_1", 1)), 1000)


@pytest.mark.parametrize("content", [b"{}", b"\x00", b"not json"])
def test_a_file_that_is_no_tokenizer(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        Counter(path)
    with pytest.raises(UsageError, match="cannot read"):
        Counter(tmp_path / "none.json")


def test_tasks_refuse_what_they_cannot_make() -> None:
    with pytest.raises(UsageError, match="no task"):
        tasks.make("niah", 1)
    with pytest.raises(UsageError, match="not depths"):
        tasks.make("vt", 1, (1.5,))
