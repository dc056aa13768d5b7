"""Marks of a peer's rank 0 about a start, for the driver: its beginning, its waits, its saves.

A mark is a line of marks.jsonl. Imports nothing slow, so that the first mark stands before the imports.
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
    """Write down what this start has come to: imported, met, loaded. Rank 0 writes."""
    # torchrun's RANK first: its srun has one task.
    rank = os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0"))
    if rank == "0":
        line = {"mark": name, "time": time.time(), "pid": os.getpid(), "began": process_start_time(), **facts}
        with (folder / MARKS).open("a") as file:
            file.write(json.dumps(line) + "\n")


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Mark a save that training stands still for."""
    begun = time.time()
    yield
    mark(folder, "save", begun=begun)
