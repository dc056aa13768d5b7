"""`stk status` of 1,000 and 10,000 made-up runs, as a table and as JSON, imports included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.figures.tables import Table
from benchmarks.login.candidates import STK
from benchmarks.login.made_up_runs import make_runs
from benchmarks.login.stubs import Stubs
from benchmarks.login.timing import taken
from benchmarks.measuring.rounds import Case, Size, in_turns


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of wall time, of CPU time and of calls of Slurm's programs."""
    few, many = (10, 100) if size.quick else (1000, 10_000)
    stubs = {}
    for count in (few, many):
        say(f"making {count:,} run folders")
        stubs[count] = Stubs(folder / f"{count}" / "bin", make_runs(_experiments(folder, count), count))
    cases = [
        Case(
            work=work,
            candidate=_name(count),
            measure=partial(_status, options, stubs[count], _experiments(folder, count)),
        )
        for work, options in (("as a table", []), ("as JSON", ["--json"]))
        for count in (few, many)
    ]
    found = in_turns(cases, size.rounds, say)
    linear = f"linear (a ratio of {many // few} or less), 10,000 runs in under 3 s"
    return [
        Table(
            title=f"stk status, {title}",
            goal=goal,
            unit=unit,
            better="less",
            baseline=_name(few),
            digits=digits,
        ).filled(found, figure)
        for title, goal, unit, digits, figure in (
            ("wall time", linear, "s", 2, "wall_s"),
            ("CPU time", linear, "s", 2, "cpu_s"),
            ("calls of Slurm's programs", "two for any number of runs", "calls", 0, "calls"),
        )
    ]


def _experiments(folder: Path, count: int) -> Path:
    return folder / f"{count}" / "experiments"


def _name(count: int) -> str:
    return f"stk status of {count:,} runs"


def _status(options: list[str], stubs: Stubs, experiments: Path) -> dict[str, float]:
    stubs.forget()
    found = taken([*STK, "status", *options], {**stubs.variables, "STK_EXPERIMENT_DIR": str(experiments)})
    return {**found, "calls": stubs.count()}
