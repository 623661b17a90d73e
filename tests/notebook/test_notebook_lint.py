"""The notebook linter: for each rule one notebook that breaks it, and only it; the mechanical fixes; copies."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nemolab.cli.notebooks import lint_notebooks
from nemolab.notebook import fix, source
from nemolab.notebook.lint import TITLES, lint

ROOT = Path(__file__).parents[2]
TEMPLATE = source.read(ROOT / "notebooks" / "_template.ipynb")
DOCS = ROOT / "docs" / "notebooks.md"

Break = Callable[[Any], Any]


def _cell(document: Any, name: str) -> Any:
    return next(cell for cell in document["cells"] if cell["id"] == name)


def _code(name: str, more: str) -> Break:
    return lambda d: _cell(d, name)["source"].append("\n" + more)


def _swap(name: str, old: str, new: str) -> Break:
    def swap(document: Any) -> None:
        text = "".join(_cell(document, name)["source"])
        assert old in text
        _cell(document, name)["source"] = [text.replace(old, new)]

    return swap


def _tag(name: str, tag: str) -> Break:
    return lambda d: _cell(d, name)["metadata"].setdefault("tags", []).append(tag)


def _rename(name: str, new: str) -> Break:
    return lambda d: _cell(d, name).update(id=new)


def _metadata(**values: Any) -> Break:
    return lambda d: d["metadata"].update(values)


def _lab(**values: Any) -> Break:
    return lambda d: d["metadata"]["nemolab"].update(values)


BROKEN: list[tuple[str, Break, str]] = [
    ("N002", lambda d: d.update(nbformat_minor=4), "format 4.4"),
    (
        "N002",
        lambda d: d["cells"].insert(1, {"cell_type": "raw", "id": "raw", "source": ["x"], "metadata": {}}),
        "cell 2",
    ),
    ("N003", _metadata(kernelspec={"name": "conda-env-x"}), "conda-env-x"),
    ("N004", lambda d: _cell(d, "verdict").update(execution_count=1), "execution count"),
    ("N004", lambda d: _cell(d, "verdict").update(outputs=[{"output_type": "stream", "text": "x"}]), "output"),
    ("N005", _metadata(widgets={"state": {}}), "metadata.widgets"),
    ("N005", lambda d: _cell(d, "verdict")["metadata"].update(execution={}), "metadata.execution"),
    ("N006", lambda d: _cell(d, "verdict").pop("id"), "no id"),
    ("N006", _rename("verdict", "3f2a91bc"), "3f2a91bc"),
    ("N006", _rename("verdict", "rates"), "used 2 times"),
    ("N007", _tag("verdict", "raises-exception"), "catch it"),
    ("N007", _tag("verdict", "hide-input"), "hide-input"),
    ("N008", _tag("verdict", "nbval-ignore-output"), "without a reason"),
    ("N008", _code("measure", "# NBVAL_SKIP"), "NBVAL_SKIP"),
    ("N009", _code("look", "nvapi-" + "a" * 30), "NVIDIA API key"),
    ("N009", _metadata(authors=["ghp_" + "a" * 36]), "metadata with the shape of a key"),
    ("N020", _swap("title", "# Measure a rate", "Measure a rate"), "does not start"),
    ("N020", _swap("title", "hashes.", "hashes. And more."), "exactly one sentence"),
    ("N020", _code("look", "# Another title"), "more than one title"),
    ("N021", _swap("title", "| Risk | one core is busy for a moment |\n", ""), "Needs, Takes, Leaves, Undo"),
    ("N021", _swap("title", "one core is busy for a moment", " "), "Risk is empty"),
    ("N022", _swap("look", "## Look", "## Results"), "Check, Do, Decide"),
    ("N023", lambda d: d["cells"].remove(_cell(d, "results-text")), "no text before"),
    ("N023", lambda d: _cell(d, "results-text").update(source=["### Results"]), "no text before"),
    ("N024", _code("look", "See [the ladder](41_nothing.ipynb)."), "41_nothing.ipynb"),
    ("N040", _code("verdict", "if:"), "not Python"),
    ("N041", _code("verdict", "\n".join(f"values = values or {i}" for i in range(12))), "lines of code in one cell"),
    ("N043", _code("verdict", "def f(): pass"), "f is defined here"),
    ("N043", _code("verdict", "f = lambda: 1"), "a lambda is given a name"),
    ("N044", _code("verdict", "%matplotlib inline"), "%matplotlib"),
    ("N044", _code("verdict", "!nvidia-smi"), "!"),
    ("N044", _code("verdict", "pip install x"), "pip"),
    ("N044", _code("verdict", "files = !ls"), "files = !"),
    ("N044", _code("verdict", "eval('1')"), "eval()"),
    ("N045", _code("verdict", "input('sure?')"), "waits for ever"),
    ("N046", _code("verdict", "values;"), "trailing"),
    ("N046", _code("verdict", "values"), "bare expression `values`"),
    ("N046", _code("verdict", "print(values)"), "print() goes around"),
    ("N046", _swap("rates", "rate_figure(table, p.wanted),", "rate_figure(table, p.wanted).show(),"), "fig.show()"),
    ("N047", _code("check-parameters", "import requests"), "imports requests"),
    ("N047", _code("check-parameters", "from nemolab import load, longctx"), "load and longctx"),
    ("N047", _code("check-parameters", "from nemolab.load import *"), "imports everything"),
    ("N048", _code("verdict", "show.note(str(unheard_of))"), "unheard_of is not defined"),
    ("N060", lambda d: _cell(d, "parameters")["metadata"].clear(), "0 cells are tagged"),
    ("N060", _swap("parameters", "3  # int: measurements a size", "3"), "repeats has no"),
    ("N060", _swap("parameters", "repeats = 3", "repeats = max(1, 3)"), "no literal"),
    ("N061", _lab(params="nemolab.notebook.example:Nothing"), "cannot import"),
    ("N061", _lab(results="nemolab.notebook.example:Rate"), "no subclass"),
    ("N062", _swap("parameters", "repeats = 3", "repeats = 4"), "repeats = 4, but 3"),
    ("N062", _swap("parameters", "# int:", "# float:"), "called float, but int"),
    ("N062", _swap("parameters", "measurements a size", "repeats"), "the help of repeats"),
    ("N062", _code("parameters", "extra = 1  # int: more"), "extra is not in"),
    ("N063", _code("parameters", 'api_key = ""  # str: the key'), "api_key would hold a secret"),
    ("N064", _swap("check-parameters", "globals()", "locals()"), "other arguments"),
    (
        "N064",
        _swap("check-parameters", "p = params.check(ExampleParams, globals())", "p = ExampleParams()"),
        "not call",
    ),
    ("N065", lambda d: _cell(d, "results")["metadata"].clear(), "0 cells are tagged"),
    ("N065", lambda d: d["cells"].append(d["cells"][-2] | {"id": "more"}), "not the last cell"),
    ("N065", _code("verdict", "results.publish(values)"), "called 2 times"),
    ("N066", _code("verdict", "wanted = 1"), "wanted is a parameter"),
]
ALONGSIDE = {  # what a fault cannot be made without
    "N060": {"N062", "N064"},
    "N061": {"N062", "N064"},
    "N062": set(),
    "N063": {"N062"},
    "N048": set(),
    "N064": set(),
    "N044": {"N040"},
    "N047": {"N041"},
    "N046": {"N041"},
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    shutil.copy(DOCS, tmp_path / "docs")
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


def _write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(("code", "break_it", "message"), BROKEN, ids=lambda v: v if isinstance(v, str) else "")
def test_each_rule_finds_its_fault(place: Path, code: str, break_it: Break, message: str) -> None:
    document = copy.deepcopy(TEMPLATE)
    break_it(document)
    findings = lint([_write(place / "41_try_this.ipynb", document)], base=place)
    mine = [finding for finding in findings if finding.code == code]
    assert any(message in finding.message for finding in mine), findings
    assert {finding.code for finding in findings} <= {code} | ALONGSIDE.get(code, set())
    assert all(finding.fix and (finding.where or "").startswith("41_try_this.ipynb") for finding in findings)


def test_every_rule_has_a_fault_here_and_a_line_in_the_docs() -> None:
    assert set(TITLES) - {code for code, _, _ in BROKEN} == {"N001", "N010", "N042", "N080"}  # tested below
    text = DOCS.read_text()
    assert [code for code, title in TITLES.items() if f"| {code} | {title} |" not in text] == []


def test_the_template_and_all_notebooks_here_are_clean(place: Path) -> None:
    assert lint([_write(place / "41_try_this.ipynb", TEMPLATE)]) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 1}', '{"nbformat": 3, "worksheets": []}'])
def test_a_file_that_is_no_notebook_is_one_finding(place: Path, text: str) -> None:
    path = place / "41_try_this.ipynb"
    path.write_text(text)
    assert [finding.code for finding in lint([path])] == ["N001"]


def test_names_of_files(place: Path) -> None:
    findings = lint([_write(place / "Untitled1.ipynb", TEMPLATE)])
    assert [finding.code for finding in findings] == ["N010"]


def test_long_notebooks_and_copies_are_found(place: Path) -> None:
    document: Any = copy.deepcopy(TEMPLATE)
    for number in range(10):
        text, code = copy.deepcopy(_cell(document, "do")), copy.deepcopy(_cell(document, "measure"))
        text.update(id=f"more-{number}", source=["Again, to be longer."])
        code.update(id=f"code-{number}", source=[f"show.note('{number}, {line}')\n" for line in range(12)])
        document["cells"][-2:-2] = [text, code]
    findings = lint([_write(place / "41_try_this.ipynb", document)])
    assert [finding.code for finding in findings] == ["N042"]
    findings = lint([_write(place / name, TEMPLATE) for name in ("42_try_this.ipynb", "43_try_that.ipynb")])
    assert [finding.code for finding in findings] == ["N080"]
    assert "43_try_that.ipynb" in findings[-1].message


def test_names_that_a_statement_binds_are_known(place: Path) -> None:
    document: Any = copy.deepcopy(TEMPLATE)
    more = (
        "pairs = [(a, b) for a, b in zip(p.sizes_mib, rates)]\n"
        "for size, rate in pairs:\n    show.note(f'{size} {max(rate.rates, key=lambda r: -r)}')\n"
        "if (half := p.wanted / 2):\n    show.note(str(half))\n"
        "best = await show.later(rate)\n"
        "async with show.client() as client:\n    show.note(str([x async for x in client]))\n"
        "show.note(str(best))"
    )
    _code("verdict", more)(document)
    _cell(document, "verdict")["source"] = (
        _cell(document, "verdict")["source"][:1] + _cell(document, "verdict")["source"][4:]
    )
    codes = {f.code for f in lint([_write(place / "41_try_this.ipynb", document)])}
    assert "N040" not in codes
    assert "N048" in codes  # `notes`, whose line was cut
    messages = [f.message for f in lint([place / "41_try_this.ipynb"]) if f.code == "N048"]
    assert messages == ["notes is not defined here"]


def test_fix_puts_the_mechanical_right(place: Path) -> None:
    document: Any = copy.deepcopy(TEMPLATE)
    for break_it in (
        _metadata(kernelspec={"name": "x"}, widgets={"state": {}}),
        _rename("verdict", "3f2a91bc"),
        _rename("look", "rates"),
        _swap("parameters", "repeats = 3", "repeats = 4"),
        lambda d: d.update(nbformat_minor=4),
        lambda d: _cell(d, "results").update(outputs=[{"output_type": "stream"}], execution_count=3),
        lambda d: _cell(d, "results")["metadata"].update(execution={}, papermill={}),
    ):
        break_it(document)
    path = _write(place / "41_try_this.ipynb", document)
    assert len(lint([path])) >= 8
    assert fix.fix(path)
    assert lint([path]) == []
    ids = [cell["id"] for cell in source.read(path)["cells"]]
    assert ids == ["title", "parameters", "check", "check-parameters", "do", "measure", "rates", "look-code", "decide",
                   "decide-code", "results-text", "results"]  # fmt: skip
    assert not fix.fix(path)


def test_the_template_is_as_fix_writes_it() -> None:
    path = ROOT / "notebooks" / "_template.ipynb"
    assert fix.text_of(fix.fixed_document(source.read(path))) == path.read_text()


def test_the_command_prints_places_and_fixes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document: Any = copy.deepcopy(TEMPLATE)
    _code("verdict", "print(values)")(document)
    path = _write(place / "41_try_this.ipynb", document)
    monkeypatch.chdir(place.parent)
    runner = CliRunner()
    done = runner.invoke(lint_notebooks, ["notebooks"], standalone_mode=False)
    assert done.return_value == 1
    assert "notebooks/41_try_this.ipynb: cell 10 (verdict): N046 print() goes around `show`" in done.output
    assert "1 notebook, 1 finding" in done.output
    done = runner.invoke(lint_notebooks, ["--json", str(path)], standalone_mode=False)
    assert json.loads(done.output)["findings"][0]["code"] == "N046"
    _write(path, TEMPLATE)
    assert runner.invoke(lint_notebooks, [str(path)], standalone_mode=False).return_value == 0
    done = runner.invoke(lint_notebooks, ["nothing.ipynb"], standalone_mode=False)
    assert "no such notebook or folder" in str(done.exception)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from nemolab.cli.notebooks import lint_notebooks; from pathlib import Path\n"
        "from nemolab.notebook.lint import lint; lint([Path('notebooks/_template.ipynb')])\n"
        "heavy = ('pandas', 'plotly', 'nbformat', 'papermill', 'numpy', 'IPython', 'openai')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
