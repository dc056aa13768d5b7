"""The sum over the processes in one balanced tree: the same bytes on every power of two of them."""

from __future__ import annotations

import torch
import torch.distributed as dist

from toolkit.world import World

#: Up to so many elements a message costs more than what it carries.
_SMALL = 1 << 14
#: Elements summed at a time: what was received is still in the cache when it is added.
_PART = 1 << 20


class TreeSum:
    """Sums flat tensors of one type and device over a power of two of processes.

    Neighbours are added first, then pairs of neighbours: at the distances 1, 2, 4. A small tensor goes to
    the partner whole at each of them (recursive doubling). Of a large one each partner adds a half, which is
    halved again at the next distance, and the sums go back the same way (recursive halving and doubling;
    Thakur, Rabenseifner and Gropp, 2005): 2 (1 - 1/size) lengths are sent, not log2(size). At the last
    distance what is left goes whole: as much is sent, in one message and not two. IEEE addition commutes, so
    the bytes are the same whichever partner adds.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._received = torch.empty(0)

    def __call__(self, values: torch.Tensor) -> None:
        """Sum a tensor over the ranks, in place. Collective."""
        if len(self._received) < min(len(values), _PART):
            self._received = torch.empty_like(values[:_PART])
        for part in values.split(_PART):
            if len(part) <= _SMALL:
                self._double(part)
            else:
                self._halve(part, distance=1)

    def _double(self, values: torch.Tensor, distance: int = 1) -> None:
        while distance < self._world.size:
            values.add_(self._swap(values, self._received[: len(values)], distance))
            distance *= 2

    def _halve(self, values: torch.Tensor, distance: int) -> None:
        if 2 * distance == self._world.size:
            self._double(values, distance)
            return
        middle = len(values) // 2
        own, other = values[:middle], values[middle:]
        if self._world.rank & distance:
            own, other = other, own
        own.add_(self._swap(other, self._received[: len(own)], distance))
        self._halve(own, 2 * distance)
        self._swap(own, other, distance)

    def _swap(self, sent: torch.Tensor, received: torch.Tensor, distance: int) -> torch.Tensor:
        """Send to the rank at a distance, and receive from it; returns what was received."""
        partner = self._world.rank ^ distance
        exchange = [dist.P2POp(dist.isend, sent, partner), dist.P2POp(dist.irecv, received, partner)]
        for request in dist.batch_isend_irecv(exchange):
            request.wait()
        return received
