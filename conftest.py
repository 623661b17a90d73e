"""Reports under pytest: `pytest reports/examples` re-executes every executed notebook in replay, with nbval.

nbval 0.11 compares outputs well, and passes what was never run, cut short, or holds another picture. So here:
a run's folder is one static test (`check-report`); a notebook must be whole before it is replayed; every cell is run
and compared, whatever a tag or comment says; outputs are compared to the last byte, after the same normalisation that
the report went through; a source notebook, which has nothing to compare, fails; and a replay that changes a file of
the report fails. Kernels are this environment's, each with a private socket, and a notebook's cells stay in one worker.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from jupyter_client.manager import KernelManager
from nbval import kernel as nbval_kernel
from nbval.plugin import IPyNbCell, IPyNbFile

from nemolab.core import step
from nemolab.core.finding import Severity
from nemolab.notebook import source
from nemolab.notebook.progress import FILE as PROGRESS
from nemolab.notebook.results import MIME as RESULTS
from nemolab.notebook.results import differences
from nemolab.runbook import record
from nemolab.runbook.normalise import normalise

SEEN = pytest.StashKey[set[Path]]()


def pytest_configure(config: pytest.Config) -> None:
    """Strict nbval with this environment's kernel, without having to ask for it."""
    config.option.nbval, config.option.nbval_lax = True, False
    config.option.nbval_current_env, config.option.nbval_kernel_name = True, None
    config.stash[SEEN] = set()
    # A shell starts its background jobs with SIGINT ignored, and every process below inherits that: Ctrl-C tests would
    # then wait for an interrupt that never comes.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Under xdist, keep each file's tests in one worker: the cells of a notebook share a kernel."""
    if config.getoption("dist") in ("loadfile", "loadscope", "loadgroup"):
        return None
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list[Any], list[Any]]:
    """Notebooks as reports instead of nbval's own collector; a run's record as the static test of its folder."""
    found = [each for each in (yield) if not isinstance(each, IPyNbFile)]
    if file_path.name == record.FILE and not _seen(parent.config, file_path.parent):
        found.append(RunFolder.from_parent(parent, path=file_path))
    if file_path.suffix == ".ipynb" and ".ipynb_checkpoints" not in file_path.parts:
        found.append(Report.from_parent(parent, path=file_path))
    return found


class RunFolder(pytest.File):
    """The folder of a run."""

    def collect(self) -> Iterator[pytest.Item]:
        yield StaticCheck.from_parent(self, name="check-report", folder=self.path.parent)


class StaticCheck(pytest.Item):
    """The whole folder against its record: complete, unchanged, consistent. Executes nothing."""

    def __init__(self, *, folder: Path, **rest: Any) -> None:
        super().__init__(**rest)
        self.folder = folder

    def runtest(self) -> None:
        from nemolab.runbook.check import check_report

        found = [finding for finding in check_report(self.folder) if finding.severity is not Severity.INFO]
        assert not found, "\n".join(f"{finding.code} {finding.message} ({finding.where})" for finding in found)

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.folder.name}: check-report"


class Report(IPyNbFile):  # type: ignore[misc]
    """An executed notebook, replayed."""

    def collect(self) -> Iterator[pytest.Item]:
        folder = self.path.parent
        if (folder / record.FILE).exists() and not _seen(self.config, folder):
            yield StaticCheck.from_parent(self, name="check-report", folder=folder)
        yield Whole.from_parent(self, name="whole")
        for cell in super().collect():
            yield ReportCell.from_parent(
                self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options
            )

    @functools.cached_property
    def problem(self) -> str:
        """Why there is nothing to replay; "" if the notebook is whole."""
        return _not_whole(self.path)

    def setup(self) -> None:
        self.before = _digests(self.path.parent)
        self.sockets = Path(tempfile.mkdtemp(prefix="nemolab-"))

    def start(self) -> None:
        """Start the kernel, for the first cell that needs it."""
        if self.kernel is not None:
            return
        here = step.Step(folder=self.path.parent.resolve(), name=self.path.stem, replay=True, run=None)
        with (
            mock.patch.dict(os.environ, here.environment() | {"PYTHONHASHSEED": "0"}),
            mock.patch.object(nbval_kernel, "KernelManager", self._private_kernel),
        ):
            for name in (step.RUN, PROGRESS, "JPY_SESSION_NAME"):
                os.environ.pop(name, None)
            super().setup()

    def _private_kernel(self, **options: Any) -> KernelManager:
        # The default path of IPC sockets is relative to the working directory: kernels side by side answer each other.
        address = str(self.sockets / "k")
        return KernelManager(transport="ipc", ip=address, connection_file=f"{address}.json", **options)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.sockets, ignore_errors=True)
        changed = {name for name, _ in _digests(self.path.parent) ^ self.before}
        assert not changed, f"the replay changed {', '.join(sorted(changed))}: a measured report is never rewritten"


class Whole(pytest.Item):
    """A notebook that was run from its first code cell to its last, which published the results file beside it."""

    def runtest(self) -> None:
        assert not self.parent.problem, self.parent.problem

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        return f"{self.path.name}: {self.parent.problem}"

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: whole"


class ReportCell(IPyNbCell):  # type: ignore[misc]
    """A cell that is always run and always compared, exactly."""

    def setup(self) -> None:
        if self.parent.problem:
            pytest.skip("the report is not whole")
        self.parent.start()
        super().setup()

    def runtest(self) -> None:
        self.options["skip"] = self.options["check_exception"] = False
        self.options["check"] = "nbval-ignore-output" not in self.cell.metadata.get("tags", ())
        super().runtest()

    def compare_outputs(self, test: Any, ref: Any, skip_compare: Any = None) -> bool:
        now, then = self._normalised(test), self._normalised(ref)
        if not super().compare_outputs(now, then, skip_compare):
            return False
        if now != then:  # what nbval leaves out: the order of outputs, pictures, widgets
            kinds = [[sorted(output.get("data", output)) for output in outputs] for outputs in (then, now)]
            self.comparison_traceback = [f"the report has the outputs {kinds[0]}, the replay {kinds[1]}"]
            return False
        return True

    def _normalised(self, outputs: Any) -> Any:
        import nbformat

        cell = nbformat.v4.new_code_cell(source=self.cell.source, outputs=outputs)
        document = nbformat.v4.new_notebook(cells=[cell])
        made = normalise(document, hide={str(self.path.parent.resolve()): "<run>"})["cells"][0]["outputs"]
        for output in made:
            output.pop("execution_count", None)
        return nbformat.from_dict(made)


def _not_whole(path: Path) -> str:
    document = source.read(path)
    code = [cell for cell in source.cells(document) if cell.code and cell.source.strip()]
    counts = [cell.raw.get("execution_count") for cell in code]
    if not any(cell.raw.get("outputs") for cell in code):
        return "no outputs: a source notebook, nothing to compare with"
    if counts != list(range(1, len(code) + 1)):
        return f"cells are missing or were not run: executed as {counts}"
    if "results" not in code[-1].tags:
        return "the last cell is not the one tagged `results`"
    shown = [o["data"][RESULTS] for o in code[-1].raw["outputs"] if RESULTS in o.get("data", {})]
    file = path.with_name(f"{path.stem}.results.json")
    if len(shown) != 1 or not file.exists():
        return f"the last cell shows no results, or {file.name} is missing"
    found = list(differences(source.read_json(file), shown[0]))
    return f"{file.name} is not what the notebook shows: {'; '.join(found)}" if found else ""


def _seen(config: pytest.Config, folder: Path) -> bool:
    """Whether the folder's static test was collected already; notes that it is now."""
    known = config.stash[SEEN]
    if folder in known:
        return True
    known.add(folder)
    return False


def _digests(folder: Path) -> set[tuple[str, str]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {(str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files}
