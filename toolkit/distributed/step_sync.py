"""The control vector: one small sum per step with everything that the ranks must agree on.

It has one row for each micro-batch of the step. The process that computes the micro-batch fills the row,
the others leave it zero, so the sum over the ranks is exact. Adding the rows in order gives the same bytes
on any number of processes. A rank never acts on a local flag, only on these totals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import torch

from toolkit.task import Loss


class _Column(IntEnum):
    """Columns of the control vector; the task's own sums follow."""

    LOSS = 0
    COUNT = 1
    TOKENS = 2
    STOP = 3


_FIRST_SUM = len(_Column)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTotals:
    """The totals of a step, the same on every rank.

    loss     summed over everything counted
    count    how much was counted
    tokens   tokens read, without padding
    stop     whether any rank was asked to stop
    sums     the task's own additive scores
    bad_rows micro-batches whose loss is not finite
    """

    loss: float
    count: float
    tokens: float
    stop: bool
    sums: Mapping[str, float]
    bad_rows: tuple[int, ...] = ()

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.loss)


def sync_shape(rows: int, train_sums: tuple[str, ...]) -> tuple[int, int]:
    """Rows and columns of the control vector."""
    return rows, _FIRST_SUM + len(train_sums)


class StepSync:
    """Collects what this process did in a step, and reads the totals of all processes."""

    def __init__(self, device: torch.device, rows: int, train_sums: tuple[str, ...]) -> None:
        self._device = device
        self._shape = sync_shape(rows, train_sums)
        self._train_sums = train_sums
        self._done: list[tuple[int, Loss]] = []
        self._read: list[list[float]] = []

    def add(self, row: int, loss: Loss) -> None:
        """Add the loss of one micro-batch; does not wait for the device."""
        self._done.append((row, loss))

    def read_losses(self) -> None:
        """Wait for this process's device, and read the losses from it."""
        self._read = self._numbers() if self._done else []

    def local_rows(self, first_row: int, stop: bool) -> np.ndarray:
        """Return the rows of this process for the sum over the ranks; clear the collected losses.

        first_row  a row of this process, which also carries its stop flag
        """
        rows = np.zeros(self._shape)
        if len(self._read) < len(self._done):
            self.read_losses()
        for (row, loss), (total, count, *sums) in zip(self._done, self._read, strict=True):
            rows[row, : _Column.STOP] = total, count, loss.tokens
            rows[row, _FIRST_SUM:] = sums
        self._done.clear()
        self._read.clear()
        rows[first_row, _Column.STOP] = stop
        return rows

    def combine(self, rows: np.ndarray) -> StepTotals:
        """Totals of the step, from the summed rows of all ranks."""
        total = rows.sum(axis=0)
        return StepTotals(
            loss=float(total[_Column.LOSS]),
            count=float(total[_Column.COUNT]),
            tokens=float(total[_Column.TOKENS]),
            stop=bool(total[_Column.STOP] > 0),
            sums=dict(zip(self._train_sums, total[_FIRST_SUM:].tolist(), strict=True)),
            bad_rows=tuple(np.flatnonzero(~np.isfinite(rows[:, _Column.LOSS])).tolist()),
        )

    def _numbers(self) -> list[list[float]]:
        """The total, the count and the sums of each loss."""
        if self._device.type == "cpu":
            # Ten times faster than the tensors below, which matters for the short steps of a small model.
            return [[loss.total.item(), loss.counted, *loss.sums.tolist()] for _, loss in self._done]
        # One transfer from the device for the whole step.
        found: list[list[float]] = torch.stack([self._on_device(loss) for _, loss in self._done]).tolist()
        return found

    def _on_device(self, loss: Loss) -> torch.Tensor:
        count = loss.count
        if not isinstance(count, torch.Tensor):
            # Filled there: a copy from the host would wait.
            count = torch.full((), count, dtype=torch.float64, device=self._device)
        numbers = torch.stack([loss.total.detach().double(), count.double()])
        return torch.cat([numbers, loss.sums.double()])
