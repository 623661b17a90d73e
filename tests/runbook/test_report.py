"""Pages of a run: one file each, complete, deterministic, small, and nothing in them that the lab did not make."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
import shlex
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import sample_run
from nbformat.v4 import new_code_cell, new_output
from plotly.offline import get_plotlyjs_version

from nemolab.core import paths
from nemolab.notebook import show
from nemolab.runbook import commands, plan, record, render, report, spec
from nemolab.runbook.cells import markdown
from nemolab.runbook.figures import chart, plotly_js, script_json
from nemolab.runbook.views import result_rows

EVIL = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1></script></template>"


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("passed")
    sample_run.passed(folder)
    report.write(folder)
    return folder


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    sample_run.mixed(folder)
    report.write(folder)
    return folder


def index(folder: Path) -> str:
    return (folder / "index.html").read_text()


def text_of(html: str) -> str:
    """What a reader sees of a page, without scripts and styles."""
    html = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_page_for_the_run_and_one_for_each_step_that_has_a_notebook(passed: Path, mixed: Path) -> None:
    assert [p.name for p in report.write(passed)] == [
        "index.html", "01_host.html", "02_serve.html", "03_probe.html", "04_load.html",
    ]  # fmt: skip
    assert sorted(p.name for p in mixed.glob("*.html")) == [
        "01_host.html", "02_load.html", "03_broken.html", "04_slow.html", "09_wait.html", "index.html",
    ]  # fmt: skip


def test_the_index_alone_tells_everything(passed: Path) -> None:
    html, text = index(passed), text_of(index(passed))
    for expected in (
        "Quickstart: a real serving stack", "✓ Passed", "4 of 4 steps passed; 3 of 3 requirements met.",
        "1,184 tokens/s", "&gt;= 100", "= 0", "Output tokens a second at the best stage",
        "L-007", "Cap concurrency at 8, or raise the limit.", "measured in this run",
        "rises from 41 ms at 1 request", "ttft_p95 (ms)",
        "llamacpp", "Which engine serves the model", "512, 2048, 8192", "gpus.0.name", "2026.10.1",
        "Kim", "The port is taken", "nemolab run runbooks/quickstart.yaml --set engine=llamacpp",
        "2026-11-30 09:15 UTC", "52.4 s", "Kept from run 20261129-080000-aaaa",
    ):  # fmt: skip
        assert expected in text, expected
    assert html.count('<script type="application/json">') == 5
    assert html.index("✓") < html.index("Requirements") < html.index('id="findings"') < html.index('id="parameters"')


def test_every_status_is_a_word_with_a_reason(mixed: Path) -> None:
    text = text_of(index(mixed))
    for word in ("failed", "error", "timed out", "killed", "interrupted", "skipped", "not run", "waiting for sign-off"):
        assert word in text
    for reason in (
        "the kernel was killed (out of memory?)", "Interrupted by Ctrl-C", "Step load failed", "no longer valid",
        "ConnectionError in cell 1: refused", "start the server first", "90_troubleshoot", "not met",
    ):  # fmt: skip
        assert reason.lower() in text.lower(), reason


def test_a_step_page_shows_the_notebook_and_marks_what_did_not_run(mixed: Path) -> None:
    slow = text_of((mixed / "04_slow.html").read_text())
    assert slow.count("○ not run") == 2
    assert "cell 2, 1 line ◷ timed out" in slow
    load = (mixed / "02_load.html").read_text()
    assert '<details class="code"><summary>Code' in load  # code is there and closed
    assert "stage 1 of 5 done\nstage 2 of 5 done" in load
    assert "\x1b" not in load
    assert "Parameters of this run" in load
    assert load.count("Load the server in stages</h") == 1  # the notebook's first heading is the page's


def test_equal_records_give_equal_bytes_and_two_replays_are_the_same_file(passed: Path, tmp_path: Path) -> None:
    before = {p.name: p.read_bytes() for p in passed.iterdir() if p.is_file()}
    report.write(passed)
    assert {p.name: p.read_bytes() for p in passed.iterdir() if p.is_file()} == before
    pages = []
    for number in (1, 2):
        folder = tmp_path / f"{number}-replay"
        shutil.copytree(passed, folder)
        run = record.read(folder)
        steps = tuple(step.model_copy(update={"seconds": 0.1 * number, "started": None}) for step in run.steps)
        run.model_copy(
            update={"run_id": f"replay-{number}", "replay_of": run.run_id, "ended": None, "steps": steps, "pid": number}
        ).write(folder)
        pages.append({p.name: p.read_bytes() for p in report.write(folder)})
        assert "Replay, not a measurement." in index(folder)
        assert "Replay, not a measurement." in (folder / "04_load.html").read_text()
    assert pages[0] == pages[1]


def test_nothing_refers_to_the_network_and_every_page_is_under_a_megabyte(passed: Path, mixed: Path) -> None:
    for page in (*passed.glob("*.html"), *mixed.glob("*.html")):
        html = page.read_text()
        assert len(html.encode()) < 1_000_000
        assert not re.search(r"""(?:src|href|action|poster|srcset)\s*=\s*["']?(?:https?:)?//""", html)
        assert not re.search(r"url\(|@import|<link(?! rel=\"icon\" href=\"data:,\")|<iframe|<object|<embed", html)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
        assert policy
        assert policy[1].replace("&#39;", "'").startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe-eval" not in policy[1]


def test_pages_without_charts_carry_no_plotly(passed: Path) -> None:
    assert 'id="plotly"' not in (passed / "01_host.html").read_text()
    assert (passed / "04_load.html").read_text().count('id="plotly"') == 1


def test_html_of_an_output_is_never_taken(tmp_path: Path) -> None:
    outputs = [
        new_output("display_data", data={"text/html": "<b>raw</b>" + EVIL, "text/plain": "plain " + EVIL}),
        new_output("display_data", data={"text/markdown": "[x](javascript:alert(1))"}),
        new_output("display_data", data={"image/svg+xml": "<svg onload=1>", "application/javascript": "hack()"}),
        new_output("stream", name="stdout", text=EVIL),
        new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL]),
    ]
    outputs += sample_run.captured(lambda: show.table([{EVIL: EVIL}], caption=EVIL))
    outputs += sample_run.captured(lambda: show.text(EVIL))
    outputs += sample_run.captured(lambda: show.verdict(False, EVIL))
    figure = go.Figure(go.Scatter(x=[1], y=[2], text=[EVIL], name=EVIL))
    outputs += sample_run.captured(lambda: show.figure(figure, title=EVIL, alt=EVIL, table=[{"a": EVIL}]))
    run = sample_run.Run(tmp_path)
    nb = sample_run.small_notebook("T" + EVIL)
    nb.cells[0].source += "\n" + EVIL + "\n\n[" + EVIL + "](" + EVIL + ")"
    nb.cells.append(new_code_cell(f"x = {EVIL!r}", id="c9", execution_count=2, outputs=outputs))
    run.add("evil", EVIL, nb, parameters={EVIL: EVIL}, reason=EVIL, hint=EVIL)
    run.finish(title=EVIL, purpose=EVIL, parameters={EVIL: EVIL}, host={EVIL: EVIL}, command=(EVIL,), reasons=(EVIL,))
    for page in report.write(tmp_path):
        html = page.read_text()
        assert "<b>raw" not in html
        assert "hack()" not in html
        assert "<svg" not in html
        assert "<img" not in html
        assert "javascript:" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL).replace(
            "[x](javascript:", ""
        )
        scripts = re.findall(r"<script\b[^>]*>", html)
        assert all(s == "<script>" or 'type="application/' in s for s in scripts)
        assert scripts.count("<script>") == 1  # ours


def test_columns_of_sentences_keep_a_width_and_long_names_may_break(tmp_path: Path) -> None:
    long = "a sentence that a browser would squeeze into a column of one word"
    data = [{"name": "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "size": 80, "know": long, "small": "max_<b>"}]
    run = sample_run.Run(tmp_path)
    nb = sample_run.small_notebook("Table")
    outputs = sample_run.captured(lambda: show.table(data))
    nb.cells.append(new_code_cell("show.table(data)", id="c9", execution_count=2, outputs=outputs))
    run.add("table", "Table", nb)
    run.finish()
    page = next(p for p in report.write(tmp_path) if p.name == "01_table.html").read_text()
    assert f'<td class="long">{long}</td>' in page
    assert "<td>VLLM_<wbr>EXECUTE_<wbr>MODEL_<wbr>TIMEOUT_<wbr>SECONDS</td>" in page
    assert '<td class="number">80</td><td class="long">' in page
    assert "<td>max_&lt;b&gt;</td>" in page


def test_a_value_that_is_missing_has_no_unit() -> None:
    rows = result_rows({"a": {"value": None, "unit": "s", "help": ""}, "b": {"value": 1.0, "unit": "s", "help": ""}})
    assert [(row.value, row.unit) for row in rows] == [("-", ""), ("1.000", "s")]


def test_large_charts_are_left_out_loudly_and_text_is_cut_loudly(tmp_path: Path) -> None:
    def big() -> None:
        values = [round(i * 1.000123, 6) for i in range(40_000)]
        show.figure(go.Figure(go.Scatter(y=values)), title="Big", alt="A long line.")
        show.figure(go.Figure(go.Scatter(y=[1, 2])), title="Small", alt="A short line.")

    cell = new_code_cell("draw()", id="c1", execution_count=1, outputs=sample_run.captured(big))
    cell.outputs.append(new_output("stream", name="stdout", text="word " * 100_000))
    nb = sample_run.small_notebook("Big")
    nb.cells.append(cell)
    run = sample_run.Run(tmp_path)
    run.add("big", "Big", nb)
    run.finish()
    for page in report.write(tmp_path):
        html = page.read_text()
        assert len(html.encode()) < report.LIMIT
        assert "is left out, because the file would be larger than 1 MB" in html
        assert "A long line." in html
        assert html.count('<script type="application/json">') == 1  # the small one is drawn
    assert "characters left out here; the notebook file has them" in (tmp_path / "01_big.html").read_text()


def test_a_damaged_notebook_is_named_and_stops_nothing(passed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(passed, folder)
    path = folder / "04_load.ipynb"
    path.write_bytes(path.read_bytes()[:5000])
    assert "04_load.html" not in [page.name for page in report.write(folder)]
    assert "The executed notebook 04_load.ipynb cannot be shown" in index(folder)
    assert not (folder / "04_load.html").exists()  # the page of an earlier state is gone


def test_checksums_cover_everything_that_counts(passed: Path) -> None:
    listed = dict(reversed(line.split("  ")) for line in (passed / report.SUMS).read_text().splitlines())
    assert set(listed) == {
        "run.json", "index.html", "01_host.html", "02_serve.html", "03_probe.html", "04_load.html", "01_host.ipynb",
        "02_serve.ipynb", "03_probe.ipynb", "04_load.ipynb", "04_load.results.json",
        "recordings/04_load/ladder.run-0a1b.json",
    }  # fmt: skip
    assert all(hashlib.sha256((passed / name).read_bytes()).hexdigest() == digest for name, digest in listed.items())


def test_the_vendored_plotly_is_what_its_note_says() -> None:
    assets = files("nemolab.runbook") / "assets"
    note = json.loads((assets / "plotly-cartesian.json").read_text())
    packed = (assets / "plotly-cartesian.min.js.gz").read_bytes()
    assert hashlib.sha256(packed).hexdigest() == note["gzip_sha256"]
    source = gzip.decompress(packed)
    assert hashlib.sha256(source).hexdigest() == note["sha256"]
    assert f"plotly.js (cartesian - minified) v{note['version']}".encode() in source[:200]
    assert note["version"] == get_plotlyjs_version() == plotly_js()[2], "run tools/vendor_plotly.py"
    assert "MIT License" in (assets / "plotly-cartesian.LICENSE.txt").read_text()


@pytest.mark.parametrize(
    ("figure", "problem"),
    [
        ({"data": [{"type": "scatter3d"}], "layout": {}}, "scatter3d cannot be drawn"),
        ({"data": [{"type": "scattergl"}], "layout": {}}, "scattergl cannot be drawn"),
        ({"data": [], "layout": {"images": [{"source": "https://x.example/a.png"}]}}, "not in the file"),
        ({"data": [{"type": "image", "source": "//x.example/a.png"}]}, "not in the file"),
        ({"data": [], "frames": [{}]}, "frames are left out"),
    ],
)
def test_what_cannot_be_drawn_offline_is_refused_by_name(figure: dict[str, Any], problem: str) -> None:
    made = chart(figure)
    assert problem in "; ".join(made.problems)
    assert "x.example" not in made.payload


def test_chart_payloads_are_json_that_cannot_leave_their_element() -> None:
    made = chart({"data": [{"y": [1.0, float("nan"), float("inf")], "text": f"<a href='https://x'>{EVIL}</a>"}]})
    assert "<" not in made.payload
    parsed = json.loads(made.payload)
    assert parsed["data"][0]["y"] == [1.0, None, None]
    assert parsed["data"][0]["text"] == EVIL  # as text; the link is gone
    assert script_json("\u2028") == '"\\u2028"'


def test_links_of_a_notebook_lead_to_pages_of_the_run_or_to_the_web() -> None:
    links = {"10_check_host": "01_host.html"}
    html = str(
        markdown(
            "[a](10_check_host.ipynb) [b](../notebooks/10_check_host.ipynb#x) [c](99_gone.ipynb) "
            "[d](https://example.org) [e](//evil.example/x) [f](data:text/html,x) ![g](https://x.example/y.png)",
            links,
        )
    )
    assert html.count('<a href="01_host.html">') == 2
    assert '<a href="https://example.org" rel="noopener noreferrer">d</a>' in html
    assert html.count("<a ") == 3
    assert "evil.example" not in html
    assert "<img" not in html
    assert "picture, not in this file: g" in html


@pytest.mark.parametrize("folder", [path.parent for path in (paths.reports() / "examples").glob("*h200/index.html")])
def test_a_report_on_recordings_names_the_command_that_measures_again(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    found = re.search(r'on a machine as above:</p>\s*<pre tabindex="0">(.*?)</pre>', page, re.DOTALL)
    assert found
    program, run, runbook, *options = shlex.split(html.unescape(found[1]).replace("\\\n", " "))
    assert (program, run, set(options[::2])) == ("nemolab", "run", {"--set"})
    made = plan.make(spec.load(spec.find(runbook)), commands.parse_sets(tuple(options[1::2])))
    measured = record.read(folder).parameters
    assert {name: value for name, value in made.parameters.items() if name in measured} == measured


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("interrupted by Ctrl-C", "Interrupted by Ctrl-C"),
        ("cell 2 took longer than 60 s", "Cell 2 took longer than 60 s"),
        ("holds_to_tokens is 4096, expected == 8192", "holds_to_tokens is 4096, expected == 8192"),
        ("p99_s is 3", "p99_s is 3"),
        ("", ""),
    ],
)
def test_a_sentence_has_a_capital_and_a_name_keeps_its_own(reason: str, shown: str) -> None:
    assert render.sentence(reason) == shown
