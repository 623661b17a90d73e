"""Parameters: what papermill's command line makes of them, one error for all faults, what a cell declares."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field, model_validator

from nemolab.core.contract import Params
from nemolab.core.errors import UsageError
from nemolab.notebook import fix, params
from nemolab.notebook.spelling import limits, type_of


class Sample(Params):
    """One field of each kind."""

    streams: int = Field(3, ge=1, le=64, description="requests in flight")
    thinking: bool = Field(False, description="let the model think")
    levels: list[int] = Field([1, 2], description="levels of load")
    mode: Literal["open", "closed"] = Field("closed", description="how load is made")
    label: str = Field("x", description="text")
    share: float = Field(1.0, gt=0, description="a share")
    note: str | None = Field(None, description="text or nothing")
    limit: int | None = Field(None, description="a number or nothing")

    @model_validator(mode="after")
    def _together(self) -> Sample:
        if self.share > self.streams:
            raise ValueError("share is above streams")
        return self


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(params, "_checked", set())


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("streams", "8", 8),  # papermill -r
        ("streams", 8.0, 8),  # papermill -p streams 8e0
        ("thinking", "true", True),  # papermill -p keeps it text
        ("thinking", "False", False),
        ("levels", "[1, 4]", [1, 4]),
        ("levels", (1, 4), [1, 4]),
        ("share", 1, 1.0),
        ("share", "2.5e-1", 0.25),
        ("label", "true", "true"),
        ("note", "None", "None"),
        ("limit", "null", None),
        ("limit", "7", 7),
        ("mode", "open", "open"),
    ],
)
def test_what_the_command_line_made_of_a_value_is_read_right(name: str, given: Any, read: Any) -> None:
    found = getattr(params.bind(Sample, {name: given}), name)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("streams", True),
        ("streams", 1.5),
        ("streams", "007"),
        ("streams", "many"),
        ("streams", 65),
        ("thinking", 1),
        ("thinking", "yes"),
        ("thinking", None),
        ("levels", "1,2"),
        ("levels", 1),
        ("label", 7),  # 007 became 7 on the way: the zeros are lost, so it is no text
        ("label", None),
        ("share", float("nan")),
        ("share", float("inf")),
        ("share", "nan"),
        ("mode", "half-open"),
    ],
)
def test_a_wrong_value_is_refused_with_name_value_and_help(name: str, given: Any) -> None:
    with pytest.raises(UsageError) as caught:
        params.bind(Sample, {name: given})
    message = str(caught.value)
    assert f"{name} = {given!r}" in message
    assert str(Sample.model_fields[name].description) in message


def test_limits_are_named() -> None:
    with pytest.raises(UsageError, match=r"int, >= 1, <= 64; requests in flight"):
        params.bind(Sample, {"streams": 0})


def test_everything_wrong_comes_in_one_error() -> None:
    with pytest.raises(UsageError) as caught:
        params.bind(Sample, {"streams": "many", "mode": "x", "labell": 1, "label": 2})
    message = str(caught.value)
    assert "4 parameters are wrong" in message
    assert "labell: unknown parameter, did you mean label?" in message
    assert all(f"\n  {name}" in message for name in ("streams", "mode", "label ="))


def test_a_rule_over_several_parameters_is_kept() -> None:
    with pytest.raises(UsageError, match="share is above streams"):
        params.bind(Sample, {"share": 9, "streams": 1})


def test_check_takes_its_fields_from_the_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {**Sample().model_dump(), "streams": 5, "pd": params, "_i1": "x", "In": [""], "LEVELS": (1, 2)}
    found = params.check(Sample, namespace)
    assert found.streams == 5
    shown = capsys.readouterr().out
    assert "1 of 8 parameters differ from their defaults" in shown
    assert "streams    5      3" in shown


def test_check_shows_that_all_is_default(capsys: pytest.CaptureFixture[str]) -> None:
    params.check(Sample, Sample().model_dump())
    assert capsys.readouterr().out == "All 8 parameters have their default values.\n"


def test_a_misspelled_papermill_parameter_is_refused_once(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {**Sample().model_dump(), "stream": 9}
    with pytest.raises(UsageError, match="stream: unknown parameter, did you mean streams"):
        params.check(Sample, namespace)
    del namespace["stream"]
    params.check(Sample, namespace)
    params.check(Sample, {**namespace, "later": 1})  # the notebook's own variables, when the cell is run again


def test_a_cell_that_was_not_run_is_named() -> None:
    with pytest.raises(UsageError, match="the parameters cell does not set mode, share"):
        params.check(Sample, {k: v for k, v in Sample().model_dump().items() if k not in ("mode", "share")})


def test_declarations_are_parsed() -> None:
    found = params.parse(
        'base_url = ""  # str: where the server answers: a URL\nlevels = [1,\n  2]  # list[int]: levels\nn = -1'
    )
    assert [(d.name, d.default, d.type, d.help) for d in found] == [
        ("base_url", "", "str", "where the server answers: a URL"),
        ("levels", [1, 2], "list[int]", "levels"),
        ("n", -1, "", ""),
    ]


@pytest.mark.parametrize("code", ["x = f(1)", "x = y = 1", "import os", "x += 1", "x: int = 1", "1x = 2", "x = a.b"])
def test_what_is_no_declaration_is_refused(code: str) -> None:
    with pytest.raises(UsageError):
        params.parse(code)


def test_the_cell_written_from_a_model_declares_the_model() -> None:
    for item in params.parse(fix.parameters_code(Sample)):
        field = Sample.model_fields[item.name]
        assert (item.default, item.type, item.help) == (field.default, type_of(field), field.description)
    assert limits(Sample.model_fields["share"]) == "> 0"
