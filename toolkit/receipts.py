"""Receipts: for every step, which samples it read and what its loss was, chained by a hash."""

from __future__ import annotations

import numpy as np

from toolkit.rundir import RunDir
from toolkit.state import Progress


class Receipts:
    """Writes receipts.jsonl. Rank 0 alone does."""

    def __init__(self, run: RunDir, is_main: bool) -> None:
        self._run = run
        self._is_main = is_main

    def start(self, step: int) -> None:
        """Drop what an earlier attempt wrote after the step that this one starts from."""

    def add(self, progress: Progress, samples: np.ndarray, loss: float) -> None:
        """Note a step that was done, and extend the chain in `progress`."""

    def flush(self) -> None:
        """Write what has been noted."""
