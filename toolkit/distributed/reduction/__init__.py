"""Adding up the gradients of a step's logical ranks, in one fixed tree or by DDP's all-reduce.

Both leave in `.grad`, on every rank, the sum over all logical ranks; the loop divides once by the
global count. A process computes a contiguous block of logical ranks.
"""

from __future__ import annotations

from toolkit.distributed.reduction.exact import ExactReduction
from toolkit.distributed.reduction.fast import FastReduction
from toolkit.distributed.reduction.protocol import Reduction, block, is_power_of_two, parts_for, passes

__all__ = ["ExactReduction", "FastReduction", "Reduction", "block", "is_power_of_two", "parts_for", "passes"]
