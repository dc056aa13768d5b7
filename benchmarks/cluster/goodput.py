"""The share of time spent on training while a rank is killed every 30 s, on the Slurm test cluster.

Every tool runs the same training; peers/README.md describes its settings. Each step is useful once, at its
nominal length. The other parts are named; all parts add up to the wall time from the first launch to the
last step. At toy size: two tools, fewer steps, one kill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.cluster.on_cluster import Tool, by_part, drive, measure_tools
from benchmarks.figures.tables import Found, Table
from benchmarks.measuring.rounds import Size

_WORK = "one kill every 30 s"
_SUBMITIT = "submitit script"
_WALL = "wall time"
_TOOLS: tuple[Tool, ...] = (
    ("stk", "stk run", ()),
    ("stk-same-job", "stk run, requeue: same_job", ()),
    ("stk-hf", "stk, HF Trainer with RunCallback", ("accelerate", "transformers")),
    ("stk-lightning", "stk, Lightning with RunCallback", ("lightning",)),
    ("submitit", _SUBMITIT, ("submitit",)),
    ("lightning", "Lightning, SLURMEnvironment", ("lightning",)),
    ("lightning-torchrun", "Lightning, torchrun restarts", ("lightning",)),
    ("hf-restarts", "HF Trainer, torchrun restarts", ("accelerate", "transformers")),
)
#: The parts of peers/accounts.py.
_PARTS = ("useful steps", "steps done twice", "saves", "starting", "ending", "Slurm", "a person", "rest")
#: Seconds until a person submits an ended job again, day and night.
_PERSON_S = 10.0
_STEP_MS = 100


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of goodput, and of where the time went."""
    # A round takes a quarter of an hour.
    few = replace(size, rounds=max(1, size.rounds // 5))
    found = measure_tools(_WORK, _TOOLS, partial(_run, size=size, folder=folder), few, say)
    share = Table(
        title="Goodput under kills",
        goal="the highest",
        unit="%",
        better="more",
        baseline=_SUBMITIT,
        digits=1,
        notes=(
            "",
            f"A job that has not come back {_PERSON_S:.0f} s after its end is submitted again by hand.",
            *_stories(found),
        ),
    )
    parts = Table(
        title="Where the time went",
        goal="none, it explains the goodput; the parts add up to the wall time",
        unit="s",
        better="less",
        baseline=_WALL,
        digits=1,
    )
    return [share.filled(found, "goodput"), parts.filled(by_part(found, _WALL, "wall", _PARTS), "s")]


def _run(name: str, size: Size, folder: Path) -> dict[str, float]:
    return drive(
        "under_kills.py",
        folder,
        {"PEERS_STEPS": 40 if size.quick else 800, "PEERS_SAVE_EVERY": 10 if size.quick else 50},
        tool=name,
        step_ms=_STEP_MS,
        every_s=2 if size.quick else 30,
        kills=1 if size.quick else 1000,
        limit_s=100 if size.quick else 200,
        person_s=5 if size.quick else _PERSON_S,
    )


def _stories(found: Found) -> list[str]:
    """Describe the last run of each tool in one line."""
    lines = []
    for (_, candidate), rounds in found.items():
        if not isinstance(rounds, str):
            last = rounds[-1]
            end = "finished" if last["finished"] else "not finished"
            lines.append(
                f"- {candidate}: {end}, {last['steps']:.0f} steps; {last['kills']:.0f} kills, "
                f"{last['missed']:.0f} missed, {last['by_hand']:.0f} by hand"
            )
    return lines
