"""A runbook that is wrong is refused before anything starts: file, line, and the nearest right spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tinylab import TinyLab, notebook

from nemolab.core.errors import UsageError
from nemolab.runbook import plan, spec

GOOD = """\
title: A book
purpose: to test
parameters:
  count: {type: int, default: 2, min: 1, max: 9, help: how many}
  size: {type: str, default: small, choices: [small, large], help: how large}
steps:
  - id: first
    notebook: tiny
    with: {n: "${count}", text: "n is ${count}, $${not} a reference"}
    expect: {total: ">= 1", ok: true, label: "in [small, large]"}
  - id: second
    notebook: tiny
    with: {n: 3, text: "${first.base_url}"}
    timeout: 2 min
    when: {size: small}
    on_fail: tiny
"""


@pytest.fixture(autouse=True)
def _here(lab: TinyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMOLAB_ROOT", str(lab.root))
    lab.write("tiny", notebook())


def load(lab: TinyLab, text: str, **sets: Any) -> plan.Plan:
    path = lab.root / "runbooks" / "book.yaml"
    path.write_text(text)
    return plan.make(spec.load(path), sets)


def test_good(lab: TinyLab) -> None:
    made = load(lab, GOOD, count="3")
    first, second = made.steps
    assert first.parameters({}) == {"n": 3, "text": "n is 3, ${not} a reference", "rates": [1.0], "api_key_env": ""}
    assert (second.needs, second.step.timeout, second.skip) == (("first",), 120.0, "")
    assert second.parameters({"first": {"base_url": "http://x"}})["text"] == "http://x"
    assert load(lab, GOOD, size="large").steps[1].skip == "it runs when size is small, and size is large"


@pytest.mark.parametrize(
    ("before", "after", "line", "says"),
    [
        ("purpose: to test", "purpos: to test", 2, "unknown key 'purpos'\n  fix: did you mean 'purpose'?"),
        ("purpose: to test", "", 1, "purpose is missing"),
        ("timeout: 2 min", "timout: 2 min", 14, "unknown key 'timout'\n  fix: did you mean 'timeout'?"),
        ("timeout: 2 min", "timeout: soon", 14, "steps.1.timeout: should be a duration such as 60s"),
        ("timeout: 2 min", "timeout: 2:30", 14, "reads as a base-60 number; quote it"),
        ("timeout: 2 min", "service: yes", 14, "reads as true or false in some YAML readers"),
        ("purpose: to test", "purpose: to test (a/b#1, #2)", 2, "'#2' and what follows is read as a comment; quote"),
        ("timeout: 2 min", "timeout: 1e2", 14, "'1e2' reads as text in YAML 1.1"),
        ("timeout: 2 min", "service: 1", 14, "steps.1.service: should be a valid boolean, not 1"),
        ("timeout: 2 min", "with: {n: 4}", 14, "key 'with' stands here twice"),
        ("id: second", "id: first", 11, "two steps are called 'first'"),
        ("id: second", "id: count", 11, "'count' is a step and a parameter"),
        ("id: second", "id: Second!", 11, "is not a name of small letters"),
        ("id: first", "id: first\n    needs: [second]", 7, "a cycle: 'first' needs 'second' needs 'first'"),
        ("id: second", "id: second\n    needs: [frist]", 12, "unknown step 'frist'\n  fix: did you mean 'first'?"),
        ("on_fail: tiny", "on_fail: tinny", 16, "no notebook 'tinny'\n  fix: did you mean 'tiny'?"),
        ("notebook: tiny\n    with: {n: 3", "notebook: tin\n    with: {n: 3", 12, "no notebook 'tin'"),
        ("notebook: tiny\n    with: {n: 3", "notebook: ../tiny\n    with: {n: 3", 12, "no notebook '../tiny'"),
        ("{n: 3,", "{m: 3,", 13, "takes no parameter 'm'"),
        ("{n: 3,", "{n: three,", 13, "n = 'three'"),
        ("{n: 3,", "{n: 3000,", 13, "n = 3000"),
        ("{n: 3,", "{n: .nan,", 13, "n = nan"),
        ("{n: 3,", "{api_key: x, n: 3,", 13, "parameter 'api_key' would hold a secret"),
        ("{n: 3,", "{text: nvapi-" + "a" * 30 + ", n: 3}  #", 13, "this has the shape of a key (NVIDIA API key)"),
        ("{n: 3,", "{n: '${first.base_url}',", 13, "does not have the type of 'n'"),
        ("${first.base_url}", "${frist.base_url}", 13, "unknown step in ${frist.base_url}"),
        ("${first.base_url}", "${first.base_uri}", 13, "publishes no 'base_uri'\n  fix: did you mean 'base_url'?"),
        ("${first.base_url}", "${cuont}", 13, "unknown parameter in ${cuont}\n  fix: did you mean 'count'?"),
        ("${first.base_url}", "${first.base_url", 13, "is no reference"),
        ('total: ">= 1"', 'total: ">= one"', 10, "'>=' wants a number, not 'one'"),
        ('total: ">= 1"', 'totals: ">= 1"', 10, "publishes no result 'totals'\n  fix: did you mean 'total'?"),
        ('total: ">= 1"', "total: fast", 10, "total: 'fast' is text, and this is a number"),
        ("ok: true", 'ok: ">= 1"', 10, "ok: '>=' wants a number, and this is true or false"),
        ("[small, large]\"}", "[small, tiny]\"}", 10, "label: 'tiny' is none of 'large', 'small'"),
        ("when: {size: small}", "when: {sise: small}", 15, "unknown parameter 'sise'"),
        ("default: 2, min", "default: 0, min", 4, "default of 'count': 0 is under the minimum, 1"),
        ("default: 2, min", "default: two, min", 4, "default of 'count': 'two' is not a whole number"),
        ("  count:", "  hf_token: {type: str, default: x, help: y}\n  count:", 4, "would hold a secret"),
        ("title: A book", "title: [A book", 1, "not YAML"),
    ],
)  # fmt: skip
def test_refused(lab: TinyLab, before: str, after: str, line: int, says: str) -> None:
    assert GOOD.count(before) == 1
    with pytest.raises(UsageError) as caught:
        load(lab, GOOD.replace(before, after))
    message = str(caught.value)
    assert says in message
    if says != "not YAML":
        assert message.startswith(f"{lab.root}/runbooks/book.yaml:{line}: "), message
    assert "aaaa" not in message


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"cuont": "3"}, "unknown parameter 'cuont'\n  fix: did you mean 'count'?"),
        ({"count": "many"}, "count: 'many' is not a whole number"),
        ({"count": "true"}, "count: True is not a whole number"),
        ({"count": "10"}, "count: 10 is over the maximum, 9"),
        ({"size": "larg"}, "'larg' is none of small, large; did you mean 'large'?"),
    ],
)
def test_set_is_typed_by_the_runbook(lab: TinyLab, sets: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(lab, GOOD, **sets)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("str", "007", "007"),
        ("str", "true", "true"),
        ("int", "7", 7),
        ("float", "1e3", 1000.0),
        ("float", "3", 3.0),
        ("bool", "true", True),
        ("list", "[1, 2.5, a]", [1, 2.5, "a"]),
    ],
)
def test_typed_text(kind: Any, text: str, value: Any) -> None:
    parsed = spec.Parameter(type=kind, default=value, help="").parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_missing_file_names_the_nearest(lab: TinyLab) -> None:
    load(lab, GOOD)
    with pytest.raises(UsageError, match="did you mean 'book'"):
        spec.find("boook")
    with pytest.raises(UsageError, match=r"did you mean 'book.yaml'"):
        spec.load(spec.find("runbooks/boook.yaml"))


def test_order_is_the_written_one_where_it_may(lab: TinyLab) -> None:
    steps = [("c", "[a]"), ("a", "[]"), ("b", "[]")]
    text = "title: t\npurpose: p\nsteps:\n" + "".join(
        f"  - {{id: {name}, notebook: tiny, needs: {needs}}}\n" for name, needs in steps
    )
    made = load(lab, text)
    assert [(s.id, s.name) for s in made.steps] == [("a", "02_a"), ("c", "01_c"), ("b", "03_b")]


def test_until_skips_the_rest(lab: TinyLab) -> None:
    path = Path(lab.root / "runbooks" / "book.yaml")
    path.write_text(GOOD)
    made = plan.make(spec.load(path), {}, until="first")
    assert [step.skip for step in made.steps] == ["", "not asked for (--until)"]
    with pytest.raises(UsageError, match="did you mean 'second'"):
        plan.make(spec.load(path), {}, until="secnd")
