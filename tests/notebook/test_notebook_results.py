"""Results: written once, compared in replay to the last digit, refused when JSON or a verdict cannot hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from nemolab.core.contract import Results, Unit
from nemolab.core.errors import NemolabError
from nemolab.core.finding import Finding, Severity
from nemolab.notebook import results


class Sample(Results):
    """Results of a made-up notebook."""

    rate: Annotated[float, Unit("tokens/s", "higher", noise=0.1)] = Field(description="speed")
    fits: bool = Field(True, description="fits")
    levels: list[float] = Field([], description="by level")
    text: str = Field("", description="text")


@pytest.fixture(autouse=True)
def _step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_STEP_FOLDER", str(tmp_path))
    monkeypatch.setenv("NEMOLAB_STEP", "04_load")
    monkeypatch.setenv("NEMOLAB_REPLAY", "0")


def test_live_they_are_written_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.publish(Sample(rate=0.1 + 0.2), [Finding("N-1", Severity.WARNING, "m", "f")])
    stored = json.loads((tmp_path / "04_load.results.json").read_text())
    assert stored["schema"] == 1
    assert stored["notebook"] == "04_load"
    assert stored["values"]["rate"] == {
        "value": 0.30000000000000004, "unit": "tokens/s", "better": "higher", "noise": 0.1, "help": "speed"
    }  # fmt: skip
    assert stored["findings"][0]["code"] == "N-1"
    assert "tokens/s" in capsys.readouterr().out


def test_replay_compares_and_never_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results.publish(Sample(rate=0.1 + 0.2))
    path = tmp_path / "04_load.results.json"
    before = path.stat().st_mtime_ns
    monkeypatch.setenv("NEMOLAB_REPLAY", "1")
    results.publish(Sample(rate=0.1 + 0.2))
    with pytest.raises(NemolabError, match=r"values\.rate\.value: 0\.30000000000000004 is in the file, 0\.3 was comp"):
        results.publish(Sample(rate=0.3))
    with pytest.raises(NemolabError, match="findings"):
        results.publish(Sample(rate=0.1 + 0.2), [Finding("N-1", Severity.WARNING, "m", "f")])
    assert path.stat().st_mtime_ns == before


def test_replay_without_a_file_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_REPLAY", "1")
    with pytest.raises(NemolabError, match="nothing to compare with"):
        results.publish(Sample(rate=1))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": 1, "levels": [1.0, float("-inf")]}, r"levels\[1\] is -inf"),
        ({"rate": 1, "text": "got nvapi-" + "a" * 30}, "values.text.value has the shape of a key"),
    ],
)
def test_unfit_values_are_refused_and_nothing_is_written(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    with pytest.raises(NemolabError, match=message) as caught:
        results.publish(Sample(**values))
    assert "nvapi" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_key_in_a_finding_is_refused() -> None:
    finding = Finding("N-1", Severity.WARNING, "the key hf_" + "a" * 30, "f")
    with pytest.raises(NemolabError, match=r"findings\[0\]\.message has the shape of a key"):
        results.publish(Sample(rate=1), [finding])


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match="subclass of"):
        results.publish({"rate": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="findings are"):
        results.publish(Sample(rate=1), ["bad"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"b": 1}, ["a is missing", "b is new"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ["a[1].b: 2 is in the file, 3 was computed"]),
        ({"a": True}, {"a": 1}, ["a: true is in the file, 1 was computed"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: [1] is in the file, [1, 2] was computed"]),
    ],
)
def test_differences_name_the_place(a: Any, b: Any, found: list[str]) -> None:
    assert list(results.differences(a, b)) == found
