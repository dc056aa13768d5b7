"""The sum over the processes in one balanced tree: the same bytes on every power of two of them."""

from __future__ import annotations

import torch
import torch.distributed as dist

from toolkit.world import World

#: Up to so many elements a message costs more than what it carries.
_SMALL = 1 << 14
#: Elements summed at a time: what was received is still in the cache when it is added.
_PART = 1 << 20
#: Elements of any type from whose multiples on numbers of double precision may lie.
ALIGNED = 8


class TreeSum:
    """Sums flat tensors of one type and device over a power of two of processes.

    Neighbours are added first, then pairs of neighbours: at the distances 1, 2, 4. A small tensor goes to
    the partner whole at each of them (recursive doubling). Of a large one each partner adds a half, which is
    halved again at the next distance, and the sums go back the same way (recursive halving and doubling;
    Thakur, Rabenseifner and Gropp, 2005): 2 (1 - 1/size) lengths are sent, not log2(size). At the last
    distance what is left goes whole: as much is sent, in one message and not two. IEEE addition commutes, so
    the bytes are the same whichever partner adds.

    Numbers of double precision may ride at a tensor's end: they are summed as what they are.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._received = torch.empty(0)

    def __call__(self, values: torch.Tensor, riding: int = 0) -> None:
        """Sum a tensor over the ranks, in place. Collective.

        riding  elements at the end that make up double-precision numbers
        """
        first, stop = 0, len(values) - riding
        while first < stop:
            last = first + _PART >= stop
            part = values[first:] if last else values[first : first + _PART]
            self._sum(part, riding if last else 0)
            first += _PART

    def _sum(self, values: torch.Tensor, riding: int) -> None:
        if len(self._received) < len(values):
            # At its end the riding numbers are received.
            self._received = values.new_empty(len(values) + -len(values) % ALIGNED)
        if len(values) <= max(_SMALL, riding * self._world.size):
            self._double(values, riding)
        else:
            self._halve(values, riding, distance=1)

    def _double(self, values: torch.Tensor, riding: int, distance: int = 1) -> None:
        while distance < self._world.size:
            _add(values, self._swap(values, len(values), distance), riding)
            distance *= 2

    def _halve(self, values: torch.Tensor, riding: int, distance: int) -> None:
        if 2 * distance == self._world.size:
            self._double(values, riding, distance)
            return
        middle = len(values) // 2
        own, other, own_riding = values[:middle], values[middle:], 0
        if self._world.rank & distance:
            own, other, own_riding = other, own, riding
        _add(own, self._swap(other, len(own), distance), own_riding)
        self._halve(own, own_riding, 2 * distance)
        self._exchange(own, other, distance)

    def _swap(self, sent: torch.Tensor, length: int, distance: int) -> torch.Tensor:
        """Send to the rank at a distance; return as many elements that came from it."""
        received = self._received[len(self._received) - length :]
        self._exchange(sent, received, distance)
        return received

    def _exchange(self, sent: torch.Tensor, received: torch.Tensor, distance: int) -> None:
        partner = self._world.rank ^ distance
        exchange = [dist.P2POp(dist.isend, sent, partner), dist.P2POp(dist.irecv, received, partner)]
        for request in dist.batch_isend_irecv(exchange):
            request.wait()


def _add(values: torch.Tensor, others: torch.Tensor, riding: int) -> None:
    """Add in place, the last elements as the double-precision numbers that they are."""
    stop = len(values) - riding
    values[:stop].add_(others[:stop])
    if riding:
        values[stop:].view(torch.float64).add_(others[stop:].view(torch.float64))
