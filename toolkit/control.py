"""The control vector: the one small sum that a step needs, carrying all that the ranks agree on.

One row for each micro-batch of the step, filled by the process that carries it and zero elsewhere;
summing such rows over the ranks rounds nothing, and adding them up in the order of the rows gives
the same bytes on any number of processes. Nobody acts on a local flag: only on what comes back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from toolkit.tasks.base import Loss

_FIXED = ("loss", "count", "tokens", "stop", "step_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What all ranks know after a step, the same on each.

    loss     summed over everything counted
    count    how much was counted
    tokens   real tokens read
    stop     whether any rank was asked to stop
    step_s   seconds that the slowest rank took for the step before
    sums     the task's own additive scores
    bad_rows micro-batches whose loss is not finite
    """

    loss: float
    count: float
    tokens: float
    stop: bool
    step_s: float
    sums: Mapping[str, float]
    bad_rows: tuple[int, ...] = ()

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.loss)


def control_shape(rows: int, train_sums: tuple[str, ...]) -> tuple[int, int]:
    """Rows and columns of the control vector."""
    return rows, len(_FIXED) + len(train_sums)


class Control:
    """Collects what this process did in a step; tells what all of them did."""

    def __init__(self, device: torch.device, rows: int, train_sums: tuple[str, ...]) -> None:
        self._device = device
        self._shape = control_shape(rows, train_sums)
        self._train_sums = train_sums
        self._done: list[tuple[int, Loss]] = []

    def add(self, row: int, loss: Loss) -> None:
        """Note the loss of one micro-batch. Waits for no device."""
        self._done.append((row, loss))

    def rows(self, first_row: int, stop: bool, step_s: float) -> np.ndarray:
        """What this process did, for the sum over the ranks; it is forgotten here.

        first_row is a row of this process's own, which carries its flags.
        """
        rows = np.zeros(self._shape)
        if self._done:
            self._fill(rows)
        rows[first_row, 3:5] = stop, step_s
        return rows

    def agreement(self, rows: np.ndarray) -> Agreement:
        """What the sum of all ranks' rows says."""
        total = rows.sum(axis=0)
        return Agreement(
            loss=float(total[0]),
            count=float(total[1]),
            tokens=float(total[2]),
            stop=bool(total[3] > 0),
            step_s=float(rows[:, 4].max()),
            sums=dict(zip(self._train_sums, total[len(_FIXED) :].tolist(), strict=True)),
            bad_rows=() if math.isfinite(total[0]) else _not_finite(rows[:, 0]),
        )

    def _fill(self, rows: np.ndarray) -> None:
        for (row, loss), (total, *sums) in zip(self._done, self._numbers(), strict=True):
            rows[row, :3] = total, loss.count, loss.tokens
            rows[row, len(_FIXED) :] = sums
        self._done.clear()

    def _numbers(self) -> list[list[float]]:
        """The total and the sums of each loss."""
        if self._device.type == "cpu":
            # A tenth of what the tensors below cost, and a step of a small model is short.
            return [[loss.total.item(), *loss.sums.tolist()] for _, loss in self._done]
        # One transfer from the device for the whole step.
        values = [
            torch.cat([loss.total.detach().double()[None], loss.sums.double()]) for _, loss in self._done
        ]
        found: list[list[float]] = torch.stack(values).tolist()
        return found


def _not_finite(losses: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(~np.isfinite(losses)).tolist())
