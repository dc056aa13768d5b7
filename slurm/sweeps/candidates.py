"""The state of each run of a sweep before a submission."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm.status.rows import RunStatus, status
from slurm.sweeps.sweep_experiments import Combination
from toolkit.config.schema import Experiment
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One run of a sweep.

    now       None for a run that has no folder yet
    skipped   why it is not started: it has finished, or is live already; empty where it is to be started
    """

    experiment: Experiment
    run: RunDir
    now: RunStatus | None

    @property
    def skipped(self) -> str:
        if self.now is None:
            return ""
        if self.now.state == "finished":
            return "has finished"
        job = f", job {self.now.job_id}" if self.now.job_id else ""
        return f"is {self.now.state}{job}" if self.now.is_live else ""

    @property
    def change(self) -> str:
        """Return the planned change: `new`, `unchanged` or `goes on`."""
        if self.now is None:
            return "new"
        return "unchanged" if self.skipped else "goes on"


def candidates(combinations: Iterable[Combination], parent: Path) -> list[Candidate]:
    """Return the states of the runs of these, each run once; with two scheduler calls in all."""
    by_run = {RunDir(parent / each.run_id): each.experiment for each in combinations}
    now = states(list(by_run))
    return [Candidate(experiment=by_run[run], run=run, now=now.get(run)) for run in by_run]


def states(runs: Sequence[RunDir]) -> dict[RunDir, RunStatus]:
    """Return the states of runs, without those that have no folder."""
    there = [run for run in runs if run.config.exists()]
    return dict(zip(there, status(there), strict=True))
