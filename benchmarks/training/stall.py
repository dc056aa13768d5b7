"""The cost of a checkpoint for training: the pause, and slower steps beside the write.

One process and one thread, as in the worker, on the CPU, with a state of 803 MB. Checkpoints are in the
temporary folder: TMPDIR chooses the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, Size, call, in_turns

_MEGABYTES = 803
_SYNCHRONOUS = "torch.save, fsync, rename"
_QUIET = "no save going on"
_FRESH = "dcp.async_save"
_REUSED = "dcp.async_save, its DefaultStager kept"
_WAYS = {_SYNCHRONOUS: "torch.save", _FRESH: "dcp", _REUSED: "dcp, reused", "ours": "ours"}

Found = dict[tuple[str, str], "list[dict[str, float]] | str"]


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of pauses, of steps during a save, and of the total cost of a save."""
    megabytes, rows, saves = (13, 16, 1) if size.quick else (_MEGABYTES, 128, 2)
    work = f"{megabytes} MB"
    train = partial(
        call,
        "benchmarks.training.saving:train",
        megabytes=megabytes,
        rows=rows,
        saves=saves,
        folder=str(folder),
    )
    cases = [
        Case(work=work, candidate=candidate, measure=partial(train, way=way))
        for candidate, way in _WAYS.items()
    ]
    found = in_turns(cases, size.rounds, say)
    return [_stalls(found), *_steps(found), *_costs(found)]


def _stalls(found: Found) -> Table:
    table = Table(
        title="Training stands still for a checkpoint",
        goal="at most 0.1 s",
        unit="s",
        better="less",
        baseline=_SYNCHRONOUS,
        digits=3,
        notes=("A save that is asked for while another one goes on waits for that.",),
    )
    kinds = {"": "stall_s", ", the first of an attempt": "first_s", ", one step after another": "midst_s"}
    for kind, figure in kinds.items():
        table.filled(
            {(work + kind, candidate): rounds for (work, candidate), rounds in found.items()}, figure
        )
    return table


def _steps(found: Found) -> list[Table]:
    """Return tables of wall and CPU time: together they separate waits for a core from slow memory."""
    clock = Table(
        title="A step while a checkpoint is being written",
        goal="under 3 % more",
        unit="ms",
        better="less",
        baseline=_QUIET,
        digits=1,
        notes=("Ratios are of steps of the same process.",),
    )
    processor = Table(
        title="The same on the processor, training's thread alone",
        goal="none, it tells slower memory from waiting for a core or for the interpreter's lock",
        unit="ms",
        better="less",
        baseline=_QUIET,
        digits=1,
    )
    for table, tail in ((clock, "_ms"), (processor, "_cpu_ms")):
        for (work, candidate), rounds in found.items():
            if candidate != _SYNCHRONOUS:
                table.filled(_beside(f"{work}, {candidate}", candidate, rounds, tail), "step")
    return [clock, processor]


def _beside(work: str, candidate: str, rounds: list[dict[str, float]] | str, tail: str) -> Found:
    """Return the steps during a save and without one as two candidates of one piece of work."""
    if isinstance(rounds, str):
        return {(work, candidate): rounds}
    return {
        (work, name): [_only(figures, f"{figure}{tail}") for figures in rounds]
        for name, figure in ((_QUIET, "quiet"), (f"{candidate}, writing", "beside"))
    }


def _only(figures: Mapping[str, float], name: str) -> dict[str, float]:
    return {"step": figures[name]} if name in figures else {}


def _costs(found: Found) -> list[Table]:
    lost = Table(
        title="What a checkpoint costs training in all",
        goal="less than the others",
        unit="s",
        better="less",
        baseline=_SYNCHRONOUS,
        digits=3,
        notes=("Standing still, and the longer steps until the write has ended.",),
    )
    written = Table(
        title="Until a checkpoint is on the disk, beside training",
        goal="none: ours pauses on purpose, and hurries where training waits",
        unit="s",
        better="less",
        baseline=_SYNCHRONOUS,
    )
    return [lost.filled(found, "lost_s"), written.filled(found, "written_s")]
