"""The HTML of a run, `index.html` and one page a step: each one file that needs no network, made from the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from nemolab.core.errors import UsageError
from nemolab.core.files import sha256, write_atomic
from nemolab.runbook import pages, record, store
from nemolab.runbook.cells import cells, load
from nemolab.runbook.outputs import Figure
from nemolab.runbook.record import RunRecord
from nemolab.runbook.views import StepView

INDEX = "index.html"
SUMS = "SHA256SUMS"
LIMIT = 1_000_000  # bytes of one page: what mail and chat still take without complaint


def write(folder: Path) -> list[Path]:
    """Write the pages of the run in `folder`, and the list of checksums that `sha256sum -c SHA256SUMS` reads.

    Returns:
        The pages, the index first.

    Raises:
        UsageError: there is no record here.
    """
    run = store.read(folder)  # a run whose runner is gone was killed, whatever its record says
    made = render(folder, run)
    for name, html in made.items():
        write_atomic(folder / name, html)
    for stale in folder.glob("*.html"):
        if stale.name not in made:
            stale.unlink()  # of a step that an earlier state of this run had
    write_atomic(folder / SUMS, sums(folder, run))
    return [folder / name for name in made]


def render(folder: Path, run: RunRecord) -> dict[str, str]:
    """The pages of `run`, file name -> HTML; the same record and notebooks give the same text."""
    links = {
        PurePosixPath(step.notebook).stem: f"{step.name}.html"
        for step in run.steps
        if (folder / f"{step.name}.ipynb").is_file()
    }
    views = [_view(folder, step, links) for step in run.steps]
    made = {
        INDEX: _fit(
            lambda dropped: pages.index(run, [view.without(dropped) for view in views]),
            [figure for view in views for figure in view.figures],
            "it is in the page of its step",
        )
    }
    for number, view in enumerate(views, 1):
        if view.page:
            made[view.page] = _fit(
                lambda dropped, n=number: pages.step(run, [view.without(dropped) for view in views], n),  # type: ignore[misc]
                view.figures,
                "it is in the executed notebook",
            )
    return made


def sums(folder: Path, run: RunRecord) -> str:
    """Checksums of every file that belongs to the run, in the format of `sha256sum`."""
    names = {record.FILE, *(page.name for page in folder.glob("*.html"))}
    for step in run.steps:
        names |= {f"{step.name}.ipynb", f"{step.name}.results.json", *step.recordings}
    present = sorted(name for name in names if (folder / name).is_file())
    return "".join(f"{sha256((folder / name).read_bytes())}  {name}\n" for name in present)


def _view(folder: Path, step: record.StepRecord, links: dict[str, str]) -> StepView:
    path = folder / f"{step.name}.ipynb"
    if not path.is_file():
        return StepView(step, None)
    try:
        shown = cells(load(path), f"fig-{step.name}", links, step.title)
    except (UsageError, KeyError, TypeError, AttributeError) as error:
        what = error.what if isinstance(error, UsageError) else "its cells are damaged"
        return StepView(step, None, problem=f"The executed notebook {path.name} cannot be shown: {what}")
    return StepView(step, f"{step.name}.html", tuple(shown))


def _fit(render: Callable[[dict[str, str]], str], figures: Iterable[Figure], where: str) -> str:
    """The page within `LIMIT`: without its largest charts, each with a note that says so, if it must be."""
    html = render({})
    over = len(html.encode()) - LIMIT
    dropped: dict[str, str] = {}
    for figure in sorted(figures, key=lambda f: (-len(f.chart.payload), f.id)):
        if over <= 0 or not figure.chart.payload:
            break
        size = len(figure.chart.payload.encode())
        dropped[figure.id] = (
            f"This chart ({size / 1000:,.0f} kB) is left out, because the file would be larger than "
            f"{LIMIT / 1e6:.0f} MB; {where}."
        )
        over -= size - 400  # the note takes some of the room
    return render(dropped) if dropped else html
