"""Runs whose recordings a new run takes: which they are, and which of them made which recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemolab.core.errors import UsageError
from nemolab.runbook import files, store
from nemolab.runbook.record import Measured, RunRecord


@dataclass(frozen=True, slots=True)
class Source:
    """A run and its folder."""

    record: RunRecord
    folder: Path

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The runs that measured what it holds: itself, or those whose recordings it took."""
        run = self.record
        first = Measured(run_id=run.measured_in or run.run_id, started=run.measured or run.started, host=run.host)
        return (first, *run.measured_also)

    def made_by(self, name: str) -> str:
        """Id of the run that made the recording `name`."""
        return next((step.also[name] for step in self.record.steps if name in step.also), self.measured[0].run_id)


def read(names: Sequence[str]) -> tuple[Source, ...]:
    """The named runs, in that order.

    Raises:
        UsageError: a replay, a run that still runs, one that was measured in part elsewhere, or runs of two runbooks.
    """
    found = tuple(Source(store.read(folder), folder) for folder in map(store.find, names))
    for source in found:
        run = source.record
        if run.replay_of:
            raise UsageError("a replay did not measure", where=run.run_id, fix=f"--recorded {run.replay_of}")
        if any(step.anew for step in run.steps):
            fix = " ".join(f"--recorded {each.run_id}" for each in source.measured) + ", themselves"
            raise UsageError("part of that run was measured anew, elsewhere", where=run.run_id, fix=fix)
        if run.runbook != found[0].record.runbook:
            raise UsageError(
                f"that is a run of {run.runbook}, not of {found[0].record.runbook}",
                where=run.run_id,
                fix="runs of one runbook",
            )
        store.refuse_running(run)
    return found


def measured(sources: Sequence[Source]) -> tuple[Measured, ...]:
    """The runs that measured what the sources hold, each once."""
    return tuple({each.run_id: each for source in sources for each in source.measured}.values())


def fields(sources: Sequence[Source]) -> dict[str, Any]:
    """What the new run's record says of them."""
    first, *also = measured(sources)
    return {
        "measured_in": first.run_id,
        "measured": first.started,
        "measured_also": tuple(also),
        "host": first.host,
    }


def origins(sources: Sequence[Source], recordings: Mapping[str, str]) -> dict[str, str]:
    """Id of the run that made a recording, for each that one of them holds.

    Args:
        recordings: path relative to the run folder -> SHA-256.
    """
    return {
        name: source.made_by(name)
        for source in sources
        for name, digest in recordings.items()
        if files.has(source.folder / name, digest)
    }
