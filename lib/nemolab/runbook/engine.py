"""A papermill engine that tells the truth, saves at most every few seconds, and ends at the first thing wrong.

papermill's own engine writes the whole notebook twice a cell (quadratic in the number of cells) and marks every cell
`completed` after a time-out, a dead kernel or an interrupt. This one leaves papermill's parts as they are (parameters,
client, metadata) and replaces the loop over the cells.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, NotebookExecutionManager, papermill_engines

from nemolab.core.files import write_atomic
from nemolab.runbook.job import AtCell, Ending, Outcome, Started

NAME = "nemolab"
SAVE_EVERY = 2.0  # seconds
_IPC_LIMIT = 100  # bytes; the kernel's limit on a socket path is 108


class LabEngine(Engine):  # type: ignore[misc]
    """The engine, registered as `nemolab`."""

    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, *, watch: Watch, **options: Any) -> Any:
        """Execute `nb` in place; `watch.outcome` then says how it ended. Raises nothing that a cell caused."""
        manager = Manager(nb, watch.raw)
        manager.notebook_start()
        try:
            client = Client(
                manager,
                watch,
                timeout=options["execution_timeout"],
                startup_timeout=options["start_timeout"],
                kernel_name=kernel_name,
                log=options["log"],
            )
            client.run(env=options["env"], cwd=options["kernel_cwd"])
        finally:
            manager.flush()
        return nb


class Watch:
    """Where the execution reports to."""

    def __init__(self, raw: Path, connection: Path, tell: Callable[[Any], None]) -> None:
        self.raw, self.connection, self.tell = raw, connection, tell
        self.outcome: Outcome | None = None


class Manager(NotebookExecutionManager):  # type: ignore[misc]
    """papermill's book-keeping with saves that are atomic and spaced; the last one is always made."""

    def __init__(self, nb: Any, path: Path) -> None:
        super().__init__(nb, output_path=str(path), progress_bar=False, autosave_cell_every=SAVE_EVERY)
        self._path = path
        self._saved_at, self._cost, self.dirty = 0.0, 0.0, False

    def save(self, **_: Any) -> None:
        """Save, unless the last save was a moment ago or saving has become dear (large outputs)."""
        self.dirty = True
        if time.monotonic() - self._saved_at >= max(SAVE_EVERY, 10 * self._cost):
            self.flush()

    def autosave_cell(self, **_: Any) -> None:
        """Called for every message of a running cell."""
        self.save()

    def flush(self) -> None:
        """Save now, if there is something to save."""
        if self.dirty:
            began = time.monotonic()
            self.dirty = False
            text: str = nbformat.v4.writes(self.nb)  # type: ignore[no-untyped-call]
            write_atomic(self._path, text)
            self._saved_at = time.monotonic()
            self._cost = self._saved_at - began


class Client(PapermillNotebookClient):  # type: ignore[misc]
    """nbclient with a private kernel of this very environment, and a loop that stops at the first thing wrong."""

    def __init__(self, manager: Manager, watch: Watch, **options: Any) -> None:
        kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=_OwnKernel())
        # The default path of IPC sockets is relative, so kernels that start side by side answer each other.
        if len(os.fsencode(watch.connection)) < _IPC_LIMIT:
            kernel.transport, kernel.ip = "ipc", str(watch.connection)
            kernel.connection_file = str(watch.connection) + ".json"
        super().__init__(manager, km=kernel, **options)
        self.owns_km = True
        self._watch = watch

    def run(self, **kernel: Any) -> None:
        """Start the kernel, execute the cells, shut it down."""
        self.reset_execution_trackers()
        try:
            with self.setup_kernel(**kernel):
                self._watch.outcome = self._cells()
                if self._watch.outcome.ending is not Ending.DONE:
                    self.shutdown_kernel = "immediate"  # it may be dead or busy for hours
                self.set_widgets_metadata()
        except KeyboardInterrupt:
            self._watch.outcome = self._watch.outcome or Outcome(Ending.INTERRUPTED, "KeyboardInterrupt")

    def start_new_kernel_client(self, **options: Any) -> Any:
        self._watch.tell(Started(self.km.provisioner.pid))
        return super().start_new_kernel_client(**options)

    async def async_execute_cell(self, cell: Any, cell_index: int, **options: Any) -> Any:
        # A cell that runs for hours in silence must not keep what the cells before it left from the disk.
        timer = asyncio.get_running_loop().call_later(SAVE_EVERY, self.nb_man.flush)
        try:
            return await super().async_execute_cell(cell, cell_index, **options)
        finally:
            timer.cancel()

    execute_cell = run_sync(async_execute_cell)

    def _cells(self) -> Outcome:
        code = [index for index, cell in enumerate(self.nb.cells) if cell.cell_type == "code" and cell.source.strip()]
        for number, index in enumerate(code, 1):
            cell = self.nb.cells[index]
            self._watch.tell(AtCell(number, len(code), cell.get("id", "")))
            place = {"cell": number, "cell_id": cell.get("id")}
            self.nb_man.cell_start(cell, index)
            try:
                self.execute_cell(cell, index)
            except CellTimeoutError:
                return Outcome(Ending.TIMED_OUT, message=f"cell {number} ran longer than {self.timeout:g} s", **place)
            except DeadKernelError:
                return Outcome(Ending.KILLED, message=f"the kernel died in cell {number}", **place)
            except CellExecutionError:
                return self._error(cell, place)
            except KeyboardInterrupt:
                return Outcome(Ending.INTERRUPTED, "KeyboardInterrupt", f"interrupted in cell {number}", **place)
            if any(output.output_type == "error" for output in cell.get("outputs", ())):
                return self._error(cell, place)
            self.nb_man.cell_complete(cell, index)
        return Outcome(Ending.DONE)

    def _error(self, cell: Any, place: dict[str, Any]) -> Outcome:
        self.nb_man.cell_exception(cell)
        error = next((o for o in cell.outputs if o.output_type == "error"), None)
        if error is None:
            return Outcome(Ending.ERROR, "Exception", "the cell failed without saying why", **place)
        return Outcome(Ending.ERROR, error.ename, error.evalue, traceback="\n".join(error.traceback), **place)


class _OwnKernel(KernelSpecManager):
    """The kernel `python3` is this interpreter, whatever kernels a user has installed elsewhere."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        import sys

        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


papermill_engines.register(NAME, LabEngine)
