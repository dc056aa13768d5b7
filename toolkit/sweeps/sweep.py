"""Sweep: the runs that an experiment file describes. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolkit.errors import UserError
from toolkit.sweeps.command_line import read_space
from toolkit.sweeps.spaces import Space, Values, draw

#: The settings of one run of a sweep: key -> value, as YAML.
Point = Mapping[str, str]

METHODS = ("grid", "zip", "random", "list", "optuna")
#: More than any cluster's arrays hold; a misplaced comma must not cause an hour of composing.
_MOST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The request of a sweep, from the section `sweep`, from the command line, or from both.

    name        None: the experiment's name
    method      grid: every combination; zip: the first values, the second ones, …; random: `samples` draws;
                list: only `runs`; optuna: proposals of its sampler, based on the finished runs
    fixed       keys that are the same in all runs
    parameters  keys with values or a range
    zipped      groups of keys whose values go together in a grid
    runs        explicit runs; with parameters, each run is combined with all their values
    seeds       each run with each of these seeds
    metric      SPLIT.METRIC that the report ranks by; None: the experiment's evaluation.metric
    goal        max or min; None: as the task declares
    """

    name: str | None = None
    method: str = "grid"
    fixed: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Space] = field(default_factory=dict)
    zipped: tuple[tuple[str, ...], ...] = ()
    runs: tuple[Point, ...] = ()
    seeds: tuple[str, ...] = ()
    samples: int | None = None
    seed: int = 0
    sampler: str = "tpe"
    max_parallel: int | None = None
    metric: str | None = None
    goal: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that differ between runs, in the order in which they were written."""
        listed = [key for run in self.runs for key in run]
        seeds = ["seed"] if self.seeds else []
        return tuple(dict.fromkeys([*self.parameters, *listed, *seeds]))

    def overrides(self, point: Point) -> list[str]:
        """Return the overrides of `stk submit` for one run: a section before the keys within it."""
        values = {**self.fixed, **point}
        return [f"{key}={values[key]}" for key in sorted(values, key=lambda key: key.count("."))]

    def points(self) -> list[Point]:
        """All runs except those that a sampler proposes; the last key varies fastest.

        Raises UserError for too many runs, a key that is varied twice, and a range in a grid.
        """
        factors = [*self._factors()]
        count = math.prod(map(len, factors))
        if count > _MOST:
            raise UserError(f"this sweep makes {count:,} runs, more than {_MOST:,}: list fewer values")
        listed = {key for run in self.runs for key in run}
        own = [*self.parameters, *(["seed"] if self.seeds else [])]
        if twice := next((key for key in own if key in listed or own.count(key) > 1), None):
            raise UserError(f"{twice} is varied twice: use only one of parameters, runs and seeds for it")
        return [
            {key: value for part in parts for key, value in part.items()}
            for parts in itertools.product(*factors)
        ]

    def _factors(self) -> Iterator[list[Point]]:
        """Yield the lists that are combined, each with every other."""
        if self.runs:
            yield list(self.runs)
        if self.method == "random":
            yield [self.sample(number) for number in range(self.samples or 0)]
        elif self.method in ("grid", "zip"):
            values = {key: _listed(key, space) for key, space in self.parameters.items()}
            groups = (next((each for each in self.groups if key in each), (key,)) for key in self.parameters)
            for group in dict.fromkeys(groups):
                rows = zip(*(values[key] for key in group), strict=True)
                yield [dict(zip(group, row, strict=True)) for row in rows]
        if self.seeds:
            yield [{"seed": seed} for seed in self.seeds]

    def sample(self, number: int) -> Point:
        """One draw of a random sweep; the same for any number of draws."""
        return {key: draw(space, self.seed, number, key) for key, space in self.parameters.items()}

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The keys that are zipped."""
        return (tuple(self.parameters),) if self.method == "zip" and self.parameters else self.zipped


def with_seeds(sweep: Sweep, points: Sequence[Point]) -> list[Point]:
    """Each point with each of the sweep's seeds."""
    return [{**point, "seed": seed} for point in points for seed in sweep.seeds] if sweep.seeds else [*points]


def _listed(key: str, space: Space) -> tuple[str, ...]:
    if type(space) is not Values:
        raise UserError(
            f"{key} is drawn from {space}, which a grid cannot list: say how many runs are drawn "
            "(--random N, or method: random and samples: N in the file)"
        )
    return space.values


def checked(sweep: Sweep) -> Sweep:
    """Return the sweep. Raises UserError if its parts do not fit together."""
    for name, number in (("samples", sweep.samples), ("max_parallel", sweep.max_parallel)):
        if number is not None and (type(number) is not int or number < 1):
            raise UserError(f"{name} of the sweep: found {number!r}, expected a whole number from 1")
    if sweep.seeds and "seed" in sweep.fixed:
        raise UserError(
            f"seed is {sweep.fixed['seed']} for all runs, but seeds are {', '.join(sweep.seeds)}: use one"
        )
    if sweep.groups and sweep.method not in ("grid", "zip"):
        raise UserError(f"keys are zipped in a grid, but the method is {sweep.method}")
    for group in sweep.groups:
        lengths = {}
        for key in group:
            if sum(key in each for each in sweep.groups) > 1:
                raise UserError(f"{key} is in two groups of zipped keys: join the groups to one")
            if key not in sweep.parameters:
                raise UserError(f"{key} is zipped, but has no list of values")
            lengths[key] = len(_listed(key, sweep.parameters[key]))
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            raise UserError(f"keys that are zipped need the same number of values: {counts}")
    if sweep.method in ("random", "optuna") and not sweep.samples:
        raise UserError(f"the method {sweep.method} needs the number of runs that are drawn: samples")
    if sweep.method in ("random", "optuna") and not sweep.parameters:
        raise UserError(
            "nothing is drawn: no key has a range or several values, such as loguniform(1e-5, 1e-2)"
        )
    if sweep.method == "optuna" and sweep.runs:
        raise UserError("a sampler takes parameters only: leave out `runs`, or use method: random")
    if sweep.method == "optuna" and "seed" in sweep.parameters:
        raise UserError("a sampler proposes no seeds: give them with --seeds, or as `seeds` in the file")
    if sweep.samples and sweep.method not in ("random", "optuna"):
        raise UserError(
            f"samples are drawn by the methods random and optuna, but the method is {sweep.method}"
        )
    if sweep.method == "list" and not sweep.runs:
        raise UserError("the method list needs `runs`, a list of `{key: value, …}`")
    if sweep.method == "list" and sweep.parameters:
        raise UserError("the method list takes no parameters, only `runs`: leave the method out for both")
    return sweep


def with_overrides(sweep: Sweep, overrides: Sequence[str]) -> Sweep:
    """A sweep changed by the command line: `key=a,b`, `key=uniform(a,b)`, or `key=value` for all runs.

    Raises UserError for a key that is given twice, and for text that is not key=value.
    """
    parameters, fixed = dict(sweep.parameters), dict(sweep.fixed)
    seen: set[str] = set()
    for override in overrides:
        key, equals, value = override.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UserError(f"found {override!r}, expected key=value, or key=a,b for several values")
        if key in seen:
            raise UserError(f"{key} is given twice; list all of its values at once: {key}=a,b")
        seen.add(key)
        space = read_space(override)
        by_seeds = key == "seed" and bool(sweep.seeds)
        if space is None and (by_seeds or (sweep.runs and all(key in run for run in sweep.runs))):
            part = "seeds" if by_seeds else "runs"
            raise UserError(
                f"{key} is set for each run by sweep.{part} of the file: change it there, or set sweep.{part}"
            )
        parameters.pop(key, None) if space is None else fixed.pop(key, None)
        if space is None:
            fixed[key] = value
        else:
            parameters[key] = space
    return replace(sweep, parameters=parameters, fixed=fixed)
