"""Reports in Debian's Chromium with the network cut: charts right, phone width, paper, others' text does nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import sample_run
from nbformat.v4 import new_code_cell, new_output
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from nemolab.core import paths
from nemolab.notebook import look, show
from nemolab.runbook import report

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's Chromium is not installed: apt-get install chromium"),
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"desktop": (1280, 900), "phone": (360, 740)}
EVIL = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=1><svg onload=window.hacked=1>"
    "</script></template></style></textarea><a href=javascript:window.hacked=1>x</a><b>bold</b>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    sample_run.passed(folder / "passed")
    sample_run.mixed(folder / "mixed")
    evil(folder / "evil")
    for run in folder.iterdir():
        report.write(run)
    return folder


def evil(folder: Path) -> None:
    """A run in which a model wrote every text."""
    outputs = [
        new_output("display_data", data={"text/html": EVIL, "text/plain": EVIL}),
        new_output("display_data", data={"application/javascript": "window.hacked=1", "image/svg+xml": EVIL}),
        new_output("stream", name="stderr", text=EVIL),
        new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL]),
    ]
    figure = go.Figure(
        [go.Scatter(x=[EVIL, "b"], y=[1, 2], text=[EVIL, EVIL], mode="markers+text", name=EVIL)],
        layout={"xaxis": {"title": {"text": EVIL}}, "annotations": [{"text": EVIL, "x": 0, "y": 1}]},
    )
    outputs += sample_run.captured(lambda: show.figure(figure, title=EVIL, alt=EVIL, table=[{EVIL: EVIL}]))
    outputs += sample_run.captured(lambda: show.text(EVIL))
    remote = {"data": [], "layout": {"images": [{"source": "http://evil.example/x.png", "sizex": 1, "sizey": 1}]}}
    outputs.append(new_output("display_data", data={"application/vnd.plotly.v1+json": remote, "text/plain": EVIL}))
    nb = sample_run.small_notebook("T")
    nb.cells[0].source += f"\n\n{EVIL}\n\n![p](http://evil.example/p.png) [l](javascript:window.hacked=1)"
    nb.cells.append(new_code_cell(f"x = {EVIL!r}", id="c9", execution_count=2, outputs=outputs))
    run = sample_run.Run(folder)
    run.add("evil", EVIL, nb, parameters={EVIL: EVIL}, reason=EVIL, hint=EVIL)
    run.finish(title=EVIL, purpose=EVIL, parameters={EVIL: EVIL}, host={EVIL: EVIL}, command=(EVIL,), reasons=(EVIL,))


class Watched:
    """A page with what it tried and said."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, path: Path) -> Page:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-charts=done]", state="attached")
        return self.page

    def foreign(self) -> list[str]:
        """Requests for anything but the file itself and what it holds."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]


@pytest.fixture
def offline(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    width, height = SIZES[getattr(request, "param", "desktop")]
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    context.route(re.compile("^(?!file:|data:|blob:)"), lambda route: route.abort())
    yield Watched(context)
    context.close()


# What each chart of the sample must have drawn, counted in its SVG.
DRAWN = {
    "Up to 8 requests": {".scatterlayer .trace": 2, ".scatterlayer path.js-line": 2, ".scatterlayer path.point": 5},
    "First tokens cluster": {".barlayer .trace.bars": 1, ".barlayer .point path": "many", ".scatterlayer .trace": 0},
    "Prompt length": {".boxlayer .trace.boxes": 3, ".boxlayer path.box": 3, ".scatterlayer .trace": 0},
    "Needles": {".heatmaplayer .hm": 1, ".heatmaplayer image": 1, ".infolayer .colorbar": 1},
    "Prefill": {".barlayer .trace.bars": 2, ".barlayer .point path": 8},
}
KINDS = [["scatter", "scatter"], ["histogram"], ["box"] * 3, ["heatmap"], ["bar", "bar"]]


@pytest.mark.parametrize("offline", SIZES, indirect=True)
@pytest.mark.parametrize("page", ["index.html", "04_load.html"])
def test_charts_are_drawn_right_without_a_network(offline: Watched, runs: Path, page: str) -> None:
    opened = offline.open(runs / "passed" / page)
    assert offline.foreign() == []
    assert offline.said == []
    states = opened.eval_on_selector_all("figure", "all => all.map(f => f.dataset.state)")
    assert states == ["drawn"] * 5
    kinds = opened.eval_on_selector_all(".plot", "all => all.map(p => p._fullData.map(t => t.type))")
    assert kinds == KINDS
    for title, counts in DRAWN.items():
        figure = opened.locator("figure", has_text=title).first
        for selector, expected in counts.items():
            number = figure.locator(selector).count()
            assert number > 8 if expected == "many" else number == expected, (title, selector, number)
    boxes = opened.eval_on_selector_all(
        ".plot .main-svg:first-of-type", "all => all.map(s => [s.getBoundingClientRect().width, innerWidth])"
    )
    assert all(200 < width <= inner for width, inner in boxes)


@pytest.mark.parametrize("offline", SIZES, indirect=True)
@pytest.mark.parametrize("path", ["passed/04_load.html", "mixed/index.html", "mixed/04_slow.html"])
def test_a_page_never_scrolls_sideways(offline: Watched, runs: Path, path: str) -> None:
    opened = offline.open(runs / path)
    opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide = opened.evaluate(
        """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre, svg, .skip'))
           .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120))"""
    )
    assert wide == []
    assert opened.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_chart_follows_the_window(offline: Watched, runs: Path) -> None:
    opened = offline.open(runs / "passed" / "04_load.html")
    opened.set_viewport_size({"width": 500, "height": 800})
    for _ in range(100):  # `wait_for_function` needs eval, which the page's policy forbids
        if opened.locator(".plot .main-svg").first.evaluate("svg => svg.getBoundingClientRect().width") <= 470:
            break
        opened.wait_for_timeout(50)
    else:
        pytest.fail("the chart kept its width")
    assert opened.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_the_text_of_others_does_nothing(offline: Watched, runs: Path) -> None:
    for page in ("index.html", "01_evil.html"):
        opened = offline.open(runs / "evil" / page)
        opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        opened.wait_for_timeout(100)
        assert opened.evaluate("window.hacked") is None
        assert opened.locator("main b", has_text=re.compile("^bold$")).count() == 0
        assert opened.locator("main img").count() == 0
        assert opened.locator("[onerror], [onload], [href^=javascript]").count() == 0
        assert opened.locator("figure .plot svg a").count() == 0
        assert opened.locator("figure[data-state=drawn]").count() == 2
        assert "<script>window.hacked=1</script>" in opened.locator("h1").inner_text()
    assert offline.foreign() == []


def test_the_policy_of_the_page_stops_what_might_still_slip_in(offline: Watched, runs: Path) -> None:
    opened = offline.open(runs / "passed" / "index.html")
    opened.evaluate(
        """() => { for (const html of ['<img src=http://evil.example/a.png>', '<img src=x onerror="window.hacked=1">'])
             document.querySelector('main').insertAdjacentHTML('beforeend', html);
           const script = document.createElement('script'); script.textContent = 'window.hacked=1';
           document.head.append(script);
           return fetch('http://evil.example/b').catch(() => 0) }"""
    )
    opened.wait_for_timeout(100)
    assert opened.evaluate("window.hacked") is None
    assert any("Content Security Policy" in said for said in offline.said)


def test_a_bundle_that_was_changed_is_not_run_and_the_reader_is_told(
    offline: Watched, runs: Path, tmp_path: Path
) -> None:
    import base64
    import gzip

    html = (runs / "passed" / "04_load.html").read_text()
    packed = re.search(r'id="plotly"[^>]*>([^<]*)<', html)
    assert packed
    changed = gzip.compress(gzip.decompress(base64.b64decode(packed[1])) + b"\nwindow.hacked=1")
    path = tmp_path / "changed.html"
    path.write_text(html.replace(packed[1], base64.b64encode(changed).decode()))
    opened = offline.open(path)
    assert opened.evaluate("window.hacked") is None
    assert opened.locator("figure[data-state=failed]").count() == 5
    assert "could not be drawn" in opened.locator("figure .plot").first.inner_text()


def test_without_scripts_text_and_table_stand_for_the_chart(browser: Browser, runs: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto((runs / "passed" / "index.html").as_uri())
    figure = page.locator("figure").first
    assert "this viewer runs no scripts" in figure.inner_text()
    assert "rises from 41 ms at 1 request" in figure.inner_text()
    figure.locator("summary").click()
    assert "1,184" in figure.locator("table").inner_text()
    context.close()


@pytest.mark.parametrize("page", ["index.html", "04_load.html"])
def test_paper_shows_charts_whole_tables_open_and_nothing_cut(offline: Watched, runs: Path, page: str) -> None:
    opened = offline.open(runs / "passed" / page)
    pdf = opened.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 9
    assert opened.locator("details.data[open]").count() == 0  # closed again after printing
    opened.set_viewport_size({"width": 688, "height": 900})  # A4 less its margins, in CSS pixels
    opened.emulate_media(media="print")
    sizes: list[Any] = opened.eval_on_selector_all(
        ".plot .main-svg", "all => all.map(s => [s.getBoundingClientRect().right, s.viewBox.baseVal.width])"
    )
    assert sizes
    assert all(right <= 688 and box > 0 for right, box in sizes)
    assert not opened.locator("nav").is_visible()
    cut = opened.eval_on_selector_all(
        ".scroll, pre", "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert cut == 0
    assert opened.locator("details.data table").first.is_visible()  # open on paper, by style alone


def test_headings_landmarks_and_names_for_those_who_listen(offline: Watched, runs: Path) -> None:
    for path in ("passed/index.html", "passed/04_load.html", "mixed/index.html"):
        opened = offline.open(runs / path)
        assert opened.locator("html").get_attribute("lang") == "en"
        assert opened.locator("h1").count() == opened.locator("main").count() == opened.locator("nav").count() == 1
        levels = opened.eval_on_selector_all("h1,h2,h3,h4,h5", "all => all.map(h => +h.tagName[1])")
        assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), levels
        assert opened.locator("th:not([scope])").count() == 0
        assert opened.locator(".plot:not([aria-label]), img:not([alt])").count() == 0
        ids = opened.eval_on_selector_all("main [id]", "all => all.filter(e => !e.closest('svg')).map(e => e.id)")
        assert len(ids) == len(set(ids))
        broken = opened.eval_on_selector_all(
            "a[href^='#']", "all => all.filter(a => !document.getElementById(a.hash.slice(1))).map(a => a.hash)"
        )
        assert broken == []
        faint = opened.evaluate(CONTRAST)
        assert faint == []


# Text whose contrast with its background is below 4.5 : 1 (WCAG 2.2, 1.4.3).
CONTRAST = """() => {
  const rgb = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const lum = (c) => { const [r, g, b] = rgb(c).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (rgb(c)[3] !== 0) return c; } return "rgb(255, 255, 255)"; };
  return [...document.querySelectorAll("body *")].filter((e) => !e.closest("svg, script, .skip"))
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .filter((e) => { const [a, b] = [lum(getComputedStyle(e).color), lum(back(e))].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05) < 4.5; }).map((e) => e.outerHTML.slice(0, 80));
}"""


def test_the_bundle_draws_exactly_the_trace_types_that_reports_allow(offline: Watched, runs: Path) -> None:
    opened = offline.open(runs / "passed" / "04_load.html")
    assert set(opened.evaluate("Object.keys(Plotly.PlotSchema.get().traces)")) == look.TRACES


@pytest.mark.parametrize("offline", SIZES, indirect=True)
@pytest.mark.parametrize("example", ["price-nano-h200", "one-million-h200"])
def test_the_longest_length_keeps_its_name(offline: Watched, example: str) -> None:
    opened = offline.open(paths.reports() / "examples" / example / "index.html")
    shown = opened.eval_on_selector_all(
        "figure .plot",
        """all => all.map(p => [...p.querySelectorAll('.xtick text')].map(t => [t.textContent, t.style.display,
           t.getBoundingClientRect().left - p.getBoundingClientRect().left,
           p.getBoundingClientRect().right - t.getBoundingClientRect().right]))""",
    )
    names = [name for ticks in shown for name, display, *_ in ticks if display != "none"]
    assert {name for ticks in shown for name, *_ in ticks} == set(names)
    assert any(name in names for name in ("1,048,448", "1,048,064", "1M"))
    assert all(min(left, right) >= -1 for ticks in shown for *_, left, right in ticks)
