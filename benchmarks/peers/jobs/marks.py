"""Marks that rank 0 of a tool writes for the driver: the phases of a start, and its saves.

A mark is a line of marks.jsonl. Imports nothing slow, so that the first mark is not delayed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit.system.processes import process_start_time

MARKS = "marks.jsonl"


def mark(folder: Path, name: str, **facts: float) -> None:
    """Write a mark on rank 0: imported, met, loaded or save."""
    # torchrun's RANK first: its srun has one task.
    rank = os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0"))
    if rank == "0":
        line = {"mark": name, "time": time.time(), "pid": os.getpid(), "began": process_start_time(), **facts}
        with (folder / MARKS).open("a") as file:
            file.write(json.dumps(line) + "\n")


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Mark a save during which training pauses."""
    begun = time.time()
    yield
    mark(folder, "save", begun=begun)
