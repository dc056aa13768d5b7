"""The runs of a sweep as experiments that have all been checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.config import load, run_id, to_plain
from toolkit.config.composition.yaml_files import Files
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError, Fault, UserError
from toolkit.sweeps.sweep import Point, Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One experiment of a sweep.

    values   what the keys of the sweep are set to here, as written
    """

    values: Point
    experiment: Experiment
    run_id: str

    def __str__(self) -> str:
        return tell(self.values)


def tell(values: Point) -> str:
    """Return the name of a combination: its keys and values."""
    return " ".join(f"{key}={value}" for key, value in values.items())


def combine(config: Path, sweep: Sweep, points: Sequence[Point]) -> list[Combination]:
    """Compose and check the experiment of every point.

    Raises ConfigError with the faults of all, each with the runs that have it, and UserError for resources
    that differ.
    """
    found = list(_load_all(config, sweep, points))
    _check_resources(found)
    return found


def _load_all(config: Path, sweep: Sweep, points: Sequence[Point]) -> Iterator[Combination]:
    faults: dict[Fault, list[str]] = {}
    files = Files()
    for point in points:
        try:
            experiment = load(config, sweep.overrides(point), files=files)
        except ConfigError as error:
            for fault in error.faults:
                faults.setdefault(fault, []).append(tell(point))
            continue
        yield Combination(values=point, experiment=experiment, run_id=run_id(experiment))
    if faults:
        raise ConfigError([_named(fault, names, len(points)) for fault, names in faults.items()])


def _named(fault: Fault, names: Sequence[str], count: int) -> Fault:
    """A fault that also says which combinations have it."""
    if len(names) == count:
        return fault
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    where = f"in the run with {names[0]}{more}"
    hint = f"{fault.hint}; {where}" if fault.hint else where
    return Fault(key=fault.key, problem=fault.problem, origin=fault.origin, hint=hint)


def _check_resources(found: Sequence[Combination]) -> None:
    """Raise UserError unless all ask for the same: a job array gives each of its tasks the same."""
    for other in found[1:]:
        if other.experiment.resources == found[0].experiment.resources:
            continue
        one, two = (to_plain(each.experiment.resources) for each in (found[0], other))
        key = next(key for key in one if one[key] != two[key])
        raise UserError(
            f"resources.{key} is {one[key]!r} with {found[0]} and {two[key]!r} with {other}, but all "
            "tasks of a job array get the same. Sweep keys of what is computed; resources take a sweep each"
        )
