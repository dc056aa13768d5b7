"""The benchmarks of `python -m benchmarks`: each has a module with a function `measure`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Size

#: Called with the size, a working folder, and a function that prints progress; returns the tables.
Measure = Callable[[Size, Path, Callable[[str], None]], list[Table]]

BENCHMARKS = {
    "loop": ("benchmarks.stepping.cost", "cost of the loop per step, and memory"),
    "tokens": ("benchmarks.training.throughput", "tokens per second on texts of mixed length"),
    "padding": (
        "benchmarks.data.padding_shares",
        "padding, useful work on 4 ranks, planning 10 million samples",
    ),
    "prepare": ("benchmarks.data.preparing", "a CSV to prepared samples"),
    "stall": ("benchmarks.training.stall", "the cost of a checkpoint for training"),
    "reduction": ("benchmarks.training.reducing", "a step with the exact reduction beside DDP's all-reduce"),
    "goodput": ("benchmarks.cluster.goodput", "goodput under kills, on the Slurm test cluster"),
    "resume": ("benchmarks.cluster.resume", "a preemption to the first new step, on the Slurm test cluster"),
    "reading": ("benchmarks.data.reading", "reading prepared samples at random"),
    "loading": ("benchmarks.data.loading", "samples that take long to read, with worker processes"),
    "submit": ("benchmarks.login.submitting", "one run to the id of its job"),
    "sweep": ("benchmarks.login.sweeping", "1,000 runs to submitted"),
    "status": ("benchmarks.login.status", "`stk status` of 1,000 and 10,000 runs"),
    "gpu": ("benchmarks.gpu", "one GPU: tasks, precisions, stops, failures, waits, speed"),
    "scaling": ("benchmarks.cluster.scaling", "training over 1, 2 and 4 hosts of the test cluster"),
}


def measure(name: str, size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Run a benchmark; return its tables. Raises KeyError for an unknown name."""
    module = importlib.import_module(BENCHMARKS[name][0])
    return cast(Measure, module.measure)(size, folder, say)
