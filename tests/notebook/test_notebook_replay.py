"""Recorded calls: what makes a key, what a replay reads, and what it says when nothing matches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from nemolab.core.errors import NemolabError
from nemolab.notebook import replay


class Stage(BaseModel):
    """A pydantic value."""

    level: int
    times: tuple[float, ...]


@dataclass(frozen=True)
class Ask:
    """A dataclass argument."""

    url: str
    levels: tuple[int, ...]


calls: list[Any] = []


def measure(ask: Ask, repeat: int = 1, progress: Callable[[int], None] | None = None) -> list[Stage]:
    """Count calls."""
    calls.append(ask)
    return [Stage(level=level, times=(0.1 + 0.2,) * repeat) for level in ask.levels]


async def measure_async(level: int) -> Stage:
    calls.append(level)
    return Stage(level=level, times=(1 / 3,))


def count() -> int:
    calls.append(None)
    return len(calls)


ASK = Ask("http://127.0.0.1:1/v1", (1, 2))


@pytest.fixture(autouse=True)
def _live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_STEP_FOLDER", str(tmp_path))
    monkeypatch.setenv("NEMOLAB_STEP", "04_load")
    monkeypatch.setenv("NEMOLAB_REPLAY", "0")
    monkeypatch.delenv("NEMOLAB_PROGRESS", raising=False)
    _new_kernel(monkeypatch)
    calls.clear()


def _new_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_calls", type(replay._calls)())
    monkeypatch.setattr(replay, "_announced", set())


@pytest.fixture
def to_replay(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Switches to replay, in a new kernel."""

    def switch() -> None:
        _new_kernel(monkeypatch)
        monkeypatch.setenv("NEMOLAB_REPLAY", "1")

    return switch


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "recordings" / "04_load").iterdir())


def test_a_replay_reads_what_was_measured_and_calls_nothing(tmp_path: Path, to_replay: Callable[[], None]) -> None:
    live = replay.recorded(measure, ignore=("progress",))(ASK, repeat=2, progress=print)
    stored = json.loads(_files(tmp_path)[0].read_text())
    assert stored["function"].endswith(".measure")
    assert stored["recorded"].startswith("20")
    to_replay()
    again = replay.recorded(measure, ignore=("progress",))(ASK, 2, progress=lambda _: None)
    assert again == live
    assert again[0].times == (0.30000000000000004,) * 2
    assert len(calls) == 1


def test_async_functions_are_recorded_too(to_replay: Callable[[], None]) -> None:
    live = asyncio.run(replay.recorded(measure_async)(3))
    to_replay()
    assert asyncio.run(replay.recorded(measure_async)(3)) == live
    assert calls == [3]


def test_a_repeated_measurement_is_another_one(tmp_path: Path, to_replay: Callable[[], None]) -> None:
    wrapped = replay.recorded(count)
    assert [wrapped(), wrapped()] == [1, 2]
    assert len(_files(tmp_path)) == 2
    to_replay()
    wrapped = replay.recorded(count)
    assert [wrapped(), wrapped()] == [1, 2]
    with pytest.raises(NemolabError, match="called more often than it was recorded"):
        wrapped()


def test_other_arguments_are_named(to_replay: Callable[[], None]) -> None:
    replay.recorded(measure)(ASK)
    to_replay()
    with pytest.raises(NemolabError, match=r"other arguments: repeat was 1, is 5") as caught:
        replay.recorded(measure)(ASK, repeat=5)
    assert "ask" not in str(caught.value).split("other arguments")[1]


def test_a_changed_source_is_named(monkeypatch: pytest.MonkeyPatch, to_replay: Callable[[], None]) -> None:
    replay.recorded(measure)(ASK)
    to_replay()
    source = "def measure(ask, repeat=1, progress=None):\n    return []\n"
    monkeypatch.setattr(replay.inspect, "getsource", lambda _: source)
    with pytest.raises(NemolabError, match=r"the source of .*measure changed since it was recorded"):
        replay.recorded(measure)(ASK)


def test_comments_docstrings_and_layout_are_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for source in (
        "def f(a):\n    'x'\n    return a",
        "def f( a ):  # why\n    'y'\n\n    return (a)",
        "def f(a): return a",
    ):
        monkeypatch.setattr(replay.inspect, "getsource", lambda _, text=source: text)
        digests.add(replay._source_digest(measure))
    assert len(digests) == 1


def test_what_newer_pythons_add_to_the_syntax_tree_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    here = replay._source_digest(measure)
    whole = replay.ast.parse

    def newer(source: str) -> replay.ast.Module:
        tree = whole(source)
        for node in replay.ast.walk(tree):
            if isinstance(node, replay.ast.FunctionDef):
                node.type_params = []  # as 3.12 has it
        return tree

    monkeypatch.setattr(replay.ast, "parse", newer)
    monkeypatch.setattr(replay.ast.FunctionDef, "_fields", (*replay.ast.FunctionDef._fields, "type_params"))
    assert replay._source_digest(measure) == here


def test_nothing_recorded_is_said(to_replay: Callable[[], None]) -> None:
    to_replay()
    with pytest.raises(NemolabError, match="measure was not recorded"):
        replay.recorded(measure)(ASK)
    assert calls == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d["value"][0].update(level=9), "the recording was edited"),
        (lambda d: d.pop("value"), "the recording is damaged"),
        (lambda d: d.update(value=[], value_sha256="0"), "the recording was edited"),
    ],
)
def test_a_tampered_recording_is_refused(
    tmp_path: Path, to_replay: Callable[[], None], damage: Callable[[Any], None], message: str
) -> None:
    replay.recorded(measure)(ASK)
    path = _files(tmp_path)[0]
    document = json.loads(path.read_text())
    damage(document)
    path.write_text(json.dumps(document))
    to_replay()
    with pytest.raises(NemolabError, match=message):
        replay.recorded(measure)(ASK)


def test_a_truncated_recording_is_refused(tmp_path: Path, to_replay: Callable[[], None]) -> None:
    replay.recorded(measure)(ASK)
    path = _files(tmp_path)[0]
    path.write_text(path.read_text()[:-20])
    to_replay()
    with pytest.raises(NemolabError, match="the recording is damaged"):
        replay.recorded(measure)(ASK)


def test_a_key_in_the_value_is_not_stored(tmp_path: Path) -> None:
    def leak() -> str:
        return "nvapi-" + "a" * 30

    with pytest.raises(NemolabError, match="NVIDIA API key") as caught:
        replay.recorded(leak)()
    assert "nvapi" not in str(caught.value)
    assert not list(tmp_path.rglob("*.json"))


def test_an_argument_that_is_no_question_must_be_ignored() -> None:
    with pytest.raises(NemolabError, match=r'pass ignore=\("progress",\)'):
        replay.recorded(measure)(ASK, progress=print)


def test_functions_that_cannot_be_recorded_are_refused() -> None:
    def silent(a):  # type: ignore[no-untyped-def]
        return a

    for function, message in ((silent, "does not say what it returns"), (lambda: 1, "no named function")):
        with pytest.raises(NemolabError, match=message):
            replay.recorded(function)


def test_the_banner_goes_to_the_terminal_once_and_into_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to_replay: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    wrapped = replay.recorded(count)
    wrapped(), wrapped()
    to_replay()
    monkeypatch.setenv("NEMOLAB_PROGRESS", str(tmp_path / "progress.jsonl"))
    wrapped = replay.recorded(count)
    wrapped(), wrapped()
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert [line["label"].startswith("Replay: values recorded on 20") for line in lines] == [True]
    assert "nothing was measured" in lines[0]["label"]
    assert capsys.readouterr().out == ""
