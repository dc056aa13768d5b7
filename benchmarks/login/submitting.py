"""The cost of submitting one run to Slurm, up to the job's id, and of showing the plan.

`stk submit` and `stk plan` are compared with sbatch with a finished script, submitit with a function, and a
Hydra app with the same experiment file and the submitit launcher. These tools keep no copy of the code and
check neither the settings nor the limits of the cluster.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.figures.tables import Table
from benchmarks.login.candidates import HYDRA, HYDRA_NEEDS, STK, hydra, submitit, write_experiment
from benchmarks.login.stubs import Stubs
from benchmarks.login.timing import median_of, taken
from benchmarks.measuring.rounds import Case, Size, in_turns

_SBATCH = "sbatch alone"


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of CPU time and of wall time."""
    file, stubs = write_experiment(folder), Stubs(folder / "bin")
    variables = {**stubs.variables, "STK_EXPERIMENT_DIR": str(folder / "experiments")}
    (folder / "job.sh").write_text("#!/bin/bash\nsrun true\n")
    # Each call has another seed: a run that is already submitted is not submitted again.
    numbers = itertools.count(1)
    ways: dict[str, tuple[Callable[[int], list[str]], tuple[str, ...]]] = {
        _SBATCH: (lambda _: ["sbatch", str(folder / "job.sh")], ()),
        "submitit": (lambda number: submitit(folder / f"submitit-{number}", 1), ()),
        HYDRA: (lambda number: hydra(file, folder / f"hydra-{number}", str(number)), HYDRA_NEEDS),
        "stk submit": (lambda number: [*STK, "submit", str(file), f"seed={number}"], ()),
        "stk plan": (lambda number: [*STK, "plan", str(file), f"seed={number}"], ()),
    }

    def one(command: Callable[[int], list[str]]) -> dict[str, float]:
        return taken(command(next(numbers)), variables)

    cases = [
        Case(
            work="one run",
            candidate=candidate,
            measure=partial(median_of, partial(one, command), 1 if size.quick else 5),
            needs=needs,
        )
        for candidate, (command, needs) in ways.items()
    ]
    found = in_turns(cases, size.rounds, say)
    cpu = Table(
        title="Handing one run to Slurm, CPU time",
        goal="`stk submit` and `stk plan` within 0.5 s of `sbatch` alone",
        unit="s",
        better="less",
        baseline=_SBATCH,
        digits=3,
    )
    wall = Table(
        title="Handing one run to Slurm, wall time",
        goal="`stk submit` faster than Hydra's launcher",
        unit="s",
        better="less",
        baseline=HYDRA,
        digits=3,
    )
    return [cpu.filled(found, "cpu_s"), wall.filled(found, "wall_s")]
