"""What a reduction is, and which logical ranks a process carries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from torch import nn


def block(rank: int, size: int, logical_ranks: int) -> range:
    """The logical ranks that a process carries: contiguous, sizes differing by at most one."""
    return range(rank * logical_ranks // size, (rank + 1) * logical_ranks // size)


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


class Reduction(Protocol):
    """How one step's gradients become one sum.

    module          what the task's loss calls in place of the model
    needs_backward  whether every rank must run a backward pass even without samples
    """

    module: nn.Module
    needs_backward: bool

    def start(self, riding: Callable[[], np.ndarray]) -> None:
        """Begin a step: no gradient yet.

        riding  makes a few rows of numbers that travel along, float64 of the same shape on all ranks, zero
                where they are another's: the control vector, which by itself would wait for the network
                once more. Called once, after the last forward pass of this process: as late as costs nothing.
        """

    def leaf(self, last: bool) -> AbstractContextManager[None]:
        """Surround the backward pass of one logical rank; `last` of this process in the step.

        Collective where it is the last: the sum over the processes may begin in it.
        """

    def finish(self) -> np.ndarray:
        """Leave the global sum in every `.grad`; return the rows of all ranks. Collective."""

    def close(self) -> None:
        """Let go of the process group; to be called before it is destroyed."""
