"""The interface of a reduction, and the logical ranks of a process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np
from torch import nn

T = TypeVar("T")


def parts_for(logical_ranks: int, size: int) -> int:
    """Return the number of parts of a step. It doubles until each process of the world has a part."""
    parts = logical_ranks
    while parts < size:
        parts *= 2
    return parts


def block(rank: int, size: int, logical_ranks: int) -> range:
    """The logical ranks that a process computes: contiguous, sizes differing by at most one."""
    return range(rank * logical_ranks // size, (rank + 1) * logical_ranks // size)


def passes(
    rank: int, size: int, logical_ranks: int, accumulation: int, *, joined: bool
) -> tuple[tuple[int, ...], ...]:
    """The micro-batches that a process computes, one forward pass each; a micro-batch has a number.

    Logical rank r has the micro-batches r * accumulation to (r + 1) * accumulation - 1. If joined, the first
    pass computes the first micro-batch of each logical rank of the process, the next pass the second ones.
    """
    own = block(rank, size, logical_ranks)
    if joined:
        return tuple(tuple(part * accumulation + turn for part in own) for turn in range(accumulation))
    return tuple((number,) for number in range(own.start * accumulation, own.stop * accumulation))


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def nothing() -> None:
    """Do nothing."""


class Reduction(Protocol):
    """A way to sum one step's gradients.

    module          the model, or the module that is called in its place
    needs_backward  whether every rank must run a backward pass even without samples
    joins_parts     whether a process computes its logical ranks in one forward pass
    """

    module: nn.Module
    needs_backward: bool
    joins_parts: bool

    def start(self, piggyback: Callable[[], np.ndarray], computed: Callable[[], None] = nothing) -> None:
        """Begin a step: clear the gradients.

        piggyback  makes a few rows of float64, of the same shape on all ranks and zero in the rows of other
                   ranks: the control vector. It is sent with the gradients, which saves one wait for the
                   network. Called once, after the last forward pass of this process, as late as possible
        computed   called once, when the device computes the last gradients of this process. It may wait for
                   the device; after it, the host waits only for other ranks. On a GPU it is called before
                   `piggyback`
        """

    def compute(self, function: Callable[..., T], *inputs: Any) -> T:
        """Return function(module, *inputs); only gradients of this computation are summed."""

    def micro_batch(self, last: bool) -> AbstractContextManager[None]:
        """Context of one forward and backward pass; `last` marks the process's last one in the step.

        Collective in the last one: the sum over the processes may begin there.
        """

    def finish(self) -> np.ndarray:
        """Write the global sum to every `.grad`; return the rows of all ranks. Collective."""

    def close(self) -> None:
        """Release the process group; call this before the group is destroyed."""
