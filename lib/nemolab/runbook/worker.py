"""The process that executes one notebook. Forked from a server that has the imports done (`warm`)."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from nemolab.core.secrets import redact
from nemolab.runbook.job import Ending, Job, Outcome

# Imported once, in the server: papermill and nbclient take longer to import than a small notebook takes to run.
PRELOAD = ["nemolab.cli", "nemolab.runbook.worker", "nemolab.runbook.engine", "papermill.execute"]


def warm() -> Any:
    """The context that starts workers. The first call starts the server, which goes on importing by itself."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    from multiprocessing import forkserver

    forkserver.ensure_running()
    return context


def main(job: Job, channel: Connection) -> None:
    """Execute `job`, telling `channel` of every step and of the outcome."""
    os.setsid()  # a Ctrl-C in the terminal is the runner's to handle
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _end_with_parent()
    log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    with contextlib.suppress(OSError):  # the runner is gone
        channel.send(_execute(job, channel))


def _execute(job: Job, channel: Connection) -> Outcome:
    from nemolab.runbook import engine

    sockets = Path(tempfile.mkdtemp(prefix="nemolab-"))
    watch = engine.Watch(job.raw, sockets / "k", channel.send)
    try:
        _papermill(job, watch)
    except KeyboardInterrupt:
        return watch.outcome or Outcome(Ending.INTERRUPTED, "KeyboardInterrupt", "interrupted")
    except Exception as error:
        logging.getLogger(__name__).exception("worker failed")
        if watch.outcome is None or watch.outcome.ending is Ending.DONE:
            return Outcome(Ending.CRASHED, type(error).__name__, redact(str(error)))
    finally:
        shutil.rmtree(sockets, ignore_errors=True)
    return watch.outcome or Outcome(Ending.CRASHED, message="the notebook was not executed")


def _papermill(job: Job, watch: Any) -> None:
    from papermill.exceptions import PapermillExecutionError
    from papermill.execute import execute_notebook

    from nemolab.runbook import engine

    logger = logging.getLogger("nemolab.worker")
    with contextlib.suppress(PapermillExecutionError):  # known: it is in `watch.outcome`
        execute_notebook(
            str(job.notebook).replace("{", "{{").replace("}", "}}"),  # papermill formats paths
            None,
            parameters=job.parameters,
            engine_name=engine.NAME,
            kernel_name="python3",
            progress_bar=False,
            start_timeout=60,
            execution_timeout=job.cell_timeout,
            watch=watch,
            env={**os.environ, **job.environment},
            kernel_cwd=str(job.cwd),
            log=logger,
        )


def _end_with_parent() -> None:
    """When the runner dies, end like after a Ctrl-C: the notebook is saved and the kernel stopped."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit("nemolab: workers are started by `nemolab run`")
