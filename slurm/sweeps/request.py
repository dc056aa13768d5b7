"""Wanted: the runs of a sweep that a command requests, with the existing runs and record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from slurm.status.rows import RunStatus
from slurm.sweeps.candidates import Candidate, Combination, candidates, combine, name_of, states
from slurm.sweeps.submit_array import settle_arrays, unsettled_arrays
from toolkit.config.schema import NAME_PATTERN, Experiment
from toolkit.config.serialize import to_plain
from toolkit.errors import UserError
from toolkit.precheck.last_run import identity_changes
from toolkit.sweeps.folder import SWEEPS, Member, Record, SweepDir, read_record
from toolkit.sweeps.results.ranking import checked_goal, declared_goal, with_split
from toolkit.sweeps.section import load_sweep, of_section
from toolkit.sweeps.spaces import LogUniform
from toolkit.sweeps.sweep import Point, Sweep, checked, with_overrides, with_seeds
from toolkit.system.output.few import few

#: Maximum number of changed keys that are named.
_MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A sweep that a command requests.

    combinations  all runs in their order; several may be the same run
    known         the runs with their states, each once
    record        the record to write
    removed       the states of runs of an earlier command that this one does not request
    """

    folder: SweepDir
    combinations: Sequence[Combination]
    known: Sequence[Candidate]
    record: Record
    removed: Sequence[RunStatus]
    warnings: Sequence[str] = ()

    @property
    def to_start(self) -> list[Candidate]:
        return [one for one in self.known if not one.skipped]

    @property
    def live(self) -> list[str]:
        """Job ids of the sweep's live runs."""
        rows = [*(one.now for one in self.known), *self.removed]
        return [row.job_id for row in rows if row is not None and row.is_live and row.job_id]


def describe(config: Path, overrides: Sequence[str]) -> Sweep:
    """Return the sweep of a file and a command line. Raises ConfigError and UserError."""
    own = [each for each in overrides if of_section(each)]
    sweep = load_sweep(config, own) or Sweep()
    return with_overrides(sweep, [each for each in overrides if each not in own])


def want(config: Path, sweep: Sweep, parent: Path) -> Wanted:
    """Return the wanted runs and their states; calls Slurm at most twice for all of them.

    Raises ConfigError with the faults of all runs, and UserError for contradictions, or if a sweep of another
    file has this name.
    """
    sweep = checked(sweep)
    if not (sweep.keys or sweep.fixed):
        raise UserError(
            "no key has several values, so there is nothing to sweep. Give them on the command line, such as "
            "optimizer.lr=1e-3,1e-4 (for a command params.lr=1e-3,1e-4, before the --), in a section `sweep` "
            "of the experiment file, or as --seeds 1,2,3. `stk submit` starts one run."
        )
    warnings: list[str] = []
    points = sweep.points()
    if sweep.method == "optuna":
        # The sampler needs the name of the sweep, and the experiment may need what is drawn.
        points = with_seeds(sweep, [sweep.sample(0)])
    combinations = combine(config, sweep, points)
    folder = SweepDir(parent / SWEEPS / _name(sweep.name or combinations[0].experiment.name))
    before = _earlier_record(folder, config)
    was_lost = bool(unsettled_arrays(folder))
    settle_arrays(folder)
    if sweep.method == "optuna":
        ranking = _ranking(sweep, combinations[0].experiment)
        # The command is repeated for the lost runs, not for more of them.
        if before is not None and was_lost and not unsettled_arrays(folder):
            points = [each.values for each in before.members]
            lost = f"Slurm's answer about an array of {folder.name} was lost"
            warnings.append(f"{lost}: its missing runs are submitted, and no new ones are proposed this time")
        else:
            points = _proposed(folder, sweep, before, *ranking)
        combinations = combine(config, sweep, points)
    record = _record(folder, config, sweep, combinations, before)
    known = candidates(combinations, parent)
    warnings += _changes(folder, combinations, record.removed)
    if len(known) == 1 and not (sweep.seeds or sweep.samples):
        warnings.append("this sweep is one run: no key has several values, or all make the same run")
    gone = list(states([folder.run(each.run_id) for each in record.removed]).values())
    return Wanted(
        folder=folder, combinations=combinations, known=known, record=record, removed=gone, warnings=warnings
    )


def _changes(folder: SweepDir, wanted: Iterable[Combination], removed: Sequence[Member]) -> list[str]:
    """Return a message with the keys that make another run of the values of an earlier command, if any."""
    # The newest is first in `removed`, and is the one to compare with.
    earlier = {name_of(each.values): each.run_id for each in reversed(removed)}
    for each in wanted:
        before = earlier.get(name_of(each.values))
        if before is not None and not folder.run(each.run_id).path.exists():
            keys = identity_changes(folder.run(before), each.experiment)
            unlike = f"{each.run_id} is another run than {before}, which has the same values in this sweep"
            if keys:
                return [f"{unlike}, because other keys differ: {few(keys, _MOST)}"]
    return []


def _name(name: str) -> str:
    """Return a name that is valid for a folder and a job. Raises UserError for others."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise UserError(f"found {name!r} as a sweep's name, expected letters, digits, dot, dash, underscore")
    return name


def _proposed(folder: SweepDir, sweep: Sweep, before: Record | None, metric: str, goal: str) -> list[Point]:
    """Return the points of the existing runs, and those that the sampler proposes next."""
    # Imported here, because few sweeps have a sampler, and the others need no results.
    from toolkit.sweeps.results.collect import read_results
    from toolkit.sweeps.sampler import propose

    if before is None:
        return with_seeds(sweep, propose(sweep, None))
    known = read_results(folder, before, {}, metric=metric, goal=goal)
    return [*(each.values for each in before.members), *with_seeds(sweep, propose(sweep, known))]


def _earlier_record(folder: SweepDir, config: Path) -> Record | None:
    """Return the sweep's record; None without one. Raises UserError if it is of another file."""
    before = read_record(folder)
    if before is not None and before.config != str(config.resolve()):
        other = before.file or "another command"
        # The words of a command identify it, its parameters do not.
        more = "" if before.file else ", or repeat its command and give what changes as params.KEY=VALUE"
        raise UserError(
            f"there is a sweep {folder.name} already, of {other}: give this one another name with --name, or "
            f"`name:` in the section sweep{more}"
        )
    return before


def _record(
    folder: SweepDir, config: Path, sweep: Sweep, combinations: Sequence[Combination], before: Record | None
) -> Record:
    metric, goal = _ranking(sweep, combinations[0].experiment)
    members = {each.run_id: Member(run_id=each.run_id, values=each.values) for each in reversed(combinations)}
    earlier = {each.run_id: each for each in (before.everyone if before else ())}
    record = Record(
        name=folder.name,
        config=str(config.resolve()),
        method=sweep.method,
        metric=metric,
        goal=goal,
        task=combinations[0].experiment.task.kind,
        spaces={key: str(space) for key, space in sweep.parameters.items()},
        log=tuple(key for key, space in sweep.parameters.items() if isinstance(space, LogUniform)),
        max_parallel=sweep.max_parallel,
        members=tuple(reversed(members.values())),
        removed=tuple(each for run_id, each in earlier.items() if run_id not in members),
    )
    return record if before is None else replace(record, time=before.time)


def _ranking(sweep: Sweep, experiment: Experiment) -> tuple[str, str]:
    """Return SPLIT.METRIC and its goal. Raises UserError for a wrong goal, or an undeclared metric."""
    name, _, goal = (sweep.metric or experiment.evaluation.metric).partition(":")
    # A dot in the experiment's own is a part of its name.
    metric = with_split(name) if sweep.metric else f"validation.{name}"
    task = to_plain(experiment.task)
    if wanted := sweep.goal or (sweep.metric and goal):
        return metric, checked_goal(wanted, metric, task)
    return metric, goal or declared_goal(metric, task)
