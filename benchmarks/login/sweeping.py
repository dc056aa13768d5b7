"""The cost of submitting a sweep: `stk sweep`, a loop of `stk submit`, submitit's `map_array`, Hydra.

The time excludes Slurm itself: it is for checking, and for making and writing folders. submitit pickles as
many calls of a function and has no settings; Hydra composes the settings of each run on the compute host.
Neither checks settings, keeps the code or writes records. The loop is extrapolated from a few submissions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures.tables import Table
from benchmarks.login.candidates import HYDRA, HYDRA_NEEDS, STK, hydra, submitit, write_experiment
from benchmarks.login.stubs import Stubs
from benchmarks.login.timing import taken
from benchmarks.measuring.rounds import Case, Size, in_turns

_MAP_ARRAY = "submitit map_array"


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of wall time, of CPU time and of calls of sbatch."""
    runs, singles = (4, 2) if size.quick else (1000, 10)
    file, stubs = write_experiment(folder), Stubs(folder / "bin")
    seeds = ",".join(map(str, range(runs)))

    def measured(commands: Callable[[Path], list[list[str]]], factor: float = 1) -> dict[str, float]:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            stubs.forget()
            variables = {**stubs.variables, "STK_EXPERIMENT_DIR": place}
            found = [taken(command, variables) for command in commands(Path(place))]
            seconds = {name: factor * sum(each[name] for each in found) for name in ("wall_s", "cpu_s")}
            return {**seconds, "sbatch": factor * stubs.count("sbatch")}

    def case(candidate: str, *needs: str, **options: Any) -> Case:
        work = f"{runs:,} runs"
        return Case(work=work, candidate=candidate, measure=partial(measured, **options), needs=needs)

    each = [[*STK, "submit", str(file), f"seed={seed}"] for seed in range(singles)]
    cases = [
        case(_MAP_ARRAY, commands=lambda place: [submitit(place, runs)]),
        case(HYDRA, *HYDRA_NEEDS, commands=lambda place: [hydra(file, place, seeds)]),
        case("loop of stk submit", commands=lambda _: each, factor=runs / singles),
        case("stk sweep", commands=lambda _: [[*STK, "sweep", str(file), f"seed={seeds}"]]),
    ]
    found = in_turns(cases, size.rounds, say)
    return [
        _table(f"A sweep to submitted, {title}", goal, unit, digits).filled(found, figure)
        for title, goal, unit, digits, figure in (
            ("wall time", "1,000 runs in under 3 s", "s", 2, "wall_s"),
            ("CPU time", "none, it shows what waits for the disk", "s", 2, "cpu_s"),
            ("calls of sbatch", "one for each array", "calls", 0, "sbatch"),
        )
    ]


def _table(title: str, goal: str, unit: str, digits: int) -> Table:
    return Table(title=title, goal=goal, unit=unit, better="less", baseline=_MAP_ARRAY, digits=digits)
