"""The runs of a sweep before a submission: checked experiments and states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from slurm.status.rows import RunStatus, status
from toolkit.config import load, run_id, to_plain
from toolkit.config.composition.yaml_files import Files
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError, Fault, UserError
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.sweep import Point, Sweep
from toolkit.system.output.few import few


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One experiment of a sweep.

    values   values of the sweep's keys, as written
    """

    values: Point
    experiment: Experiment
    run_id: str


def name_of(values: Point) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())


def combine(config: Path, sweep: Sweep, points: Sequence[Point]) -> list[Combination]:
    """Compose and check the experiment of every point.

    Raises ConfigError with the faults of all points, each with a run that has it, and UserError if resources
    differ.
    """
    found: list[Combination] = []
    faults: dict[Fault, list[str]] = {}
    files = Files()
    for point in points:
        try:
            experiment = load(config, sweep.overrides(point), files=files)
        except ConfigError as error:
            for fault in error.faults:
                faults.setdefault(fault, []).append(name_of(point))
            continue
        found.append(Combination(values=point, experiment=experiment, run_id=run_id(experiment)))
    if faults:
        raise ConfigError([_named(fault, names, len(points), sweep) for fault, names in faults.items()])
    _check_resources(found)
    return found


def _named(fault: Fault, names: Sequence[str], count: int, sweep: Sweep) -> Fault:
    """Return a fault whose hint names the seeds that set its key, and a run with it unless all have it."""
    hints = [fault.hint]
    if sweep.seeds and fault.key == "seed":
        hints.append("the seeds of the sweep set it")
        if fault.problem.startswith("there is no such key"):
            hints.append("sweep a key that the command takes, such as params.seed=1,2")
    if len(names) < count:
        hints.append(f"in the run with {few(names, 1)}")
    return replace(fault, hint="; ".join(filter(None, hints)))


def _check_resources(found: Sequence[Combination]) -> None:
    """Raise UserError unless all have the same resources, as the tasks of a job array must."""
    for other in found[1:]:
        if other.experiment.resources == found[0].experiment.resources:
            continue
        one, two = (to_plain(each.experiment.resources) for each in (found[0], other))
        key = next(key for key in one if one[key] != two[key])
        raise UserError(
            f"resources.{key} is {one[key]!r} with {name_of(found[0].values)} and {two[key]!r} with "
            f"{name_of(other.values)}, but all tasks of a job array get the same resources. Start one sweep "
            "for each value of this key"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One run of a sweep.

    now       None for a run that has no folder yet
    skipped   why it is not started: it has finished or is live; empty if it will be started
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
    """Return the runs of these combinations, each once, with their states; calls Slurm at most twice."""
    by_run = {RunDir(parent / each.run_id): each.experiment for each in combinations}
    now = states(list(by_run))
    return [Candidate(experiment=by_run[run], run=run, now=now.get(run)) for run in by_run]


def states(runs: Sequence[RunDir]) -> dict[RunDir, RunStatus]:
    """Return the states of the runs that have a folder."""
    there = [run for run in runs if run.config.exists()]
    return dict(zip(there, status(there), strict=True))
