"""What a notebook shows: one look, the same bytes for the same values, and nothing of a model's as HTML."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from nemolab.core.errors import NemolabError
from nemolab.core.finding import Finding, Severity
from nemolab.core.status import Status
from nemolab.notebook import look, show, values
from nemolab.notebook.html import MIME as TABLE
from nemolab.notebook.html import Table

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The outputs that are emitted."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(show, "emit", found.append)
    return found


def _figure() -> go.Figure:
    return go.Figure([go.Scatter(x=pd.Series([1, 2]), y=[0.1, float("nan")], name="a"), go.Bar(x=[1], y=[2])])


def test_a_figure_has_one_look_a_text_and_its_table(shown: list[dict[str, Any]]) -> None:
    show.figure(_figure(), title="Rates", alt="They fall.", table=pd.DataFrame({"x": [1]}), units={"x": "s"})
    figure, table = shown
    assert figure["text/plain"] == "Figure: Rates\nThey fall."
    layout = figure[show.PLOTLY]["layout"]
    assert (layout["width"], layout["height"]) == (look.WIDTH, look.HEIGHT)
    assert layout["meta"] == {"alt": "They fall."}
    assert layout["title"]["text"] == "Rates"
    assert set(layout["template"]["data"]) == {"scatter", "bar"}
    assert figure[show.PLOTLY]["data"][0]["x"] == [1, 2]  # numbers, not base64
    assert figure[show.PLOTLY]["data"][0]["y"] == [0.1, None]
    assert table[TABLE]["columns"] == ["x (s)"]


def test_figures_are_the_same_bytes_each_time_and_leave_theirs_alone(shown: list[dict[str, Any]]) -> None:
    fig = _figure()
    before = fig.to_json()
    show.figure(fig, title="t", alt="a")
    show.figure(_figure(), title="t", alt="a")
    assert json.dumps(shown[0]) == json.dumps(shown[1])
    assert fig.to_json() == before


def test_series_differ_without_colour() -> None:
    data = look.template().to_plotly_json()["data"]
    lines = [(s["line"]["dash"], s["marker"]["symbol"]) for s in data["scatter"]]
    patterns = [s["marker"]["pattern"]["shape"] for s in data["bar"]]
    assert len(set(lines)) == len(lines) == len(look.COLOURS)
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize("kind", ["scattergl", "scatter3d", "sankey", "waterfall", "indicator"])
def test_what_the_reports_cannot_draw_is_refused(kind: str, shown: list[dict[str, Any]]) -> None:
    with pytest.raises(NemolabError, match=f"cannot draw {kind}"):
        show.figure(go.Figure({"data": [{"type": kind}]}), title="t", alt="a")
    assert shown == []


@pytest.mark.parametrize(("title", "alt"), [("t", ""), ("t", "  "), ("", "a")])
def test_a_figure_without_words_is_refused(title: str, alt: str) -> None:
    with pytest.raises(NemolabError, match="text alternative"):
        show.figure(_figure(), title=title, alt=alt)


def test_model_text_is_plain_text_only(shown: list[dict[str, Any]]) -> None:
    show.text(HOSTILE + "\x1b[2J", label="The model")
    assert shown == [{"text/plain": f"The model:\n{HOSTILE}\\x1b[2J"}]


def test_long_text_says_what_is_left_out(shown: list[dict[str, Any]]) -> None:
    show.text("a" * 5000, limit=100)
    assert shown[0]["text/plain"] == "a" * 100 + "\n[4,900 more characters]"


def test_text_from_outside_is_escaped_everywhere(shown: list[dict[str, Any]]) -> None:
    show.table([{HOSTILE: HOSTILE}], caption=HOSTILE)
    show.note(HOSTILE)
    show.verdict(True, HOSTILE)
    show.findings([Finding(HOSTILE, Severity.ERROR, HOSTILE, HOSTILE, HOSTILE, where=HOSTILE)])
    for output in shown:
        assert "<script" not in output["text/html"]
        assert "<img" not in output["text/html"]
        assert HOSTILE in output["text/plain"]


def test_tables_align_numbers_name_units_and_count_the_rest() -> None:
    frame = pd.DataFrame({"n": range(3), "ttft": [0.12345, 1234.5, None], "who": ["a", None, "c"]})
    table = show.table_of(frame, units={"ttft": "ms"}, limit=2)
    assert table.header == ("n", "ttft (ms)", "who")
    assert table.rows == (("0", "0.1235", "a"), ("1", "1,234", "-"))  # 1234.5 rounds to even
    assert table.numeric == (True, True, False)
    assert table.left_out == 1
    assert "1 more row is not shown." in table.as_text()
    assert "1 more row is not shown." in table.as_html()


def test_an_index_with_a_name_becomes_a_column() -> None:
    frame = pd.DataFrame({"v": [1]}, index=pd.Index(["a"], name="level"))
    assert show.table_of(frame).header == ("level", "v")


def test_units_of_a_column_that_is_not_there_are_refused() -> None:
    with pytest.raises(NemolabError, match="not there: ms"):
        show.table_of([{"a": 1}], units={"ms": "ms"})


def test_a_table_survives_its_document() -> None:
    table = show.table_of([{"a": 1, "b": "x"}], caption="c")
    assert Table.of_document(json.loads(json.dumps(table.as_document()))) == table


@pytest.mark.parametrize(
    ("status", "word"),
    [(True, "PASSED"), (False, "FAILED"), (Status.WAITING, "WAITING FOR SIGN-OFF"), ("error", "ERROR")],
)
def test_a_verdict_is_a_word_as_well_as_a_colour(status: Any, word: str, shown: list[dict[str, Any]]) -> None:
    show.verdict(status, "why")
    assert f"<strong>{word}</strong> why" in shown[0]["text/html"]
    assert shown[0]["text/plain"] == f"{word}: why"
    assert shown[0][show.VERDICT]["status"] == word.lower()


def test_findings_come_gravest_first(shown: list[dict[str, Any]]) -> None:
    show.findings([Finding("A", Severity.INFO, "a"), Finding("B", Severity.ERROR, "b", "f")])
    assert [f["code"] for f in shown[0][show.FINDINGS]["findings"]] == ["B", "A"]
    show.findings([])
    assert shown[1]["text/plain"] == "No findings."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1e-9, "1.000e-09"), (0.00123456, "0.001235"), (12.3456, "12.35"), (9999, "9999"),
        (1048576, "1,048,576"), (2.5e9, "2.500e+09"), (True, "yes"), (None, "-"), (float("nan"), "-"),
        (float("inf"), "inf"), ([1, 2.5], "1, 2.500"), (-5.5, "-5.500"),
    ],
)  # fmt: skip
def test_numbers_have_one_spelling(value: Any, text: str) -> None:
    assert values.cell(value) == text
