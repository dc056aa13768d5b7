"""Seconds from the notice of a preemption to the first new step, on the Slurm test cluster.

The sum leaves out the time in Slurm's queue, which no tool can change; it is shown as a separate part. At toy
size: two tools.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.cluster.on_cluster import Tool, by_part, drive, measure_tools
from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Size

_WORK = "preempted, told by the job's own signal"
_SUBMITIT = "submitit and torch.save"
_WHOLE = "all but Slurm"
_TOOLS: tuple[Tool, ...] = (
    ("stk", "stk run", ()),
    ("submitit", _SUBMITIT, ("submitit",)),
    ("lightning", "Lightning", ("lightning",)),
)
#: The parts of peers/comeback.py.
_PARTS = ("last step", "save and leave", "Slurm", "launch", "imports", "rendezvous", "load", "first new step")


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of the sum and of its parts."""
    found = measure_tools(_WORK, _TOOLS, partial(_run, size=size, folder=folder), size, say)
    whole = Table(
        title="From a preemption to the first new step, without Slurm's own wait",
        goal="the least",
        unit="s",
        better="less",
        baseline=_SUBMITIT,
    )
    parts = Table(
        title="Its parts",
        goal="none, they explain the sum, to which Slurm is not added",
        unit="s",
        better="less",
        baseline=_WHOLE,
    )
    return [whole.filled(found, "whole"), parts.filled(by_part(found, _WHOLE, "whole", _PARTS), "s")]


def _run(name: str, size: Size, folder: Path) -> dict[str, float]:
    return drive(
        "comeback.py",
        folder,
        # Many more steps than needed: a run that ends before it is preempted measures nothing.
        {"PEERS_STEPS": 600, "PEERS_SAVE_EVERY": 50},
        tool=name,
        step_ms=100,
        at_step=10 if size.quick else 75,
        limit_s=120,
    )
