"""The sum over the processes in one balanced tree: the same bytes on every power of two of processes."""

from __future__ import annotations

import torch
import torch.distributed as dist

from toolkit.system.world import World

#: Up to this many elements the latency of a message costs more than its content.
_SMALL = 1 << 14
#: Elements summed at a time: the received part is still in the cache when it is added.
_PART = 1 << 20
#: float64 data must start at a multiple of this many elements, for any dtype.
ALIGNED = 8


class TreeSum:
    """Sums flat tensors of one type and device over a power of two of processes.

    Neighbours are added first, then pairs of neighbours: at the distances 1, 2, 4. A small tensor is sent
    whole to the partner at each distance (recursive doubling). For a large tensor, each partner adds one
    half, which is halved again at the next distance, and the sums are sent back in reverse (recursive halving
    and doubling; Thakur, Rabenseifner and Gropp, 2005): this sends 2 (1 - 1/size) lengths, not log2(size). At
    the last distance, the remaining part is sent whole: as many bytes, but one message instead of two. IEEE
    addition commutes, so the bytes do not depend on which partner adds.

    float64 numbers may be appended to a tensor of another dtype: they are summed as float64.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._received = torch.empty(0)

    def __call__(self, values: torch.Tensor, piggyback: int = 0) -> None:
        """Sum a tensor over the ranks, in place. Collective.

        piggyback  elements at the end that hold float64 numbers
        """
        first, stop = 0, len(values) - piggyback
        while first < stop:
            last = first + _PART >= stop
            part = values[first:] if last else values[first : first + _PART]
            self._sum(part, piggyback if last else 0)
            first += _PART

    def _sum(self, values: torch.Tensor, piggyback: int) -> None:
        if len(self._received) < len(values):
            # The appended float64 numbers are received at its end.
            self._received = values.new_empty(len(values) + -len(values) % ALIGNED)
        if len(values) <= max(_SMALL, piggyback * self._world.size):
            self._double(values, piggyback)
        else:
            self._halve(values, piggyback, distance=1)

    def _double(self, values: torch.Tensor, piggyback: int, distance: int = 1) -> None:
        while distance < self._world.size:
            _add(values, self._swap(values, len(values), distance), piggyback)
            distance *= 2

    def _halve(self, values: torch.Tensor, piggyback: int, distance: int) -> None:
        if 2 * distance == self._world.size:
            self._double(values, piggyback, distance)
            return
        middle = len(values) // 2
        own, other, own_piggyback = values[:middle], values[middle:], 0
        if self._world.rank & distance:
            own, other, own_piggyback = other, own, piggyback
        _add(own, self._swap(other, len(own), distance), own_piggyback)
        self._halve(own, own_piggyback, 2 * distance)
        self._exchange(own, other, distance)

    def _swap(self, sent: torch.Tensor, length: int, distance: int) -> torch.Tensor:
        """Send to the rank at this distance; return `length` elements that it sent."""
        received = self._received[len(self._received) - length :]
        self._exchange(sent, received, distance)
        return received

    def _exchange(self, sent: torch.Tensor, received: torch.Tensor, distance: int) -> None:
        partner = self._world.rank ^ distance
        exchange = [dist.P2POp(dist.isend, sent, partner), dist.P2POp(dist.irecv, received, partner)]
        for request in dist.batch_isend_irecv(exchange):
            request.wait()


def _add(values: torch.Tensor, others: torch.Tensor, piggyback: int) -> None:
    """Add in place; the last `piggyback` elements are added as float64."""
    stop = len(values) - piggyback
    values[:stop].add_(others[:stop])
    if piggyback:
        values[stop:].view(torch.float64).add_(others[stop:].view(torch.float64))
